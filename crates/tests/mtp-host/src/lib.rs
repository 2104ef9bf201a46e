//! Makes any program a test application of Microsoft.Testing.Platform, run by the real `dotnet test`, by `runtap test` and by
//! whatever else speaks the pipe. Without .NET, without async, for programs that embed it: it brings rustix, thiserror, and the two
//! crates of the protocol.
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
//! Tests that `cargo test` runs too have a `main` of the module `harness` (a feature); a test command in the place of an
//! application is run by `command` (another one).
//!
//! [`Application`] is the short way. What it does, step by step, for those who need more:
//!
//! ```text
//! Launch::parse(arguments)              what the server wants: run, list, help; None: no server has started us
//!   └▶ Host::connect(launch, …)         dials until the server is there, handshake, version, control pipe
//!        └▶ host.session(|session| …)   start and end of a session, always in pairs
//!             ├▶ session.test(…)        a test: filtered, listed or run, panics caught, reported
//!             ├▶ session.report(…)      a result made elsewhere, from any thread
//!             ├▶ session.artifact(…)    a file
//!             └▶ session.cancelled()    whether to stop
//!        └▶ host.exit()                 the exit code that the results have earned
//! ```
//!
//! # What it takes care of
//!
//! - **One request at a time.** SDK 10.0.401 never answers again when a second one comes before its reply. A thread owns the
//!   connection; tests hand their results over and go on.
//! - **Many results in one message**: see [`Batching`].
//! - **Properties that `dotnet test` dies without** can't be left out: see [`Identity`].
//! - **The server that is not there yet** is dialled again, for [`PATIENCE`]; one of another user is refused.
//! - **The server that is gone**, `--timeout`, `--maximum-failed-tests` and the control pipe become one [`Cancel`].
//! - **Exit codes** and what the command line says of them: see [`Exit`] and [`Policy`].
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
pub mod panics;
mod post;
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
pub use link::{HttpError, PATIENCE};
pub use queue::Batching;
pub use runtap_mtp_proto::{DisplayLevel, State, Version};
pub use session::{IntoOutcome, Session};
pub use test::{Failure, Outcome, TestNode, TestResult};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
