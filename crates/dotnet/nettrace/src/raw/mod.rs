//! The lowest layer: the first bytes of a stream, and the frames of objects and blocks.

pub(crate) mod envelope;
pub(crate) mod v6;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use self::envelope::{MAGIC, SERIALIZER};
use crate::Error;

/// The families of formats, whose blocks have different contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// `NetPerf` 1 and 2: one object with all events.
    NetPerf1,
    /// `NetPerf` 3: blocks of events that contain their stacks.
    NetPerf3,
    /// Nettrace 4, including "version 5".
    #[default]
    Nettrace4,
    /// Nettrace 6.
    Nettrace6,
}

/// The next frame of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// An object that begins at `start`, with a payload of `size` bytes directly after the bytes that were read.
    Object { start: u64, kind: ObjectKind, version: u32, size: u32 },
    /// The end marker.
    End,
}

/// The kinds of objects and blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Trace,
    Event,
    Metadata,
    Stack,
    SequencePoint,
    Thread,
    RemoveThread,
    LabelList,
    /// An unknown name or number, or a version that requires a newer reader.
    Unknown,
}

/// Splits a stream into frames.
#[derive(Debug, Clone, Default)]
pub(crate) struct Framing {
    format: Format,
    place: FramingState,
    /// The number of additional bytes, modulo 4, that preceded this position when the stream was written; blocks are aligned.
    shift: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum FramingState {
    /// At the first byte.
    #[default]
    Start,
    /// At the first object.
    First,
    /// At an object or the end marker.
    Between,
    /// After the payload of an object, before its end tag.
    InObject,
}

impl Framing {
    /// Returns the format, which is known once a frame was read.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Continues at an object after bytes that could not be read.
    pub(crate) fn resume(&mut self, format: Format, shift: u8) {
        (self.format, self.shift) = (format, shift);
        self.place =
            if self.place == FramingState::Start { FramingState::First } else { FramingState::Between };
    }

    /// Returns the shift of the stream. `None` if nothing was read.
    pub(crate) fn shift(&self) -> Option<u8> {
        (self.place != FramingState::Start).then_some(self.shift)
    }

    /// Continues after a payload.
    pub(crate) fn go_behind_payload(&mut self) {
        self.place = match self.place {
            FramingState::Start | FramingState::First => self.place,
            FramingState::Between | FramingState::InObject if self.format == Format::Nettrace6 => {
                FramingState::Between
            }
            FramingState::Between | FramingState::InObject => FramingState::InObject,
        };
    }

    /// Reads the frame before the next payload. The caller consumes the payload before the next call.
    ///
    /// An error for which [`DecodeError::is_incomplete`] holds means that more bytes are needed; the bytes that `r` has
    /// passed are consumed.
    pub(crate) fn next(&mut self, r: &mut Reader<'_>, max_block: u32) -> Result<Frame, Error> {
        let mut probe = r.clone();
        match self.place {
            FramingState::Start => {
                self.format = prelude(&mut probe)?;
                self.place = FramingState::First;
            }
            FramingState::InObject => {
                envelope::end_of_object(&mut probe)?;
                self.place = FramingState::Between;
            }
            FramingState::First | FramingState::Between => {}
        }
        *r = probe.clone();
        let frame = match (self.format, self.place) {
            (Format::Nettrace6, _) => v6::frame(&mut probe, max_block)?,
            (Format::NetPerf3, FramingState::First) => {
                envelope::first_of_netperf(&mut probe, &mut self.format)?
            }
            (format, _) => envelope::frame(&mut probe, format, max_block, self.shift)?,
        };
        *r = probe;
        self.place =
            if self.format == Format::Nettrace6 { FramingState::Between } else { FramingState::InObject };
        Ok(frame)
    }
}

/// Reads the first bytes. The first object distinguishes `NetPerf` 1 to 3.
fn prelude(r: &mut Reader<'_>) -> Result<Format, Error> {
    fn starts(r: &Reader<'_>, expected: &[u8]) -> bool {
        r.rest().iter().zip(expected).all(|(a, b)| a == b)
    }
    if starts(r, SERIALIZER) {
        r.bytes(SERIALIZER.len(), "serializer name")?;
        return Ok(Format::NetPerf3);
    }
    if !starts(r, MAGIC) {
        return Err(Error::NotNettrace);
    }
    r.bytes(MAGIC.len(), "magic bytes")?;
    let mut versions = r.clone();
    if versions.u32("header version")? == 0 {
        v6::prelude(&mut versions)?;
        *r = versions;
        return Ok(Format::Nettrace6);
    }
    if !starts(r, SERIALIZER) {
        return Err(Error::NotNettrace);
    }
    r.bytes(SERIALIZER.len(), "serializer name")?;
    Ok(Format::Nettrace4)
}

/// Checks a size that is encoded at a stream offset against the limit of blocks.
///
/// # Errors
/// The size is larger than the limit.
pub(crate) fn checked_size(
    offset: u64,
    field: &'static str,
    size: u32,
    max_block: u32,
) -> Result<u32, DecodeError> {
    if size > max_block {
        let kind = DecodeErrorKind::TooLarge { value: size.into(), limit: max_block.into() };
        return Err(DecodeError::new(offset, field, kind));
    }
    Ok(size)
}
