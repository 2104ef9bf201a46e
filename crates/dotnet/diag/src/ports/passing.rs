//! Ports that another process of ours goes on with: its socket is passed on, not its name.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use runtap_transport::{BindOptions, Listener};

use super::Port;

impl Port {
    /// Goes on with the [`socket`](Self::socket) of a port of another process of ours. Needs a tokio runtime with I/O and
    /// time.
    ///
    /// # Errors
    /// For what is no such socket, or when its file is gone.
    pub fn passed_on(socket: OwnedFd, path: &Path, everybody: bool) -> io::Result<Self> {
        let options = BindOptions::default().everybody(everybody).keeps_name(true);
        Ok(Self::on(Listener::passed_on(socket, path, options)?))
    }

    /// The socket, for a process of ours that goes on with it: from its first moment to its last it has its name.
    /// [`leave`](Self::leave) it then.
    ///
    /// # Errors
    /// Without descriptors.
    pub fn socket(&self) -> io::Result<OwnedFd> {
        self.listener.socket()
    }

    /// Hangs up on everybody, and leaves the socket's file to whoever goes on with it.
    pub fn leave(self) {
        self.listener.leave_file();
    }
}
