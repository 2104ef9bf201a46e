//! TCP that notices when the other machine is gone.

use std::io;

use tokio::net::TcpStream;

/// Has the system ask the other machine now and then whether it is there.
///
/// # Errors
/// The system does not.
#[cfg(unix)]
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_keepalive(stream, true)?)
}

/// The same.
///
/// # Errors
/// The system does not.
#[cfg(windows)]
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use std::os::windows::io::AsSocket as _;

    runtap_os::windows::socket::keep_alive(stream.as_socket())
}
