//! Fake peers, fixtures and real runtimes for the tests of runtap.
//!
//! - [`FakeRuntime`]: a diagnostics server in the test's process that can be made to misbehave in every known way,
//!   or to be as old as a given .NET.
//! - [`RealRuntime`], [`Program`]: .NET 8, 9 and 10 with programs whose answers are known; [`Peer`]: Microsoft's own
//!   tools.
//! - [`shared_dir`], [`shared_data`]: the folder that these come from.
//!
//! What is not on this machine is a [`Skip`]: the test says so and passes ([`require!`]). Where the shared folder is
//! there, nothing is skipped: what fails then is a failure.

mod fake;
mod peers;
mod program;
mod runtime;
mod shared;
mod skip;

pub use fake::{FakeRuntime, FakeRuntimeBuilder, Fault, Likeness, On};
pub use peers::Peer;
pub use program::{Launch, Program};
pub use runtime::RealRuntime;
pub use shared::{shared_data, shared_dir, workspace_root};
pub use skip::Skip;
