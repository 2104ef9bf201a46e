//! Options of TCP sockets.

use std::io;
use std::os::windows::io::{AsRawSocket, BorrowedSocket};

use windows_sys::Win32::Networking::WinSock::{SO_KEEPALIVE, SOCKET, SOL_SOCKET, setsockopt};

/// Enables keep-alive, so that the operating system detects an unreachable peer.
///
/// # Errors
/// If the option cannot be set.
#[expect(unsafe_code, reason = "calls setsockopt, which reads an integer")]
pub fn keep_alive(socket: BorrowedSocket<'_>) -> io::Result<()> {
    let raw = SOCKET::try_from(socket.as_raw_socket()).map_err(io::Error::other)?;
    let on = 1u32.to_ne_bytes();
    let size = i32::try_from(on.len()).map_err(io::Error::other)?;
    // SAFETY: the socket is open, and `on` has `size` bytes.
    let result = unsafe { setsockopt(raw, SOL_SOCKET, SO_KEEPALIVE, on.as_ptr(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::windows::io::AsSocket as _;

    use super::*;

    #[test]
    fn keep_alive_is_accepted() {
        keep_alive(TcpListener::bind(("127.0.0.1", 0)).unwrap().as_socket()).unwrap();
    }
}
