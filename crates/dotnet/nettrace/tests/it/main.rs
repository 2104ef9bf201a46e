//! Tests of the public interface: real recordings, properties for any bytes, damage.

#![expect(clippy::disallowed_methods, reason = "tests read recordings from files")]

mod bytes;
mod common;
mod damage;
mod golden;
mod holes;
mod hostile;
mod in_order;
mod inspect;
mod laws;
mod netperf;
mod parts;
mod recordings;
mod repair;
mod rewrite;
mod seen;
mod traceevent;
mod v6;
mod writer;
mod writer_netperf;
