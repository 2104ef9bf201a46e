//! Errors of starting a sampler.

use std::io;

use thiserror::Error;

/// A reason why threads cannot be sampled.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Sampling is only supported on Linux on x86-64 and arm64.
    #[error("sampling is supported on Linux on x86-64 and arm64 only")]
    Unsupported,
    /// The process already has a sampler, which samples all threads.
    #[error("this process already has a sampler; use that sampler, or drop it first")]
    AlreadyRunning,
    /// The program uses the signal for another purpose.
    #[error("signal {0} already has a handler; choose a signal that the program does not use")]
    SignalInUse(i32),
    /// The signal cannot be caught, or reports errors of the program.
    #[error("signal {0} is not usable for sampling; choose SIGURG, SIGPROF or a real-time signal")]
    UnusableSignal(i32),
    /// The handler cannot be installed.
    #[error("cannot install a handler for signal {signal}")]
    Handler {
        /// The signal.
        signal: i32,
        /// The error.
        #[source]
        error: io::Error,
    },
    /// `process_vm_readv` is forbidden, usually by a seccomp filter, and `/proc/self/mem` cannot be read either.
    #[error("cannot read this process's own memory: allow process_vm_readv or /proc/self/mem")]
    Memory(#[source] io::Error),
    /// The sampling thread cannot be started, or `/proc` is missing.
    #[error("cannot start the sampling thread")]
    Thread(#[source] io::Error),
    /// The threads of this process cannot be listed.
    #[error("cannot list this process's threads in /proc/self/task")]
    Threads(#[source] io::Error),
}
