//! A connection to a peer on Unix: a socket.

use std::io;
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

#[cfg(target_os = "linux")]
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use tokio::io::Interest;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

use crate::Peer;

/// How many descriptors are received with one read, or sent with one write. Any more are closed.
#[cfg(target_os = "linux")]
pub const MAX_DESCRIPTORS: usize = 8;

/// A connection to a peer: bytes in both directions.
#[derive(Debug)]
pub struct Stream {
    inner: UnixStream,
}

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
    pub async fn readable(&self) -> io::Result<bool> {
        self.inner.async_io(Interest::READABLE, || self.peek()).await.map(|n| n > 0)
    }

    /// The socket without the executor's poller. It does not block.
    ///
    /// # Errors
    /// When the system can't take it out of the poller.
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixStream> {
        self.inner.into_std()
    }

    fn peek(&self) -> io::Result<usize> {
        use rustix::net::RecvFlags;
        let mut byte = [0u8; 1];
        let (n, _) = rustix::net::recv(self.as_fd(), &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok(n)
    }

    /// Sends one byte and with it a copy of `descriptor`, as a message of its own.
    ///
    /// # Errors
    /// Those of writing.
    #[cfg(target_os = "linux")]
    pub async fn send_descriptor(&self, byte: [u8; 1], descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let descriptors = [descriptor];
            // The buffer has room for exactly this.
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
            let sent = rustix::net::sendmsg(
                &self.inner,
                &[io::IoSlice::new(&byte)],
                &mut ancillary,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            )?;
            if sent == byte.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
        };
        self.inner.async_io(Interest::WRITABLE, send).await
    }

    /// Reads what is there, with the descriptors that came along, at most [`MAX_DESCRIPTORS`] of them. No bytes: the peer
    /// will send nothing more. Cancel safe.
    ///
    /// # Errors
    /// The connection is broken.
    #[cfg(target_os = "linux")]
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let receive = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let received = rustix::net::recvmsg(
                &self.inner,
                &mut [io::IoSliceMut::new(buffer)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT,
            )?;
            let mut descriptors = Vec::new();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    descriptors.extend(rights);
                }
            }
            Ok((received.bytes, descriptors))
        };
        self.inner.async_io(Interest::READABLE, receive).await
    }

    /// Sends all bytes; with the first of them copies of the descriptors. A message that fits into the socket's buffer is
    /// sent in one piece.
    ///
    /// # Errors
    /// Those of writing; more descriptors than [`MAX_DESCRIPTORS`].
    #[cfg(target_os = "linux")]
    pub async fn send_all(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let (mut rest, mut with) = (bytes, descriptors);
        while !rest.is_empty() {
            let send = || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                if !with.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(with)) {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
                }
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                Ok(rustix::net::sendmsg(&self.inner, &[io::IoSlice::new(rest)], &mut ancillary, flags)?)
            };
            match self.inner.async_io(Interest::WRITABLE, send).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => (rest, with) = (rest.get(sent..).unwrap_or_default(), &[]),
            }
        }
        Ok(())
    }

    /// Tells the peer that nothing more will be sent; what it sends is still received.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn end_sending(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(self.as_fd(), rustix::net::Shutdown::Write)?)
    }

    /// Whether the peer has closed its socket, and has not just ended sending. Only meaningful before this side has
    /// [ended sending](Self::end_sending).
    pub fn is_hung_up(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let mut polled = [PollFd::new(&self.inner, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
            && polled.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
    }

    /// The descriptor, for polling and for passing descriptors on.
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{IoSliceMut, Read, Write};

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn what_is_received_is_sent_on_with_its_descriptors() {
        let (near, entrance) = Stream::pair().unwrap();
        let (exit, far) = Stream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        near.send_all(b"r", &[writer.as_fd(), reader.as_fd()]).await.unwrap();
        near.send_all(&[1; 3000], &[]).await.unwrap();
        drop(writer);
        let mut buffer = [0; 4096];
        let mut got = Vec::new();
        while got.len() < 3001 {
            let (n, descriptors) = entrance.receive(&mut buffer).await.unwrap();
            let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
            exit.send_all(&buffer[..n], &borrowed).await.unwrap();
            let (n, descriptors) = far.receive(&mut buffer).await.unwrap();
            if got.is_empty() {
                let [copy, _] = <[_; 2]>::try_from(descriptors).unwrap();
                std::fs::File::from(copy).write_all(b"through two").unwrap();
            }
            got.extend_from_slice(&buffer[..n]);
        }
        assert_eq!((got[0], &got[1..]), (b'r', &[1; 3000][..]));
        // The copies on the way are closed: nobody else can write.
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through two");
    }

    #[tokio::test]
    async fn a_side_that_has_said_all_is_not_one_that_is_gone() {
        let (near, far) = Stream::pair().unwrap();
        assert!(!near.is_hung_up());
        far.end_sending().unwrap();
        assert_eq!(near.receive(&mut [0; 8]).await.unwrap().0, 0);
        assert!(!near.is_hung_up());
        near.send_all(b"still heard", &[]).await.unwrap();
        drop(far);
        assert!(near.is_hung_up());
        let error = near.receive(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn a_descriptor_comes_with_its_own_byte() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let mut stream = Stream::from(UnixStream::from_std(near).unwrap());
        let (mut reader, mut writer) = io::pipe().unwrap();
        stream.write_all(b"request").await.unwrap();
        stream.send_descriptor([7], writer.as_fd()).await.unwrap();

        let mut request = [0; 7];
        (&far).read_exact(&mut request).unwrap();
        assert_eq!(&request, b"request");
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            &far,
            &mut [IoSliceMut::new(&mut byte)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
        .unwrap();
        assert_eq!((received.bytes, byte), (1, [7]));
        let descriptors: Vec<_> = ancillary
            .drain()
            .flat_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => descriptors.collect(),
                _ => Vec::new(),
            })
            .collect();
        // The copy writes into the same pipe as the original.
        let [copy] = <[_; 1]>::try_from(descriptors).unwrap();
        std::fs::File::from(copy).write_all(b"through the copy").unwrap();
        writer.write_all(b", and the original").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through the copy, and the original");
        // A peer that is gone is an error, not a signal.
        drop(far);
        let error = stream.send_descriptor([7], reader.as_fd()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
