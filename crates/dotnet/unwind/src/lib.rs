//! Stacks of a program's own threads: sampled, unwound and named, without instrumentation of the program.
//!
//! ```no_run
//! use runtap_unwind::{Namer, Options, Sample, Sampler};
//!
//! let (sender, samples) = std::sync::mpsc::channel();
//! let sampler = Sampler::start(Options::default(), move |sample: &Sample<'_>| {
//!     // On the sampler's thread. An error means that the receiver was dropped.
//!     let _ = sender.send(sample.stack.to_vec());
//! })?;
//! sampler.set_active(true);
//! let stack = samples.recv().unwrap_or_default();
//! let names = Namer::new(&sampler).names(stack);
//! # Ok::<(), runtap_unwind::StartError>(())
//! ```
//!
//! A separate thread samples all other threads once per period. A running thread gets a signal whose handler copies the
//! registers and a part of the stack; the sampler unwinds the copy by the program's `.eh_frame`. A waiting thread is not
//! interrupted where the program could notice it. docs/design/self-sampling.md describes the design and its limits.
//!
//! * `sampler`: the thread and its handle. * `threads`: which threads are sampled, and how. * `task`: the state of a thread
//!   from `/proc`. * `modules`: the ELF objects in memory, and unwinding by their tables. * `symbols`, `name`: from
//!   addresses to functions. * `schedule`: scheduling of the sampler. * `signal`, `memory`. Only the last three contain
//!   unsafe code.
//!
//! On systems other than Linux on x86-64 and arm64, the crate compiles, but starting a sampler fails.

mod error;
mod name;
mod options;
mod sample;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use linux::{Namer, Sampler};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod unsupported;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use unsupported::{Namer, Sampler};

pub use error::StartError;
pub use name::FunctionName;
pub use options::{DEFAULT_SIGNAL, Options};
pub use sample::{Function, ModuleFile, Names, Sample, Statistics};
