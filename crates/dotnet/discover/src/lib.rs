//! Finds the managed programs that run on this machine, their diagnostic sockets, and the reasons why a program can't be reached.
//!
//! The crate reads `/proc` and temporary directories. It never connects to a socket, so it does not know whether a server answers.
//! Source: "Naming and Location Conventions" of the specification.
//!
//! All functions are available on Linux. On macOS and Windows, processes and their endpoints are found, but not the reasons and the
//! files that the doctor examines; the code for these systems has never been run on them. Names of sockets and pipes are in
//! [`naming`](runtap_transport::naming).

// Code for other systems is also compiled into the tests on Linux, where it is not used otherwise.
mod fix;
#[cfg(unix)]
mod jvm;
#[cfg(not(unix))]
#[path = "jvm/java.rs"]
mod jvm;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod macos;
#[cfg(any(not(target_os = "linux"), test))]
#[allow(unreachable_pub, reason = "exported where it is of use")]
#[cfg_attr(target_os = "linux", allow(dead_code, reason = "exported where it is of use"))]
mod not_linux;
mod perf_data;
mod perf_file;
mod process;
#[cfg(unix)]
mod rank;
mod reason;
#[cfg(windows)]
mod windows;

pub use fix::{Fix, in_its_files};
pub use jvm::Java;
#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use not_linux::{
    Facts, ProcTrouble, Survey, System, is_running, process, processes, start_time, startup, threads,
};
pub use perf_data::{PerfCounter, PerfData, PerfValue};
pub use perf_file::PerfFile;
pub use process::{Options, Process, ProcessKind, Startup, Thread, Usage};
pub use reason::{NotFound, Reason, ReasonCode};
#[cfg(target_os = "linux")]
pub use runtap_transport::linux::{CAP_SYS_PTRACE, Capabilities};

use std::path::PathBuf;

/// Returns the temporary directory of this process, in which the sockets of programs with an equal environment are.
pub fn temp_dir() -> PathBuf {
    runtap_transport::naming::temp_dir(std::env::var_os("TMPDIR").as_deref())
}
