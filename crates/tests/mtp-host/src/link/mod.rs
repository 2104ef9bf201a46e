//! How frames reach the server and replies come back: by a socket or by HTTP. The one place that knows both.

mod endpoint;
mod http;
mod pipe;
mod response;

#[cfg(fuzzing)]
pub(crate) use response::ResponseReader;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use runtap_mtp_proto::host::{Connection, Reply};
use runtap_mtp_proto::{Handshake, Version, Versions};

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

    /// The handshake, whose reply has to be there within `patience`: whoever only listens is no server. Later replies may
    /// take their time.
    pub(crate) fn greet(
        &mut self,
        connection: &mut Connection,
        handshake: Handshake,
        patience: Duration,
    ) -> Result<(Version, Handshake), HostError> {
        let frame = connection.handshake(handshake)?;
        match self.exchange_within(&frame, connection, patience)? {
            Reply::Accepted { version, handshake } => Ok((version, handshake)),
            _ => Err(HostError::Rejected(Versions::all())),
        }
    }

    /// As [`exchange`](Self::exchange), if it does not take longer.
    pub(crate) fn exchange_within(
        &mut self,
        frame: &[u8],
        connection: &mut Connection,
        patience: Duration,
    ) -> Result<Reply, HostError> {
        self.set_limit(ReplyLimit(Some(patience)))?;
        let reply = self.exchange(frame, connection).map_err(|error| match &error {
            HostError::Lost(lost)
                if matches!(lost.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                HostError::Silent { waited: patience }
            }
            _ => error,
        })?;
        self.set_limit(ReplyLimit::NONE)?;
        Ok(reply)
    }

    fn set_limit(&mut self, limit: ReplyLimit) -> Result<(), HostError> {
        match self {
            Self::Pipe(pipe) => pipe.set_limit(limit),
            Self::Http(http) => http.set_limit(limit),
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

/// How long a whole reply may take, in however many pieces it comes; `None`: for ever, as a server may be busy.
#[derive(Debug, Clone, Copy)]
struct ReplyLimit(Option<Duration>);

/// When it has to be there.
#[derive(Debug, Clone, Copy)]
struct Until(Option<Instant>);

impl ReplyLimit {
    const NONE: Self = Self(None);

    fn until(self) -> Until {
        Until(self.0.and_then(|limit| Instant::now().checked_add(limit)))
    }
}

impl Until {
    /// What is left for the next piece.
    fn left(self) -> io::Result<Option<Duration>> {
        let Some(until) = self.0 else { return Ok(None) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

/// A path as errors show it.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
