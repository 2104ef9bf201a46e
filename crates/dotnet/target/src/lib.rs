//! Selects .NET processes and Java programs by id, name, port or remote address, and connects to .NET processes.
//!
//! ```text
//!  TargetArgs ──parse──► TargetSpec ──resolve──────────► ResolvedTarget: .NET (client, process)
//!  as typed         Pid, Name, Port, Ask │  └─managed──► ManagedTarget: that, or a JvmTarget
//!                                        └──examine────► Diagnosed, for those that can't be reached
//! ```
//!
//! [`TargetSpec`] is the parsed form of every choice. [`TargetSpec::resolve`] finds exactly one .NET process and rejects a stopped one;
//! [`TargetSpec::resolve_managed`] also finds Java programs;
//! [`TargetSpec::resolve_all`] finds all processes with a name. A name stands for processes of one user ([`UserFilter`]). Remarks, and
//! the list from which the user chooses, go to a [`Dialogue`]; `()` is a dialogue that ignores remarks and never asks. [`Listing`]
//! holds the running processes, [`ProcessStatus`] what a process reported, and [`Watch`] what changed between two scans. [`running`] has the
//! candidates for shell completion. [`java`] selects a Java program, which has no diagnostic port.
//!
//! ```no_run
//! use runtap_target::{TargetArgs, TargetSpec};
//!
//! # async fn version() -> Result<(), Box<dyn std::error::Error>> {
//! let spec = TargetSpec::parse(&TargetArgs { name: Some("MyService"), ..TargetArgs::default() })?;
//! let subject = spec.resolve(&()).await?;
//! let info = subject.client.process_info().await?;
//! assert_eq!(info.entry_assembly.as_deref(), Some("MyService"));
//! # Ok(()) }
//! ```
//!
//! The crate prints nothing and reads nothing from a terminal; errors and remarks are data. [`messages`] and [`fixes`] have the texts
//! for them. Sockets are found by `runtap-discover`.

#[cfg(target_os = "linux")]
pub mod attach_messages;
mod diagnosed;
mod dialogue;
pub mod doctor;
mod dotnet_verb;
mod error;
pub mod fixes;
#[cfg(target_os = "linux")]
pub mod java;
mod jvm;
pub mod messages;
mod named;
mod port;
mod remote;
mod resolve;
mod resolved;
pub mod running;
mod spec;
mod status;
mod stopped;
mod user;
mod watch;

pub use self::diagnosed::{Diagnosed, Examined};
pub use self::dialogue::{Dialogue, Question, Remark};
pub use self::dotnet_verb::DotnetVerb;
pub use self::error::{Error, MatchingProcess};
pub use self::jvm::{FactSource, JvmFacts, JvmTarget, ThreadDumpReply, ThreadRequest};
pub use self::port::{PortSpec, Role};
pub use self::remote::{RemoteError, RemoteSpec};
pub use self::resolved::{ManagedTarget, ResolvedTarget, local_name, name_of};
pub use self::spec::{SpecError, TargetArgs, TargetSpec};
pub use self::status::{Listing, ProcessStatus, is_suspended};
pub use self::stopped::stuck_at_startup;
pub use self::user::UserFilter;
pub use self::watch::{Change, Watch};
