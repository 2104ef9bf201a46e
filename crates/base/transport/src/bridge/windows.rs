//! The two ends of a call on Windows: a pipe in memory, as both are of one process.

use std::io;

use tokio::io::DuplexStream;

use crate::Stream;

/// Bytes on their way in each direction.
const ROOM: usize = 256 << 10;

/// The far end of a call, which may go to another thread.
#[derive(Debug)]
pub struct FarEnd(DuplexStream);

impl FarEnd {
    /// The connection.
    ///
    /// # Errors
    /// None here.
    pub fn into_stream(self) -> io::Result<Stream> {
        Ok(Stream::from(self.0))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn pair() -> io::Result<(Stream, FarEnd)> {
    let (near, far) = tokio::io::duplex(ROOM);
    Ok((Stream::from(near), FarEnd(far)))
}
