//! The agents of a collector: what is known of them apart from their traces, while they run and at the end.
//!
//! - [`Collector`] listens, and at the end stops the agents and waits for their data.
//! - [`AgentWatch`] receives the events of [`Hq`](runtap_bytefrog::hq::Hq): [`AgentFacts`], and [`Notice`]s to show.
//! - [`execute`] executes the commands of a control socket.
//! - [`CollectionResult`] has the data of all agents after the end.
//! - [`check_patterns`] finds invalid class patterns before a program is started.

mod collector;
mod control;
mod ending;
mod facts;
mod notice;
mod patterns;
mod watch;

pub use self::collector::{Collector, GRACE_PERIOD};
pub use self::control::{ControlAnswer, execute};
pub use self::ending::{AgentResult, CollectionResult};
pub use self::facts::AgentFacts;
pub use self::notice::{News, Notice, Weight};
pub use self::patterns::{PatternRole, PatternsError, TargetAgents, check_patterns, names_jdk_class};
pub use self::watch::{AgentSummary, AgentWatch};
