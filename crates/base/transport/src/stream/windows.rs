//! A connection to a peer on Windows: one end of a named pipe, or of a pipe in memory behind a bridge.
//!
//! A pipe that the other side has closed is at its end, as a socket is: Windows calls that an error.

use std::io;
use std::os::windows::io::AsHandle;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use runtap_os::windows::pipe;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::windows::named_pipe::{NamedPipeClient, NamedPipeServer};

use crate::{Descriptor, Lent, Peer};
use runtap_os::uid_of;

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
    Server(Instance),
    Memory(DuplexStream),
}

/// An instance of a pipe that a listener has made. The fields are dropped in this order.
#[derive(Debug)]
struct Instance {
    /// As long as it is held, the pipe is there.
    _held: Arc<()>,
    server: NamedPipeServer,
}

impl Stream {
    /// A client of a listener, who can tell by `held` that this instance is there.
    pub(crate) fn of_listener(server: NamedPipeServer, held: Arc<()>) -> Self {
        Self { inner: Inner::Server(Instance { _held: held, server }) }
    }

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
            Inner::Server(it) => pipe::client_process(it.server.as_handle())?,
            Inner::Memory(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Peer { pid: Some(pid), uid: uid_of(pid) })
    }

    /// Reads what is there. No bytes: the peer has closed. Cancel safe.
    ///
    /// # Errors
    /// The connection is broken, or is none of the system.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Vec<Descriptor>)> {
        loop {
            self.readable().await?;
            let read = match &self.inner {
                Inner::Client(client) => client.try_read(buffer),
                Inner::Server(it) => it.server.try_read(buffer),
                Inner::Memory(_) => return Err(io::ErrorKind::Unsupported.into()),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if is_end(&error) => return Ok((0, Vec::new())),
                read => return read.map(|n| (n, Vec::new())),
            }
        }
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// Those of writing.
    pub async fn send_all(&self, bytes: &[u8], _none: &[Lent<'_>]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let sent = match &self.inner {
                Inner::Client(client) => {
                    client.writable().await?;
                    client.try_write(rest)
                }
                Inner::Server(it) => {
                    it.server.writable().await?;
                    it.server.try_write(rest)
                }
                Inner::Memory(_) => return Err(io::ErrorKind::Unsupported.into()),
            };
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                sent => rest = rest.get(sent?..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    /// Would tell the peer that nothing more will be sent, and still receive: that pipes can't.
    ///
    /// # Errors
    /// Always: closing is all there is.
    pub fn end_sending(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether the peer is there and has sent nothing that was not read yet: an idle connection that can be used.
    pub fn is_idle(&self) -> bool {
        let there = match &self.inner {
            Inner::Client(client) => pipe::available(client.as_handle()),
            Inner::Server(it) => pipe::available(it.server.as_handle()),
            Inner::Memory(_) => Ok(0),
        };
        there.is_ok_and(|bytes| bytes == 0)
    }

    /// Whether the peer has closed the pipe; what it has sent before may be unread.
    pub fn is_hung_up(&self) -> bool {
        match &self.inner {
            Inner::Client(client) => pipe::available(client.as_handle()).is_err(),
            Inner::Server(it) => pipe::available(it.server.as_handle()).is_err(),
            Inner::Memory(_) => false,
        }
    }

    /// Waits until the peer says something, or closes: which of both, the next reading says. Takes none of it. Cancel
    /// safe.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn readable(&self) -> io::Result<bool> {
        match &self.inner {
            Inner::Client(client) => client.readable().await?,
            Inner::Server(it) => it.server.readable().await?,
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
            Inner::Server(it) => Pin::new(&mut it.server).poll_read(cx, buf),
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
            Inner::Server(it) => Pin::new(&mut it.server).poll_write(cx, buf),
            Inner::Memory(end) => Pin::new(end).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Client(client) => Pin::new(client).poll_flush(cx),
            Inner::Server(it) => Pin::new(&mut it.server).poll_flush(cx),
            Inner::Memory(end) => Pin::new(end).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Inner::Client(client) => Pin::new(client).poll_shutdown(cx),
            Inner::Server(it) => Pin::new(&mut it.server).poll_shutdown(cx),
            Inner::Memory(end) => Pin::new(end).poll_shutdown(cx),
        }
    }
}
