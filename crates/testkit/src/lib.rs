//! Fake peers, fixtures and real runtimes for the tests of runtap.
//!
//! - `FakeRuntime` (feature `fake`): a diagnostics server in the test process that can be made to misbehave, or to act
//!   like an old version of .NET. It uses runtap's server; the rest of this crate uses no product crates, so the tests
//!   of layers 0 and 1 can use it.
//! - [`RealRuntime`], [`Program`]: .NET 8, 9 and 10 with programs whose results are known, and .NET Core 3.1 with a
//!   small one; [`Peer`]: Microsoft's tools.
//! - [`shared_dir`], [`shared_data`], [`shared_archive`]: the shared folder that these come from; [`recordings`]:
//!   recordings with the results of other readers; [`jvm_recordings`]: the same for agents of JVMs.
//! - [`Jdk`]: Java, with and without a compiler; [`JvmCounter`]: counts of method calls from JVMTI events.
//! - `scripted` (feature `scripted`): a test application that plays a scenario, whether valid or not.
//! - `fake_agent` (feature `fake-agent`): a Bytefrog agent that follows a script, whether valid or not.
//! - [`replay`]: a runtime that streams given bytes; [`hostile`]: streams that grow endlessly.
//! - [`run`], [`Running`], [`Finished`]: commands that run to completion with a time limit.
//!
//! A missing prerequisite is a [`Skip`], with which a test reports the reason and passes ([`require!`]). If the shared
//! folder exists, its contents are mandatory.

mod collector;
#[cfg(feature = "fake")]
mod fake;
#[cfg(feature = "fake-agent")]
pub mod fake_agent;
#[cfg(unix)]
pub mod hostile;
mod jdk;
mod jvm_counter;
mod jvm_recordings;
mod own_tmp;
mod peers;
mod program;
mod recordings;
#[cfg(unix)]
pub mod replay;
mod runtime;
#[cfg(all(feature = "scripted", unix))]
pub mod scripted;
mod sdk;
mod shared;
pub mod shown;
mod skip;
mod small;
mod test_apps;
mod tool;

#[cfg(feature = "fake")]
pub use fake::{FakeRuntime, FakeRuntimeBuilder, Fault, Likeness, On};
pub use jdk::Jdk;
pub use jvm_counter::{CountedMethod, Counts, JvmCounter};
pub use jvm_recordings::{JvmRecording, jvm_configurations, jvm_recordings};
pub use own_tmp::{OWN_TMP, in_own_tmp};
pub use peers::{Peer, single_file_program};
pub use program::{Launch, Program};
pub use recordings::{Recording, recordings};
pub use runtime::RealRuntime;
pub use rustix::process::Signal;
pub use sdk::DotnetTest;
pub use shared::{extract, shared_archive, shared_data, shared_dir, workspace_root};
pub use skip::{SKIPS, Skip};
/// Shell commands that make the folder `$1` a root for programs of this machine. Requires a mount namespace.
pub const MAKE_ROOT: &str = r#"
    PATH=$PATH:/usr/sbin:/sbin # chroot lies where not every PATH leads
    for folder in bin usr lib lib64 proc; do
        mkdir -p "$1/$folder"
        if test -e "/$folder"; then mount --rbind "/$folder" "$1/$folder"; fi
    done
"#;

pub use test_apps::{REPORTED, expected_outcomes, reported_application, test_application};
pub use tool::{Finished, HARD_LIMIT, Running, eventually, installed, run};
