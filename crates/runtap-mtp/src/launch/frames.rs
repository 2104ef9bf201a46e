//! Whole frames from a stream that blocks.

use std::io::{self, Read};

use runtap_mtp_proto::{BadLength, Frame, Frames as Buffer};

/// Reads a stream frame by frame.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    from: R,
    buffer: Buffer,
    piece: Vec<u8>,
}

/// How reading has ended.
#[derive(Debug)]
pub(crate) enum Broken {
    /// By an error of the connection: nobody is there any more.
    Gone,
    /// By a length that no frame has.
    Length(BadLength),
    /// Within a frame; what there was of it, and where it began.
    Within { offset: u64, bytes: Vec<u8> },
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, buffer: Buffer::default(), piece: vec![0; 64 << 10] }
    }

    /// Calls `take` with the next frame; `None` at the end.
    pub(crate) fn next<T>(&mut self, take: impl FnOnce(&Frame<'_>) -> T) -> Result<Option<T>, Broken> {
        loop {
            if self.fill_frame()? {
                let frame = self.buffer.next_frame().map_err(Broken::Length)?;
                return Ok(frame.map(|frame| take(&frame)));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// Whether a whole frame is there.
    fn fill_frame(&mut self) -> Result<bool, Broken> {
        self.buffer.is_whole().map_err(Broken::Length)
    }

    fn read(&mut self) -> Result<bool, Broken> {
        loop {
            return match self.from.read(&mut self.piece) {
                Ok(0) if self.buffer.pending().is_empty() => Ok(false),
                Ok(0) => Err(Broken::Within {
                    offset: self.buffer.offset(),
                    bytes: self.buffer.pending().to_vec(),
                }),
                Ok(count) => {
                    self.buffer.feed(self.piece.get(..count).unwrap_or_default());
                    Ok(true)
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => Err(Broken::Gone),
            };
        }
    }
}
