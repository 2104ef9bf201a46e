//! Makes any program a test application of Microsoft.Testing.Platform, which `dotnet test`, `runtap test` and other
//! runners of the same protocol can run. The crate needs neither .NET nor an async runtime; its dependencies are
//! rustix, thiserror, and the two crates of the protocol.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn main() -> ExitCode {
//!     runtap_mtp_host::Application::new().main(|tests, _| {
//!         tests.test("math::adds", || assert_eq!(1 + 1, 2))?;
//!         tests.skip("math::divides", "not yet")
//!     })
//! }
//! ```
//!
//! For tests that `cargo test` runs as well, the module `harness` (a feature) has a `main`. The module `command` (a
//! feature) runs a test command as an application.
//!
//! [`Application`] is the short way. The individual steps, for programs that need more control:
//!
//! ```text
//! Launch::parse(arguments)              the server's request: run, list, help; None if not started by a server
//!   └▶ Host::connect(launch, …)         connects with retries, handshake, version, control pipe
//!        └▶ host.session(|session| …)   start and end of a session, always in pairs
//!             ├▶ session.test(…)        a test: filtered, listed or run, panics caught, reported
//!             ├▶ session.report(…)      reports a result, from any thread
//!             ├▶ session.artifact(…)    a file
//!             └▶ session.cancelled()    whether to stop
//!        └▶ host.exit()                 the exit code for the results
//! ```
//!
//! # Guarantees
//!
//! - **One request at a time.** SDK 10.0.401 stops replying when a second request arrives before its reply. A thread
//!   owns the connection; tests queue their results and continue.
//! - **Many results in one message**: see [`Batching`].
//! - **Properties without which `dotnet test` crashes** are always sent; see [`Identity`].
//! - **A server that does not listen yet** is retried for [`CONNECT_TIMEOUT`]. A server of another user is rejected.
//! - **A lost server**, `--timeout`, `--maximum-failed-tests` and the control pipe all become one [`Cancel`].
//! - **Exit codes** follow the platform and the command line; see [`Exit`] and [`Policy`].
//!
//! Specification: microsoft/testfx, `docs/mstest-runner-protocol/004-protocol-dotnet-test-pipe.md`. Unix only.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod application;
mod artifact;
mod cancel;
#[cfg(feature = "command")]
pub mod command;
mod control;
mod diagnostic;
mod error;
mod exit;
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(feature = "harness")]
pub mod harness;
mod host;
mod identity;
mod launch;
mod link;
mod outbox;
pub mod panics;
mod queue;
mod session;
mod test;
mod wire;

pub use application::Application;
pub use artifact::Artifact;
pub use cancel::{Cancel, CancelReason};
pub use diagnostic::{CreateLog, Diagnostic, Verbosity};
pub use error::HostError;
pub use exit::{Exit, Policy};
pub use host::{HelpError, Host};
pub use identity::{ATTEMPT_NUMBER, EXECUTION_ID, Identity, Role};
pub use launch::{CommandOption, Launch, LaunchError, Mode, Server};
pub use link::{CONNECT_TIMEOUT, HttpError};
pub use queue::Batching;
pub use runtap_mtp_proto::{DisplayLevel, TestState, Version};
pub use session::{IntoOutcome, Session};
pub use test::{Failure, Outcome, TestNode, TestResult};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
