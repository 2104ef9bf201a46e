//! What is seen, and what it is called: the values that leave this crate.

use std::ops::Range;
use std::path::PathBuf;

use crate::name::FunctionName;

/// A thread at one moment.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The operating system's number of the thread.
    pub thread_id: u64,
    /// Whether it ran. Otherwise it waited, if only for a processor: it used no time since the sample before.
    pub running: bool,
    /// Addresses from the leaf to the root: the next instruction of each frame.
    pub stack: &'a [u64],
    /// Whether the stack ends where the thread began. If not, the callers of the last frame are unknown.
    pub complete: bool,
    /// The thread did not run since the sample before, so that this one is the same.
    pub repeated: bool,
}

impl Sample<'_> {
    /// The addresses by which the frames are named: callers are left at the instruction after the call, which may belong
    /// to another function.
    pub fn lookup_addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.stack.iter().enumerate().map(|(i, address)| address.saturating_sub(u64::from(i > 0)))
    }
}

/// What a sampler has done until the end of its last round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Looks at all threads.
    pub rounds: u64,
    /// Samples, repeated ones included.
    pub samples: u64,
    /// Signals sent.
    pub signals: u64,
    /// Signals that were given up because no answer came: the thread blocks the signal.
    pub unanswered: u64,
    /// Stacks that end before the root.
    pub partial: u64,
}

/// A function in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// Its address.
    pub start: u64,
    /// Its length in bytes.
    pub size: u64,
    /// What it is called.
    pub name: FunctionName,
    /// Its module, as an index into [`Names::modules`].
    pub module: usize,
}

/// An executable or a library in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleFile {
    /// The file, as the kernel names it.
    pub path: PathBuf,
    /// Where it lies in memory.
    pub range: Range<u64>,
}

/// Functions, each once, in the order of their addresses, and the modules that have been seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// The functions.
    pub functions: Vec<Function>,
    /// The modules.
    pub modules: Vec<ModuleFile>,
}
