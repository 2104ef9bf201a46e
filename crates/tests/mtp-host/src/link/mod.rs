//! The transports of frames and replies: sockets and HTTP.

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
pub(crate) use pipe::{Pipe, Stream, connect_with_retry};

use crate::{HostError, Server};
use http::Http;

/// The time limit for a server to start listening. `dotnet test` starts an application before or while it creates the
/// socket; 0 to 9 ms were measured. The platform's own hosts wait forever, and are left behind if the server has
/// crashed.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection over either transport.
#[derive(Debug)]
pub(crate) enum Link {
    Pipe(Pipe),
    Http(Http),
}

impl Link {
    pub(crate) fn connect(server: &Server, timeout: Duration) -> Result<Self, HostError> {
        match server {
            Server::Pipe(path) => Pipe::connect(path, timeout).map(Self::Pipe),
            Server::Http { endpoint, token } => Http::new(endpoint, token, timeout).map(Self::Http),
        }
    }

    /// Sends a frame and waits for its reply.
    pub(crate) fn exchange(&mut self, frame: &[u8], connection: &mut Connection) -> Result<Reply, HostError> {
        match self {
            Self::Pipe(pipe) => pipe.exchange(frame, connection),
            Self::Http(http) => http.exchange(frame, connection),
        }
    }

    /// Performs the handshake. The reply must arrive within `timeout`, because a process that only listens is not a
    /// server. Later replies have no time limit.
    pub(crate) fn greet(
        &mut self,
        connection: &mut Connection,
        handshake: Handshake,
        timeout: Duration,
    ) -> Result<(Version, Handshake), HostError> {
        let frame = connection.handshake(handshake)?;
        match self.exchange_within(&frame, connection, timeout)? {
            Reply::Accepted { version, handshake } => Ok((version, handshake)),
            _ => Err(HostError::Rejected(Versions::all())),
        }
    }

    /// Like [`exchange`](Self::exchange), with a time limit.
    pub(crate) fn exchange_within(
        &mut self,
        frame: &[u8],
        connection: &mut Connection,
        timeout: Duration,
    ) -> Result<Reply, HostError> {
        self.set_limit(ReplyLimit(Some(timeout)))?;
        let reply = self.exchange(frame, connection).map_err(|error| match &error {
            HostError::Lost(lost)
                if matches!(lost.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                HostError::Silent { waited: timeout }
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

    /// Returns whether the server closed the connection while no reply was pending. Always `false` over HTTP, where a
    /// closed connection is normal.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_gone(),
            Self::Http(_) => false,
        }
    }

    /// Returns whether the transport supports a control pipe.
    pub(crate) fn has_control(&self) -> bool {
        matches!(self, Self::Pipe(_))
    }
}

/// The time limit for a complete reply, regardless of the number of chunks. `None` for no limit, because a server may
/// be busy.
#[derive(Debug, Clone, Copy)]
struct ReplyLimit(Option<Duration>);

/// The deadline of a complete reply.
#[derive(Debug, Clone, Copy)]
struct Deadline(Option<Instant>);

impl ReplyLimit {
    const NONE: Self = Self(None);

    fn deadline(self) -> Deadline {
        Deadline(self.0.and_then(|limit| Instant::now().checked_add(limit)))
    }
}

impl Deadline {
    /// Returns the remaining time for the next chunk, or `None` without a deadline.
    fn left(self) -> io::Result<Option<Duration>> {
        let Some(deadline) = self.0 else { return Ok(None) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

/// Formats a path for errors.
fn path_text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
