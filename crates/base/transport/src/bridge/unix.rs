//! The two ends of a call on Unix: a pair of sockets.

use std::io;
use std::os::unix::net::UnixStream;

use crate::Stream;

/// The far end of a call, which may go to another thread.
#[derive(Debug)]
pub struct FarEnd(UnixStream);

impl FarEnd {
    /// The connection, for the executor of the thread that it has come to.
    ///
    /// # Errors
    /// Outside of a tokio runtime with I/O.
    pub fn into_stream(self) -> io::Result<Stream> {
        tokio::net::UnixStream::from_std(self.0).map(Stream::from)
    }
}

pub(super) fn pair() -> io::Result<(Stream, FarEnd)> {
    let (near, far) = UnixStream::pair()?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    Ok((Stream::from(tokio::net::UnixStream::from_std(near)?), FarEnd(far)))
}
