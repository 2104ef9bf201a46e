//! Which managed programs run here, where their sockets are, and what stands in the way if one can't be reached.
//!
//! Owns the reading of `/proc` and of the temporary directories. It never connects: whether a server answers is
//! the client's to find out. Source: "Naming and Location Conventions" of the specification.
//!
//! Linux has all of it. On macOS and Windows processes are found and dialled, without the reasons and the files of the
//! doctor; that code was never run there. The names of their sockets and pipes are in
//! [`naming`](runtap_transport::naming).

// What is for other systems is compiled into the tests on Linux, where it is of no other use.
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
pub use process::{Kind, Options, Process, Startup, Thread};
pub use reason::{Code, NotFound, Reason};
#[cfg(target_os = "linux")]
pub use runtap_transport::linux::{CAP_SYS_PTRACE, Capabilities};

use std::path::PathBuf;

/// Our own temporary directory: where the sockets of programs with our environment lie.
pub fn temp_dir() -> PathBuf {
    runtap_transport::naming::temp_dir(std::env::var_os("TMPDIR").as_deref())
}
