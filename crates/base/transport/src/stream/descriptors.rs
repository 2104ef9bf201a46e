//! File descriptors that are sent over a socket along with bytes.
//! Source: `unix(7)`, `cmsg(3)`.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use tokio::io::Interest;

use super::Stream;

/// Maximum number of descriptors per read or write. Additional received descriptors are closed.
pub const MAX_DESCRIPTORS: usize = 8;

#[cfg(target_os = "linux")]
mod system {
    //! Linux closes received descriptors on `exec` and can suppress SIGPIPE per call.

    use super::{OwnedFd, RecvFlags, SendFlags, io};

    pub(super) const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
    pub(super) const SENDING: SendFlags = SendFlags::NOSIGNAL;

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it takes a system call")]
    pub(super) fn close_on_exec(descriptor: OwnedFd) -> io::Result<OwnedFd> {
        Ok(descriptor)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! macOS: sockets of tokio do not raise SIGPIPE (`SO_NOSIGPIPE`). A program that another thread starts right after
    //! a descriptor was received inherits the descriptor.

    use rustix::io::{FdFlags, fcntl_setfd};

    use super::{OwnedFd, RecvFlags, SendFlags, io};

    pub(super) const RECEIVING: RecvFlags = RecvFlags::empty();
    pub(super) const SENDING: SendFlags = SendFlags::empty();

    pub(super) fn close_on_exec(descriptor: OwnedFd) -> io::Result<OwnedFd> {
        fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
        Ok(descriptor)
    }
}

impl Stream {
    /// Sends one byte with a copy of `descriptor`, as a separate message.
    ///
    /// # Errors
    /// If writing fails.
    pub async fn send_descriptor(&self, byte: [u8; 1], descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let descriptors = [descriptor];
            // Cannot fail: the buffer has exactly the required size.
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
            let sent = rustix::net::sendmsg(
                &self.inner,
                &[io::IoSlice::new(&byte)],
                &mut ancillary,
                system::SENDING | SendFlags::DONTWAIT,
            )?;
            if sent == byte.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
        };
        self.inner.async_io(Interest::WRITABLE, send).await
    }

    /// Receives available bytes and up to [`MAX_DESCRIPTORS`] descriptors. Returns 0 bytes if the peer sends no more
    /// data. Cancel safe.
    ///
    /// # Errors
    /// If the connection is broken.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        let receive = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let received = rustix::net::recvmsg(
                &self.inner,
                &mut [io::IoSliceMut::new(buffer)],
                &mut ancillary,
                system::RECEIVING | RecvFlags::DONTWAIT,
            )?;
            let mut descriptors = Vec::new();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    for descriptor in rights {
                        descriptors.push(system::close_on_exec(descriptor)?);
                    }
                }
            }
            Ok((received.bytes, descriptors))
        };
        self.inner.async_io(Interest::READABLE, receive).await
    }

    /// Sends all bytes, with copies of the descriptors along with the first byte. A message that fits into the socket's
    /// buffer is sent in one piece.
    ///
    /// # Errors
    /// If writing fails, or there are more than [`MAX_DESCRIPTORS`] descriptors.
    pub async fn send_all(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let (mut rest, mut with) = (bytes, descriptors);
        while !rest.is_empty() {
            let send = || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                if !with.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(with)) {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors"));
                }
                let flags = system::SENDING | SendFlags::DONTWAIT;
                Ok(rustix::net::sendmsg(&self.inner, &[io::IoSlice::new(rest)], &mut ancillary, flags)?)
            };
            match self.inner.async_io(Interest::WRITABLE, send).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                sent => (rest, with) = (rest.get(sent..).unwrap_or_default(), &[]),
            }
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{IoSliceMut, Read, Write};
    use std::os::fd::AsFd;

    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn received_data_can_be_forwarded_with_its_descriptors() {
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
        // The intermediate copies are closed, so there is no other writer.
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through two");
    }

    #[tokio::test]
    async fn a_peer_that_ended_sending_is_not_hung_up() {
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
    async fn a_descriptor_arrives_with_its_byte() {
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
        // A closed connection causes an error rather than a signal.
        drop(far);
        let error = stream.send_descriptor([7], reader.as_fd()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
