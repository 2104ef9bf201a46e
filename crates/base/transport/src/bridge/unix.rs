//! The ends of a bridged connection on Unix: a socket pair.

use std::io;
use std::os::unix::net::UnixStream;

use crate::Stream;

/// The far end of a bridged connection, which can be sent to another thread.
#[derive(Debug)]
pub struct FarEnd(UnixStream);

impl FarEnd {
    /// Converts it into a stream of the current thread's tokio runtime.
    ///
    /// # Errors
    /// If called outside of a tokio runtime with I/O.
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
