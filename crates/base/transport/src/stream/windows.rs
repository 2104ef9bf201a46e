//! A connection to a peer on Windows: a named pipe, or an in-memory pipe behind a bridge.
//!
//! The end of a pipe is reported as the end of the stream, like for sockets, although Windows returns an error.

use std::io;
use std::os::windows::io::AsHandle;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use runtap_os::windows::pipe;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::net::windows::named_pipe::{NamedPipeClient, NamedPipeServer};

use crate::{BorrowedDescriptor, Descriptor, Peer};
use runtap_os::uid_of;

/// The server disconnected the pipe. The standard library has no error kind for this.
const ERROR_PIPE_NOT_CONNECTED: i32 = 233;

/// A bidirectional connection to a peer.
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

/// A pipe instance created by a listener. The fields are dropped in this order.
#[derive(Debug)]
struct Instance {
    /// Shows the listener that this instance exists.
    _held: Arc<()>,
    server: NamedPipeServer,
}

impl Stream {
    /// Creates the stream of a listener's client. `held` shows the listener that this instance exists.
    pub(crate) fn of_listener(server: NamedPipeServer, held: Arc<()>) -> Self {
        Self { inner: Inner::Server(Instance { _held: held, server }) }
    }

    /// Creates two connected streams.
    ///
    /// # Errors
    /// Never.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = tokio::io::duplex(64 << 10);
        Ok((Self::from(a), Self::from(b)))
    }

    /// Returns the process at the other end.
    ///
    /// # Errors
    /// If the operating system does not report it, or for an in-memory pipe.
    pub fn peer(&self) -> io::Result<Peer> {
        let pid = match &self.inner {
            Inner::Client(client) => pipe::server_process(client.as_handle())?,
            Inner::Server(it) => pipe::client_process(it.server.as_handle())?,
            Inner::Memory(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Ok(Peer { pid: Some(pid), uid: uid_of(pid) })
    }

    /// Receives available bytes. Returns 0 bytes if the peer closed the connection. Cancel safe.
    ///
    /// # Errors
    /// If the connection is broken, or for an in-memory pipe.
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
    /// If writing fails.
    pub async fn send_all(&self, bytes: &[u8], _none: &[BorrowedDescriptor<'_>]) -> io::Result<()> {
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

    /// Fails, because pipes cannot end sending and continue receiving.
    ///
    /// # Errors
    /// Always.
    pub fn end_sending(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns whether the connection is open and the peer has sent nothing that is unread.
    pub fn is_idle(&self) -> bool {
        let there = match &self.inner {
            Inner::Client(client) => pipe::available(client.as_handle()),
            Inner::Server(it) => pipe::available(it.server.as_handle()),
            Inner::Memory(_) => Ok(0),
        };
        there.is_ok_and(|bytes| bytes == 0)
    }

    /// Returns whether the peer closed the pipe. Data sent before may be unread.
    pub fn is_hung_up(&self) -> bool {
        match &self.inner {
            Inner::Client(client) => pipe::available(client.as_handle()).is_err(),
            Inner::Server(it) => pipe::available(it.server.as_handle()).is_err(),
            Inner::Memory(_) => false,
        }
    }

    /// Waits until data can be read or the peer closes the connection, without consuming data. The next read shows
    /// which. Cancel safe.
    ///
    /// # Errors
    /// If the connection is broken.
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

/// Returns whether the peer closed the pipe.
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
