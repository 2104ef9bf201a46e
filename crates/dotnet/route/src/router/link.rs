//! A connection of either kind, and where they are accepted. Knows nothing of what passes.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use runtap_transport::{Listener, Stream, keep_alive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A connection: a socket of this machine, or TCP.
#[derive(Debug)]
#[non_exhaustive]
pub enum Link {
    /// A Unix socket.
    Local(Stream),
    /// TCP.
    Tcp(TcpStream),
}

impl Link {
    /// A TCP connection that sends what is written at once, and notices when the other machine is gone.
    pub fn tcp(stream: TcpStream) -> Self {
        // It works without, too.
        let _ = stream.set_nodelay(true);
        let _ = keep_alive(&stream);
        Self::Tcp(stream)
    }

    /// Waits until the other side says something, without taking any of it. `false`: it has closed instead. Cancel safe.
    ///
    /// # Errors
    /// The connection is broken.
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

/// Where connections come in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Gate {
    /// A socket that only our own user and root get in by: the kernel is asked, for each connection.
    Local(Box<Listener>),
    /// The same under two names.
    Twice(Box<[Listener; 2]>),
    /// TCP, which says nothing of who comes.
    Tcp(TcpListener),
}

impl Gate {
    /// Listens on the first of these addresses that is free.
    ///
    /// # Errors
    /// None is.
    pub async fn tcp(addresses: &[SocketAddr]) -> io::Result<Self> {
        TcpListener::bind(addresses).await.map(Self::Tcp)
    }

    /// The next connection, and who it is. Cancel safe.
    ///
    /// # Errors
    /// Being out of descriptors is temporary.
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

impl fmt::Display for Gate {
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
