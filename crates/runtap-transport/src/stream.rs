//! A connection to a peer, whatever it runs over.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
#[cfg(unix)]
use tokio::net::UnixStream;

/// A connection to a peer: bytes in both directions.
#[derive(Debug)]
pub struct Stream {
    #[cfg(unix)]
    inner: UnixStream,
    #[cfg(not(unix))]
    inner: tokio::io::DuplexStream,
}

/// The process at the other end of a connection, as the kernel knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process id in our pid namespace; `None` if the kernel does not say.
    pub pid: Option<u32>,
    /// Its effective user id when it connected or began to listen.
    pub uid: u32,
}

#[cfg(unix)]
impl Stream {
    /// Two connected streams.
    ///
    /// # Errors
    /// When the system is out of descriptors, or outside of a tokio runtime with I/O.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = UnixStream::pair()?;
        Ok((Self { inner: a }, Self { inner: b }))
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// When the kernel can't say.
    pub fn peer(&self) -> io::Result<Peer> {
        let cred = self.inner.peer_cred()?;
        let pid = cred.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        Ok(Peer { pid, uid: cred.uid() })
    }

    /// Whether the peer is there and has sent nothing that was not read yet: an idle connection that can be used.
    /// Looks at the socket itself, without waiting and without taking anything.
    pub fn is_idle(&self) -> bool {
        self.peek().is_err_and(|error| {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        })
    }

    /// Waits until the peer says something, without taking any of it. `false`: it has closed instead. Cancel safe.
    ///
    /// # Errors
    /// The connection is broken.
    pub async fn heard(&self) -> io::Result<bool> {
        self.inner.async_io(tokio::io::Interest::READABLE, || self.peek()).await.map(|n| n > 0)
    }

    /// Hears nothing of the peer for a while: what it sends gathers in the socket, and wakes nobody.
    ///
    /// # Errors
    /// When the system is out of descriptors or memory.
    pub async fn rest(self, time: Duration) -> io::Result<Self> {
        // A socket that stays with the poller wakes the thread at each write, whoever waits for it.
        let unheard = self.inner.into_std()?;
        tokio::time::sleep(time).await;
        Ok(Self { inner: UnixStream::from_std(unheard)? })
    }

    fn peek(&self) -> io::Result<usize> {
        use rustix::net::RecvFlags;
        let mut byte = [0u8; 1];
        let (n, _) = rustix::net::recv(self.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok(n)
    }

    /// The descriptor, for polling and for passing descriptors on.
    pub fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.inner)
    }
}

#[cfg(unix)]
impl From<UnixStream> for Stream {
    fn from(inner: UnixStream) -> Self {
        Self { inner }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
