//! Counters of running programs: a [`CounterRequest`] in, readings as they are reported out.
//!
//! A recording whose [consumer](crate::StreamConsumer) is a [`CounterMonitor`] passes the events of all its processes to one function.
//! [`CounterFile`] writes them to a file. Nothing is written between the events of a process and that function, and the state is
//! bounded ([`BoardLimits`](runtap_model::counters::BoardLimits)).

mod file;
pub(crate) mod jvm;
pub mod messages;
mod monitor;
mod request;

pub use self::file::CounterFile;
pub use self::monitor::{CounterMonitor, CounterSignal, Unread};
pub use self::request::{CounterRequest, CounterRequestError, CounterSelection};
