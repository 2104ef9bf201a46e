//! A client's connection in two halves for reading and writing, which can detect whether the client is gone.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::link::Link;

/// One half. Each is used in one direction only.
#[derive(Debug, Clone)]
pub(crate) struct Half(Arc<Mutex<Link>>);

impl Half {
    pub(crate) fn both(link: Link) -> (Self, Self) {
        let half = Self(Arc::new(Mutex::new(link)));
        (half.clone(), half)
    }

    /// Whether the client has closed the connection completely. For TCP this is known only after a write.
    pub(crate) fn is_gone(&self) -> bool {
        match &*self.lock() {
            Link::Local(stream) => stream.is_hung_up(),
            Link::Tcp(_) => false,
        }
    }

    /// Whether the client may have closed the connection completely, given that it has stopped sending.
    pub(crate) fn may_be_gone(&self) -> bool {
        matches!(&*self.lock(), Link::Tcp(_)) || self.is_gone()
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        // Code under the lock can't panic in the middle of a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Half {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(cx, buf)
    }
}

impl AsyncWrite for Half {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(cx)
    }
}
