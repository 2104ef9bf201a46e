//! Sampling on Linux.

mod memory;
mod modules;
mod sampler;
mod schedule;
mod signal;
mod symbols;
mod task;
mod thread;
mod threads;
mod unwind;
mod unwinder;

pub use sampler::Sampler;
pub use symbols::Namer;
