//! Between Unix sockets and TCP: makes of a runtime of this machine, which has sockets only, one that uses TCP as those of
//! phones do. Copies bytes and the end of each direction, and knows nothing of them.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

/// A TCP port that leads to a socket: a runtime that listens by TCP. Lives as long as the tests.
pub(crate) fn tcp_to_socket(socket: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for near in listener.incoming() {
            // A runtime that has ended is not there for anybody.
            if let (Ok(near), Ok(far)) = (near, UnixStream::connect(&socket)) {
                thread::spawn(move || join(far, near));
            }
        }
    });
    address
}

/// A port at which a runtime dials in by its socket, and leads on by TCP: a runtime that dials by TCP.
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

/// Copies both directions to their ends.
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

/// A TCP port that is free now.
pub(crate) fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
