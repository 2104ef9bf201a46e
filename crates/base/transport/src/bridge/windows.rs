//! The ends of a bridged connection on Windows: an in-memory pipe, as both are in one process.

use std::io;

use tokio::io::DuplexStream;

use crate::Stream;

/// Buffer size in each direction, in bytes.
const ROOM: usize = 256 << 10;

/// The far end of a bridged connection, which can be sent to another thread.
#[derive(Debug)]
pub struct FarEnd(DuplexStream);

impl FarEnd {
    /// Converts it into a stream.
    ///
    /// # Errors
    /// Never.
    pub fn into_stream(self) -> io::Result<Stream> {
        Ok(Stream::from(self.0))
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn pair() -> io::Result<(Stream, FarEnd)> {
    let (near, far) = tokio::io::duplex(ROOM);
    Ok((Stream::from(near), FarEnd(far)))
}
