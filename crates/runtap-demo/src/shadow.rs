//! How a thread tells another one where it is, without stopping.
//!
//! Native stacks could not be walked without debug information or unsafe code; here every function says when it is
//! entered and left. One writer, any readers, no lock: a reader that meets a change in progress looks again.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::code::Function;

const DEEPEST: usize = 16;
/// A writer is in the middle of a change for some nanoseconds; who meets it this often was itself stopped there.
const LOOKS: usize = 100;

/// The functions that a thread is in.
#[derive(Debug, Default)]
pub(crate) struct ShadowStack {
    /// The operating system's number of the thread; 0 until it starts.
    thread: AtomicU64,
    /// Odd while the stack changes.
    version: AtomicUsize,
    depth: AtomicUsize,
    functions: [AtomicU32; DEEPEST],
    resting: AtomicBool,
}

/// A stack as it was at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) thread: u64,
    /// Whether the thread waited.
    pub(crate) resting: bool,
    depth: usize,
    functions: [u32; DEEPEST],
}

impl Snapshot {
    /// Innermost first, as stacks are told.
    pub(crate) fn leaf_first(&self) -> impl Iterator<Item = Function> + '_ {
        let known = self.functions.get(..self.depth).unwrap_or_default();
        known.iter().rev().filter_map(|index| Function::from_index(*index))
    }
}

impl ShadowStack {
    /// Enters a function, which is left when the guard is dropped.
    pub(crate) fn enter(&self, function: Function) -> Entered<'_> {
        let depth = self.depth.load(Ordering::Relaxed);
        self.change(|| {
            if let Some(slot) = self.functions.get(depth) {
                slot.store(function.index(), Ordering::Relaxed);
            }
            self.depth.store(depth + 1, Ordering::Relaxed);
        });
        Entered { stack: self }
    }

    /// Says whether the thread waits from here on.
    pub(crate) fn rest(&self, resting: bool) {
        self.thread.store(runtap_diag_server::current_thread_id(), Ordering::Relaxed);
        self.resting.store(resting, Ordering::Relaxed);
    }

    fn change(&self, change: impl FnOnce()) {
        self.version.fetch_add(1, Ordering::AcqRel);
        change();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Where the thread is; `None` before it started and after it ended, and for one that was stopped in mid-change.
    pub(crate) fn look(&self) -> Option<Snapshot> {
        for _ in 0..LOOKS {
            let before = self.version.load(Ordering::Acquire);
            let snapshot = Snapshot {
                thread: self.thread.load(Ordering::Relaxed),
                resting: self.resting.load(Ordering::Relaxed),
                depth: self.depth.load(Ordering::Relaxed).min(DEEPEST),
                functions: self.functions.each_ref().map(|slot| slot.load(Ordering::Relaxed)),
            };
            std::sync::atomic::fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return (snapshot.depth > 0 && snapshot.thread > 0).then_some(snapshot);
            }
            std::hint::spin_loop();
        }
        None
    }
}

/// Leaves the function when it is dropped.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    stack: &'a ShadowStack,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let depth = self.stack.depth.load(Ordering::Relaxed);
        self.stack.change(|| self.stack.depth.store(depth - 1, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn tells_the_functions_innermost_first() {
        let stack = ShadowStack::default();
        assert_eq!(stack.look(), None);
        stack.rest(false);
        let _main = stack.enter(Function::Main);
        {
            let _tick = stack.enter(Function::Tick);
            let seen: Vec<Function> = stack.look().unwrap().leaf_first().collect();
            assert_eq!(seen, [Function::Tick, Function::Main]);
        }
        assert_eq!(stack.look().unwrap().leaf_first().count(), 1);
    }

    #[test]
    fn a_reader_never_sees_half_a_change() {
        let stack = Arc::new(ShadowStack::default());
        let stop = Arc::new(AtomicBool::new(false));
        let writer = {
            let (stack, stop) = (Arc::clone(&stack), Arc::clone(&stop));
            std::thread::spawn(move || {
                stack.rest(false);
                let _main = stack.enter(Function::Main);
                while !stop.load(Ordering::Relaxed) {
                    // A pair that always comes together, and one that never does.
                    let _warm = stack.enter(Function::WarmWork);
                    let _parse = stack.enter(Function::Parse);
                }
            })
        };
        let mut looks = 0;
        while looks < 20_000 {
            let Some(snapshot) = stack.look() else { continue };
            let seen: Vec<Function> = snapshot.leaf_first().collect();
            let whole: [&[Function]; 3] = [
                &[Function::Main],
                &[Function::WarmWork, Function::Main],
                &[Function::Parse, Function::WarmWork, Function::Main],
            ];
            assert!(whole.contains(&seen.as_slice()), "{seen:?}");
            looks += 1;
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    }
}
