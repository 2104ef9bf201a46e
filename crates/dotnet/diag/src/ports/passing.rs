//! Passing ports to another process: as a socket, not by name.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use runtap_transport::{BindOptions, Listener};

use super::Port;

impl Port {
    /// Creates a port from the [`socket`](Self::socket) of a port of another process. Requires a tokio runtime with I/O and
    /// time.
    ///
    /// # Errors
    /// If `socket` is not such a socket, or its file was removed.
    pub fn passed_on(socket: OwnedFd, path: &Path, everybody: bool) -> io::Result<Self> {
        let options = BindOptions::default().everybody(everybody).keeps_name(true);
        Ok(Self::on(Listener::passed_on(socket, path, options)?))
    }

    /// Returns the socket for another process that continues the port; the name stays in use without interruption. Call
    /// [`leave`](Self::leave) afterwards.
    ///
    /// # Errors
    /// If the process is out of descriptors.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.listener.socket()
    }

    /// Closes all connections, and keeps the socket's file for the process that continues the port.
    pub fn leave(self) {
        self.listener.leave_file();
    }
}
