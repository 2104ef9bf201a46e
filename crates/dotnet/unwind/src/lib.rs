//! Stacks of a program's own threads: sampled, unwound and named, in a program that need not do anything for it.
//!
//! ```no_run
//! use runtap_unwind::{Namer, Options, Sample, Sampler};
//!
//! let (sender, samples) = std::sync::mpsc::channel();
//! let sampler = Sampler::start(Options::default(), move |sample: &Sample<'_>| {
//!     // On the sampler's thread. An error means that nobody listens any more.
//!     let _ = sender.send(sample.stack.to_vec());
//! })?;
//! sampler.set_active(true);
//! let stack = samples.recv().unwrap_or_default();
//! let names = Namer::new(&sampler).names(stack);
//! # Ok::<(), runtap_unwind::StartError>(())
//! ```
//!
//! A thread of its own looks at all others once per period. One that runs gets a signal whose handler copies registers
//! and a part of the stack; the sampler unwinds the copy by the program's `.eh_frame`. One that waits is not disturbed
//! where that could be noticed. docs/design/self-sampling.md describes the design and what is not seen.
//!
//! * `sampler`: the thread and its handle. * `threads`: which threads are looked at, and how. * `task`: what `/proc` says
//!   of a thread. * `modules`: the ELF objects in memory, and unwinding by their tables. * `symbols`, `name`: addresses to
//!   functions. * `schedule`: when the sampler gets a processor. * `signal`, `memory`. The last three have the only unsafe
//!   code.
//!
//! Refuses to know what samples are for. Elsewhere than on Linux on x86-64 and arm64, it compiles and refuses to start.

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
