//! TCP keep-alive.

use std::io;

use tokio::net::TcpStream;

/// Enables keep-alive, so that the operating system detects an unreachable peer.
///
/// # Errors
/// If the option cannot be set.
#[cfg(unix)]
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_keepalive(stream, true)?)
}

/// Enables keep-alive, so that the operating system detects an unreachable peer.
///
/// # Errors
/// If the option cannot be set.
#[cfg(windows)]
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use std::os::windows::io::AsSocket as _;

    runtap_os::windows::socket::keep_alive(stream.as_socket())
}
