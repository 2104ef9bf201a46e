//! A socket that records all messages between one application and its server.

#[cfg_attr(unix, path = "tap/unix.rs")]
#[cfg_attr(windows, path = "tap/windows.rs")]
mod system;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::{Pipe as Socket, Scratch, socket_in};
use runtap_mtp_proto::server::{Mode, Pipe};
use runtap_transcript::Journal;
use runtap_transport::LocalStream;

use super::relay::Relay;
use super::serve::RecordingServer;
use super::tally::Tally;

/// The server of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// The server that listens on this socket: messages are forwarded.
    At(PathBuf),
    /// The recorder itself, which replies as `runtap test` does: with all versions, test starts and a control pipe.
    Ourselves(Mode),
}

/// Returns the socket for a server's name on a command line or in a handshake: a path is unchanged, any other name is converted
/// as in .NET.
pub fn socket_path(name: &OsStr) -> PathBuf {
    system::socket_path(name)
}

/// Listens for one application. Dropping the tap closes all connections.
#[derive(Debug)]
pub struct Tap {
    // Declared first, so that the sockets are dropped before their directory.
    data: Socket,
    mode: TapMode,
    _scratch: Scratch,
}

#[derive(Debug)]
enum TapMode {
    Relay(Arc<Relay>),
    RecordingServer(Arc<RecordingServer>, Socket),
}

impl Tap {
    /// Starts to listen, in a private directory.
    ///
    /// # Errors
    /// Fails if the directory or a socket can't be created.
    pub fn listen(server: Server, journal: &Arc<Journal>) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let socket_path_in = |name: &str| socket_in(scratch.path(), name);
        let (data, mode) = match server {
            Server::At(server) => {
                let relay = Arc::new(Relay::new(Arc::clone(journal), scratch.path().to_owned()));
                let own = Arc::clone(&relay);
                let data = Socket::listen(socket_path_in("d"), move |_, stream| {
                    own.serve(&stream, &server, Pipe::Data);
                })?;
                (data, TapMode::Relay(relay))
            }
            Server::Ourselves(mode) => {
                let answering =
                    Arc::new(RecordingServer::new(mode, Arc::clone(journal), &socket_path_in("c")));
                let serve = |pipe| {
                    let own = Arc::clone(&answering);
                    move |_, stream: LocalStream| own.serve(&stream, pipe)
                };
                let control = Socket::listen(socket_path_in("c"), serve(Pipe::Control))?;
                let data = Socket::listen(socket_path_in("d"), serve(Pipe::Data))?;
                (data, TapMode::RecordingServer(answering, control))
            }
        };
        Ok(Self { data, mode, _scratch: scratch })
    }

    /// Returns the path that the application has to connect to.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// Waits until all connections are closed, closes the remaining ones at `deadline`, and returns the application's results;
    /// `None` if its messages were forwarded. `code` is the application's exit code, if known.
    pub fn close(mut self, deadline: Instant, code: Option<i32>) -> Option<Tally> {
        if let TapMode::Relay(relay) = &self.mode {
            relay.stop_connecting();
        }
        self.data.close(deadline);
        match &mut self.mode {
            TapMode::Relay(relay) => {
                relay.close(deadline);
                None
            }
            TapMode::RecordingServer(answering, control) => {
                control.close(deadline);
                Some(answering.finish(code))
            }
        }
    }
}
