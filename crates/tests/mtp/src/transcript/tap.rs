//! A socket for one application, on which everything that it and its server say is written down.

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
use super::serve::Answering;
use super::tally::Tally;

/// Who answers the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// The one that listens on this socket: everything is passed on.
    At(PathBuf),
    /// We do, as `runtap test` does: all versions, tests that have begun, a control pipe.
    Ourselves(Mode),
}

/// The socket that a server's name on a command line, or in a handshake, stands for: a path as it is, any other name as .NET
/// makes a path of it.
pub fn socket_path(name: &OsStr) -> PathBuf {
    system::socket_path(name)
}

/// Listens for one application. Dropping it closes all connections.
#[derive(Debug)]
pub struct Tap {
    // The sockets go before the directory that they are in.
    data: Socket,
    parts: Parts,
    _scratch: Scratch,
}

#[derive(Debug)]
enum Parts {
    Relay(Arc<Relay>),
    Answering(Arc<Answering>, Socket),
}

impl Tap {
    /// Listens at once, in a directory that only we can enter.
    ///
    /// # Errors
    /// There is no such directory, or no socket in it.
    pub fn listen(server: Server, journal: &Arc<Journal>) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let place = |name: &str| socket_in(scratch.path(), name);
        let (data, parts) = match server {
            Server::At(server) => {
                let relay = Arc::new(Relay::new(Arc::clone(journal), scratch.path().to_owned()));
                let own = Arc::clone(&relay);
                let data = Socket::listen(place("d"), move |_, stream| {
                    own.serve(&stream, &server, Pipe::Data);
                })?;
                (data, Parts::Relay(relay))
            }
            Server::Ourselves(mode) => {
                let answering = Arc::new(Answering::new(mode, Arc::clone(journal), &place("c")));
                let serve = |pipe| {
                    let own = Arc::clone(&answering);
                    move |_, stream: LocalStream| own.serve(&stream, pipe)
                };
                let control = Socket::listen(place("c"), serve(Pipe::Control))?;
                let data = Socket::listen(place("d"), serve(Pipe::Data))?;
                (data, Parts::Answering(answering, control))
            }
        };
        Ok(Self { data, parts, _scratch: scratch })
    }

    /// What the application is to dial.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// Waits until no connection is open, closes those that still are at `deadline`, and gives what was heard; `None` for
    /// what was only passed on. `code` is that of the application, if it is known.
    pub fn close(mut self, deadline: Instant, code: Option<i32>) -> Option<Tally> {
        if let Parts::Relay(relay) = &self.parts {
            relay.stop_dialling();
        }
        self.data.close(deadline);
        match &mut self.parts {
            Parts::Relay(relay) => {
                relay.close(deadline);
                None
            }
            Parts::Answering(answering, control) => {
                control.close(deadline);
                Some(answering.finish(code))
            }
        }
    }
}
