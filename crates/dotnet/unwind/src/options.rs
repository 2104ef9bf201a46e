//! How threads are sampled. Owns the defaults; refuses nothing: what can't be used is refused at the start.

use std::time::Duration;

/// SIGURG. By default it is ignored: one that arrives late, even in a program that was executed meanwhile, does no harm.
/// Debuggers pass it on silently, and hardly any program uses it for out-of-band data, its purpose.
pub const DEFAULT_SIGNAL: i32 = 23;

/// How threads are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The time from one look at all threads to the next. 1 ms, as a runtime's, unless it is changed.
    pub period: Duration,
    /// How much of a stack is copied, from its leaf: at most 1 MiB; 64 KiB unless it is changed. What is beyond is missing
    /// from deeper stacks.
    pub stack_bytes: usize,
    /// The longest stack that is reported; the frames nearest to the leaf are kept.
    pub max_frames: usize,
    /// The signal that running threads get: [`DEFAULT_SIGNAL`], unless the program needs it itself.
    pub signal: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            period: Duration::from_millis(1),
            stack_bytes: 64 << 10,
            max_frames: 256,
            signal: DEFAULT_SIGNAL,
        }
    }
}
