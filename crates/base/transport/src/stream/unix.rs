//! A connection to a peer on Unix: a socket. Sending descriptors is in `descriptors`.

mod descriptors;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::Interest;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

pub use self::descriptors::MAX_DESCRIPTORS;
use crate::Peer;

/// A bidirectional connection to a peer.
#[derive(Debug)]
pub struct Stream {
    inner: UnixStream,
}

impl Stream {
    /// Creates two connected streams.
    ///
    /// # Errors
    /// If there are too many open files, or if called outside of a tokio runtime with I/O.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = UnixStream::pair()?;
        Ok((Self { inner: a }, Self { inner: b }))
    }

    /// Returns the process at the other end.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn peer(&self) -> io::Result<Peer> {
        let cred = self.inner.peer_cred()?;
        let pid = cred.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        Ok(Peer { pid, uid: cred.uid() })
    }

    /// Returns whether the connection is open and the peer has sent nothing that is unread. Queries the socket without
    /// blocking or consuming data.
    pub fn is_idle(&self) -> bool {
        self.peek().is_err_and(|error| {
            matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        })
    }

    /// Waits until data can be read, without consuming it. Returns false if the peer closed the connection. Cancel
    /// safe.
    ///
    /// # Errors
    /// If the connection is broken.
    pub async fn readable(&self) -> io::Result<bool> {
        self.inner.async_io(Interest::READABLE, || self.peek()).await.map(|n| n > 0)
    }

    /// Converts it into a socket of the standard library, which is non-blocking.
    ///
    /// # Errors
    /// If the socket cannot be removed from tokio's poller.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixStream> {
        self.inner.into_std()
    }

    fn peek(&self) -> io::Result<usize> {
        use rustix::net::RecvFlags;
        let mut byte = [0u8; 1];
        let (n, _) = rustix::net::recv(self.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok(n)
    }

    /// Ends sending. Data of the peer can still be received.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn end_sending(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(self.as_fd(), rustix::net::Shutdown::Write)?)
    }

    /// Returns whether the peer closed its socket, as opposed to ending sending. Only meaningful before this side has
    /// [ended sending](Self::end_sending).
    pub fn is_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let mut polled = [PollFd::new(&self.inner, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
            && polled.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// Borrows the descriptor, for polling and for sending descriptors.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

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
