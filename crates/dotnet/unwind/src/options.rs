//! The sampling options and their defaults. Starting a sampler rejects unusable values.

use std::time::Duration;

/// SIGURG. It is ignored by default, so that a late signal is harmless, even to a program that was executed meanwhile.
/// Debuggers forward it silently, and hardly any program uses it for its purpose, out-of-band data.
pub const DEFAULT_SIGNAL: i32 = 23;

/// The sampling options.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The time between two samples of all threads. The default is 1 ms, as in a .NET runtime.
    pub period: Duration,
    /// How many bytes of a stack are copied, from its leaf: at most 1 MiB, by default 64 KiB. Deeper stacks lack the frames
    /// beyond.
    pub stack_bytes: usize,
    /// The maximum number of frames of a stack; the frames nearest to the leaf are kept.
    pub max_frames: usize,
    /// The signal for sampling running threads: by default [`DEFAULT_SIGNAL`], unless the program itself needs it.
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
