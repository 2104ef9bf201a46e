//! Local sockets for threads: of the standard library, or on Windows pipes with the same calls.

#[cfg(windows)]
pub use runtap_os::windows::local::{LocalListener, LocalStream};
#[cfg(unix)]
pub use std::os::unix::net::{UnixListener as LocalListener, UnixStream as LocalStream};
