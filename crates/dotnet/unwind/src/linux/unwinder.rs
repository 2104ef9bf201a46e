//! Unwinds the stacks of threads: has the list of modules and the cache of unwind rules, and reads the list
//! again when it may be outdated.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::modules::{KnownObjects, Modules};
use super::signal::Registers;
use super::thread::Thread;
use super::unwind::{self, Cache};

/// The least time between refreshes of the list of modules due to unknown addresses, and the time after which it is always
/// refreshed.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(50);
const MAX_REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// The number of bytes beyond its stack pointer that the last frame may need.
const SLACK: u64 = 64;

/// The state for unwinding stacks.
pub(super) struct Unwinder {
    modules: Modules,
    refreshed: Instant,
    cache: Cache,
    /// The frames of a stack.
    max_frames: usize,
}

impl Unwinder {
    pub(super) fn new(known: KnownObjects, max_frames: usize) -> Self {
        let mut modules = Modules::new(known);
        modules.refresh();
        Self { modules, refreshed: Instant::now(), cache: Cache::new(), max_frames }
    }

    /// Reads the list of modules if it is old.
    pub(super) fn keep_fresh(&mut self) {
        if self.refreshed.elapsed() >= MAX_REFRESH_INTERVAL {
            self.refresh();
        }
    }

    fn refresh(&mut self) -> bool {
        self.refreshed = Instant::now();
        self.modules.refresh()
    }

    /// Unwinds the stack of a thread.
    pub(super) fn unwind(&mut self, thread: &mut Thread, registers: Registers, words: &[AtomicU64]) {
        let max_frames = self.max_frames;
        let stack = &mut thread.stack;
        let mut unwound = unwind::unwind(&self.modules, &mut self.cache, registers, words, max_frames, stack);
        if unwound.strange && self.refreshed.elapsed() >= MIN_REFRESH_INTERVAL && self.refresh() {
            unwound = unwind::unwind(&self.modules, &mut self.cache, registers, words, max_frames, stack);
        }
        thread.complete = unwound.end.is_some();
        if let Some(end) = unwound.end {
            thread.top = end.saturating_add(SLACK);
        }
    }
}
