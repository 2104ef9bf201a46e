//! Fake peers, fixtures and real runtimes for the tests of runtap.
//!
//! - `FakeRuntime` (feature `fake`): a diagnostics server in the test's process that can be made to misbehave in every known way,
//!   or to be as old as a given .NET. (Feature `fake`: it is our own server. The rest needs nothing of the product, so the
//!   tests of layers 0 and 1 use it without.)
//! - [`RealRuntime`], [`Program`]: .NET 8, 9 and 10 with programs whose answers are known, and .NET Core 3.1 with a
//!   small one; [`Peer`]: Microsoft's own tools.
//! - [`shared_dir`], [`shared_data`], [`shared_archive`]: the folder that these come from; [`recordings`]: what is recorded there, with
//!   the answers of other readers; [`jvm_recordings`]: the same of JVMs' agents.
//! - [`Jdk`]: Java, with and without a compiler; [`JvmCounter`]: how often its methods ran, by JVMTI's own events.
//! - `scripted` (feature `scripted`): a test application that plays a scenario, right or wrong.
//! - `fake_agent` (feature `fake-agent`): a Bytefrog agent that follows a script, right or wrong.
//! - [`replay`]: a runtime that streams given bytes; [`hostile`]: streams that grow without end.
//! - [`run`], [`Running`], [`Finished`]: commands that run to an end, with a hard limit.
//!
//! What is not on this machine is a [`Skip`]: the test says so and passes ([`require!`]). Where the shared folder is
//! there, nothing is skipped: what fails then is a failure.

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
/// A shell's commands that make the folder `$1` a root in which our own programs run. In a mount namespace only.
pub const MAKE_ROOT: &str = r#"
    PATH=$PATH:/usr/sbin:/sbin # chroot lies where not every PATH leads
    for folder in bin usr lib lib64 proc; do
        mkdir -p "$1/$folder"
        if test -e "/$folder"; then mount --rbind "/$folder" "$1/$folder"; fi
    done
"#;

pub use test_apps::{REPORTED, expected_outcomes, reported_application, test_application};
pub use tool::{Finished, HARD_LIMIT, Running, eventually, installed, run};
