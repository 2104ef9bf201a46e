//! How frames reach the server and replies come back: by a socket or by HTTP. The one place that knows both.

mod endpoint;
mod http;
mod pipe;
mod response;

#[cfg(fuzzing)]
pub(crate) use response::ResponseReader;

use std::path::Path;
use std::time::Duration;

use runtap_mtp_proto::host::{Connection, Reply};

pub use endpoint::HttpError;
pub(crate) use pipe::{Pipe, Stream, dial};

use crate::{HostError, Server};
use http::Http;

/// How long a server may take to appear. `dotnet test` starts an application before or while it makes the socket: 0 to 9 ms
/// were needed. The platform's own hosts wait without end, and stay behind if the server has died.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A connection of whichever kind.
#[derive(Debug)]
pub(crate) enum Link {
    Pipe(Pipe),
    Http(Http),
}

impl Link {
    pub(crate) fn connect(server: &Server, patience: Duration) -> Result<Self, HostError> {
        match server {
            Server::Pipe(path) => Pipe::connect(path, patience).map(Self::Pipe),
            Server::Http { endpoint, token } => Http::new(endpoint, token, patience).map(Self::Http),
        }
    }

    /// Sends a frame and waits for its reply.
    pub(crate) fn exchange(&mut self, frame: &[u8], connection: &mut Connection) -> Result<Reply, HostError> {
        match self {
            Self::Pipe(pipe) => pipe.exchange(frame, connection),
            Self::Http(http) => http.exchange(frame, connection),
        }
    }

    /// How long the reply to a message may take; `None`: for ever, as a server may be busy. HTTP has limits of its own.
    pub(crate) fn set_patience(&self, patience: Option<Duration>) -> Result<(), HostError> {
        match self {
            Self::Pipe(pipe) => pipe.set_patience(patience),
            Self::Http(_) => Ok(()),
        }
    }

    /// Whether the server has closed the connection, while no reply is due. Over HTTP that says nothing.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_gone(),
            Self::Http(_) => false,
        }
    }

    /// Whether the server can offer a control pipe.
    pub(crate) fn has_control(&self) -> bool {
        matches!(self, Self::Pipe(_))
    }
}

/// A path as errors show it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
