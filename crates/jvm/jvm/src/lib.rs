//! What the events of a Java program mean, beyond its call tree (`runtap-bytefrog`).
//!
//! - [`recording`]: recordings on disk, played back, compared, as profiles.
//! - [`coverage`]: which code of jars ran, which did not, and what is not known.
//!
//! Opens no listener, and prints nothing.

pub mod coverage;
pub mod recording;
