//! Why threads can't be sampled.

use std::io;

use thiserror::Error;

/// Why threads can't be sampled.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Stacks can be read on Linux on x86-64 and arm64 only.
    #[error("sampling is supported on Linux on x86-64 and arm64 only")]
    Unsupported,
    /// There is one sampler for all threads.
    #[error("this process already has a sampler; use that one, or drop it first")]
    AlreadyRunning,
    /// The program has another use for the signal.
    #[error("signal {0} already has a handler; choose a signal that the program does not use")]
    SignalInUse(i32),
    /// A signal that can't be caught, or that reports errors of the program.
    #[error("signal {0} is not usable for sampling; choose SIGURG, SIGPROF or a real-time signal")]
    UnusableSignal(i32),
    /// The handler can't be installed.
    #[error("install a handler of signal {signal}")]
    Handler {
        /// The signal.
        signal: i32,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// `process_vm_readv` is forbidden, as a rule by a seccomp filter, and `/proc/self/mem` can't be read either.
    #[error("read this process's own memory with process_vm_readv, or /proc/self/mem; allow one of them")]
    Memory(#[source] io::Error),
    /// There is no `/proc`, or no thread.
    #[error("start the sampling thread")]
    Thread(#[source] io::Error),
    /// The threads of this process can't be listed.
    #[error("list this process's threads in /proc/self/task")]
    Threads(#[source] io::Error),
}
