//! Unwinds the stacks of threads one after the other: owns the list of modules and what was learnt of it, and reads that
//! again when it may be out of date. Refuses to get at a stack: `threads` does.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::modules::{Known, Modules};
use super::signal::Registers;
use super::thread::Thread;
use super::unwind::{self, Cache};

/// How often the list of modules is read because of a strange address, and how often without a reason.
const REFRESH_AT_MOST: Duration = Duration::from_millis(50);
const REFRESH_AT_LEAST: Duration = Duration::from_secs(2);
/// What the last frame may look at beyond its stack pointer.
const SLACK: u64 = 64;

/// What stacks are unwound with.
pub(super) struct Unwinder {
    modules: Modules,
    refreshed: Instant,
    cache: Cache,
    /// Frames of a stack.
    most: usize,
}

impl Unwinder {
    pub(super) fn new(known: Known, most: usize) -> Self {
        let mut modules = Modules::new(known);
        modules.refresh();
        Self { modules, refreshed: Instant::now(), cache: Cache::new(), most }
    }

    /// Reads the list of modules if that was long ago.
    pub(super) fn keep_fresh(&mut self) {
        if self.refreshed.elapsed() >= REFRESH_AT_LEAST {
            self.refresh();
        }
    }

    fn refresh(&mut self) -> bool {
        self.refreshed = Instant::now();
        self.modules.refresh()
    }

    /// Unwinds what is on the stack of a thread.
    pub(super) fn unwind(&mut self, thread: &mut Thread, registers: Registers, words: &[AtomicU64]) {
        let most = self.most;
        let stack = &mut thread.stack;
        let mut unwound = unwind::unwind(&self.modules, &mut self.cache, registers, words, most, stack);
        if unwound.strange && self.refreshed.elapsed() >= REFRESH_AT_MOST && self.refresh() {
            unwound = unwind::unwind(&self.modules, &mut self.cache, registers, words, most, stack);
        }
        thread.complete = unwound.end.is_some();
        if let Some(end) = unwound.end {
            thread.top = end.saturating_add(SLACK);
        }
    }
}
