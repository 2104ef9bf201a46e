//! Connections over Unix sockets or TCP, and listeners for both.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use runtap_transport::{Listener, Stream, keep_alive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A connection over a local socket or TCP.
#[derive(Debug)]
#[non_exhaustive]
pub enum Link {
    /// A Unix socket.
    Local(Stream),
    /// TCP.
    Tcp(TcpStream),
}

impl Link {
    /// Creates a TCP connection that sends data without delay and detects when the other machine is gone.
    pub fn tcp(stream: TcpStream) -> Self {
        // The connection works without these options, too.
        let _ = stream.set_nodelay(true);
        let _ = keep_alive(&stream);
        Self::Tcp(stream)
    }

    /// Waits until data can be read, without reading it. Returns `false` if the peer has closed the connection. Cancel safe.
    ///
    /// # Errors
    /// Returns an error if the connection is broken.
    pub async fn readable(&self) -> io::Result<bool> {
        match self {
            Self::Local(stream) => stream.readable().await,
            Self::Tcp(stream) => stream.peek(&mut [0]).await.map(|n| n > 0),
        }
    }
}

impl AsyncRead for Link {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Local(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Local(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Local(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Local(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A listener for connections.
#[derive(Debug)]
#[non_exhaustive]
pub enum Acceptor {
    /// A local socket that only the current user and root can connect to, as verified with the kernel for each connection.
    Local(Box<Listener>),
    /// A local socket with two names.
    Twice(Box<[Listener; 2]>),
    /// A TCP port, whose peers are not identified.
    Tcp(TcpListener),
}

impl Acceptor {
    /// Listens on the first of these addresses that is free.
    ///
    /// # Errors
    /// Returns an error if none is free.
    pub async fn tcp(addresses: &[SocketAddr]) -> io::Result<Self> {
        TcpListener::bind(addresses).await.map(Self::Tcp)
    }

    /// Accepts the next connection. Returns it with a description of the peer. Cancel safe.
    ///
    /// # Errors
    /// Running out of descriptors is temporary.
    pub async fn accept(&self) -> io::Result<(Link, String)> {
        let (stream, peer) = match self {
            Self::Local(listener) => listener.accept().await?,
            Self::Twice(both) => {
                let [one, other] = &**both;
                tokio::select! {
                    accepted = one.accept() => accepted?,
                    accepted = other.accept() => accepted?,
                }
            }
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                return Ok((Link::tcp(stream), address.to_string()));
            }
        };
        let who = match peer.pid {
            Some(pid) => format!("process {pid} of user {}", peer.uid),
            None => format!("a process of user {}", peer.uid),
        };
        Ok((Link::Local(stream), who))
    }
}

impl fmt::Display for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(listener) => listener.path().display().fmt(f),
            Self::Twice(both) => {
                let [listener, _] = &**both;
                listener.path().display().fmt(f)
            }
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(address) => address.fmt(f),
                Err(_closed) => f.write_str("a TCP port"),
            },
        }
    }
}
