//! Local sockets for threads: those of the standard library or, on Windows, named pipes with the same interface.

#[cfg(windows)]
pub use runtap_os::windows::local::{LocalListener, LocalStream};
#[cfg(unix)]
pub use std::os::unix::net::{UnixListener as LocalListener, UnixStream as LocalStream};
