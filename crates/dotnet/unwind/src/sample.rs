//! The results of sampling: samples, statistics, functions and modules.

use std::ops::Range;
use std::path::PathBuf;

use crate::name::FunctionName;

/// A sample of a thread at one moment.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The operating system's id of the thread.
    pub thread_id: u64,
    /// Whether the thread ran. Otherwise it waited, perhaps only for a processor: it used no time since the previous sample.
    pub running: bool,
    /// The addresses from the leaf to the root: the next instruction of each frame.
    pub stack: &'a [u64],
    /// Whether the stack reaches the start of the thread. If not, the callers of the last frame are unknown.
    pub complete: bool,
    /// Whether the thread did not run since the previous sample, so that both are equal.
    pub repeated: bool,
}

impl Sample<'_> {
    /// Returns the addresses for naming the frames: the return address of a caller is after its call instruction, where
    /// another function may start.
    pub fn lookup_addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.stack.iter().enumerate().map(|(i, address)| address.saturating_sub(u64::from(i > 0)))
    }
}

/// The statistics of a sampler up to its last round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of rounds: samples of all threads.
    pub rounds: u64,
    /// The number of samples, including repeated ones.
    pub samples: u64,
    /// The number of signals sent.
    pub signals: u64,
    /// The number of signals without an answer: the thread blocks the signal.
    pub unanswered: u64,
    /// The number of stacks that end before the root.
    pub partial: u64,
}

/// A function in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// The address of the function.
    pub start: u64,
    /// The length in bytes.
    pub size: u64,
    /// The name.
    pub name: FunctionName,
    /// The module, as an index into [`Names::modules`].
    pub module: usize,
}

/// An executable or a library in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModuleFile {
    /// The path of the file according to the kernel.
    pub path: PathBuf,
    /// Its address range in memory.
    pub range: Range<u64>,
}

/// Functions, each once, ordered by address, and the modules that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// The functions.
    pub functions: Vec<Function>,
    /// The modules.
    pub modules: Vec<ModuleFile>,
}
