//! A socket for one application, on which everything that it and its server say is written down.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use runtap_mtp::{Pipe as Socket, Scratch};
use runtap_mtp_proto::server::{Mode, Pipe};

use crate::journal::Journal;
use crate::relay::Relay;
use crate::serve::Answering;
use crate::tally::Tally;

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
    socket_of(name, std::env::var_os("TMPDIR"))
}

/// .NET: a rooted name is a path, any other one stands for `CoreFxPipe_NAME` in the directory for temporary files.
fn socket_of(name: &OsStr, temporary: Option<OsString>) -> PathBuf {
    if name.as_bytes().starts_with(b"/") {
        return PathBuf::from(name);
    }
    let directory = temporary.filter(|value| !value.is_empty()).unwrap_or_else(|| "/tmp".into());
    let mut file = OsString::from("CoreFxPipe_");
    file.push(name);
    Path::new(&directory).join(file)
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
        let place = |name: &str| scratch.path().join(name);
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
                    move |_, stream: UnixStream| own.serve(&stream, pipe)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_dotnet() {
        let of = |name: &str, temporary: Option<&str>| {
            socket_of(OsStr::new(name), temporary.map(OsString::from)).display().to_string()
        };
        assert_eq!(of("/tmp/a", Some("/x")), "/tmp/a");
        assert_eq!(of("a", Some("/x")), "/x/CoreFxPipe_a");
        assert_eq!(of("a", Some("")), "/tmp/CoreFxPipe_a");
        assert_eq!(of("a", None), "/tmp/CoreFxPipe_a");
    }
}
