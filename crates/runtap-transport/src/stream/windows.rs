//! A connection to a peer on Windows: one end of a named pipe, or of a pipe in memory behind a bridge.
//!
//! A pipe that the other side has closed is at its end, as a socket is: Windows calls that an error.

use std::io;
use std::os::windows::io::AsHandle;
use std::pin::Pin;
use std::task::{Context, Poll};

use runtap_windows::pipe;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::windows::named_pipe::{NamedPipeClient, NamedPipeServer};

use crate::Peer;
use crate::user::uid_of;

/// The pipe was disconnected by its server. The standard library has no kind for it.
const ERROR_PIPE_NOT_CONNECTED: i32 = 233;

/// A connection to a peer: bytes in both directions.
#[derive(Debug)]
pub struct Stream {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Client(NamedPipeClient),
    Server(NamedPipeServer),
    Memory(DuplexStream),
}

impl Stream {
    /// Two connected streams.
    ///
    /// # Errors
    /// None here.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = tokio::io::duplex(64 << 10);
        Ok((Self::from(a), Self::from(b)))
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// When the system can't say, and for what is no pipe of the system.
    pub fn peer(&self) -> io::Result<Peer> {
        let pid = match &self.inner {
            Inner::Client(client) => pipe::server_process(client.as_handle())?,
            Inner::Server(server) => pipe::client_process(server.as_handle())?,
            Inner::Memory(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Peer { pid: Some(pid), uid: uid_of(pid) })
    }

    /// Waits until the peer says something, or closes: which of both, the next reading says. Takes none of it. Cancel
    /// safe.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn readable(&self) -> io::Result<bool> {
        match &self.inner {
            Inner::Client(client) => client.readable().await?,
            Inner::Server(server) => server.readable().await?,
            Inner::Memory(_) => {}
        }
        Ok(true)
    }
}

impl From<NamedPipeClient> for Stream {
    fn from(client: NamedPipeClient) -> Self {
        Self { inner: Inner::Client(client) }
    }
}

impl From<NamedPipeServer> for Stream {
    fn from(server: NamedPipeServer) -> Self {
        Self { inner: Inner::Server(server) }
    }
}

impl From<DuplexStream> for Stream {
    fn from(end: DuplexStream) -> Self {
        Self { inner: Inner::Memory(end) }
    }
}

/// Whether the other side has closed the pipe.
fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || error.raw_os_error() == Some(ERROR_PIPE_NOT_CONNECTED)
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = match &mut self.inner {
            Inner::Client(client) => Pin::new(client).poll_read(cx, buf),
            Inner::Server(server) => Pin::new(server).poll_read(cx, buf),
            Inner::Memory(end) => Pin::new(end).poll_read(cx, buf),
        };
        read.map(|read| match read {
            Err(error) if is_end(&error) => Ok(()),
            read => read,
        })
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.inner {
            Inner::Client(client) => Pin::new(client).poll_write(cx, buf),
            Inner::Server(server) => Pin::new(server).poll_write(cx, buf),
            Inner::Memory(end) => Pin::new(end).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Client(client) => Pin::new(client).poll_flush(cx),
            Inner::Server(server) => Pin::new(server).poll_flush(cx),
            Inner::Memory(end) => Pin::new(end).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Client(client) => Pin::new(client).poll_shutdown(cx),
            Inner::Server(server) => Pin::new(server).poll_shutdown(cx),
            Inner::Memory(end) => Pin::new(end).poll_shutdown(cx),
        }
    }
}
