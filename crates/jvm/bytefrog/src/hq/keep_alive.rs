//! Keep-alive, which detects that the peer's machine is gone.

use std::io;
use std::net::TcpStream;

/// Enables keep-alive probes of the operating system.
#[cfg(unix)]
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_keepalive(stream, true)?)
}

#[cfg(windows)]
pub(super) fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use std::os::windows::io::AsSocket as _;

    runtap_os::windows::socket::keep_alive(stream.as_socket())
}
