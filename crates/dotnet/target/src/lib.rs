//! From what somebody calls a process to a client that talks to it, the same way for everybody who has to choose one.
//!
//! ```text
//!  Given ──parse──► TargetSpec ──resolve──► Subject (client, process)
//!  as typed         Pid, Name, Port, Ask       │
//!                        └──examine──► Diagnosed, for those that can't be reached
//! ```
//!
//! [`TargetSpec`] is the one form of every choice; [`TargetSpec::resolve`] finds the one process that is meant, and refuses one that is
//! stopped; [`TargetSpec::resolve_all`] takes all of a name. A name stands for processes of one user ([`Whose`]). What is to be
//! known besides, and the list to choose from, goes to a [`Dialogue`]: `()` is one that says nothing and is never asked.
//! [`Listing`] is all that runs, [`Seen`] what such a process said when it was asked, [`Watch`] what changed since. What to
//! offer while somebody types is in [`running`].
//!
//! ```no_run
//! use runtap_target::{Given, TargetSpec};
//!
//! # async fn version() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = TargetSpec::parse(&Given { name: Some("MyService"), ..Given::default() })?;
//! let subject = spec.resolve(&()).await?;
//! let info = subject.client.process_info().await?;
//! assert_eq!(info.entry_assembly.as_deref(), Some("MyService"));
//! # Ok(()) }
//! ```
//!
//! Refuses to print, to read from a terminal, and to choose words for people: errors and remarks are data. Finding sockets and
//! judging why one can't be reached are the business of the crates below.

mod diagnosed;
mod dialogue;
pub mod doctor;
mod error;
mod named;
mod port;
mod remote;
mod resolve;
pub mod running;
mod seen;
mod spec;
mod stopped;
mod subject;
mod user;
mod watch;

pub use self::diagnosed::{Diagnosed, Examined};
pub use self::dialogue::{Dialogue, Question, Remark};
pub use self::error::{Error, Row};
pub use self::port::{PortSpec, Role};
pub use self::remote::{RemoteError, RemoteSpec};
pub use self::seen::{Listing, Seen, is_suspended};
pub use self::spec::{Given, SpecError, TargetSpec};
pub use self::stopped::stuck_at_startup;
pub use self::subject::{Subject, local_name, name_of};
pub use self::user::Whose;
pub use self::watch::{Change, Watch};
