//! Bridges between Unix sockets and TCP: makes a local runtime, which supports only sockets, appear as a runtime that
//! uses TCP as on phones. Copies bytes and the end of each direction without interpreting them.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

/// Returns a TCP port that leads to a socket, for a runtime that listens on TCP. Remains until the tests end.
pub(crate) fn tcp_to_socket(socket: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming() {
            // A runtime that has exited is unreachable.
            if let (Ok(near), Ok(far)) = (near, UnixStream::connect(&socket)) {
                thread::spawn(move || join(far, near));
            }
        }
    });
    address
}

/// Forwards connections from a runtime at a Unix socket port to a TCP address, for a runtime that connects by TCP.
pub(crate) fn port_to_tcp(port: &Path, address: SocketAddr) {
    let listener = UnixListener::bind(port).unwrap();
    thread::spawn(move || {
        for near in listener.incoming() {
            if let (Ok(near), Ok(far)) = (near, TcpStream::connect(address)) {
                thread::spawn(move || join(near, far));
            }
        }
    });
}

/// Copies both directions until their ends.
fn join(local: UnixStream, tcp: TcpStream) {
    let (mut from_local, mut to_local) = (local.try_clone().unwrap(), local);
    let (mut from_tcp, mut to_tcp) = (tcp.try_clone().unwrap(), tcp);
    let up = thread::spawn(move || {
        let _ = io::copy(&mut from_local, &mut to_tcp);
        let _ = to_tcp.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut from_tcp, &mut to_local);
    let _ = to_local.shutdown(Shutdown::Write);
    let _ = up.join();
}

/// Returns a TCP port that is currently free.
pub(crate) fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
