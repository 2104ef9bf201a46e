//! The lowest storey: first bytes, and the frames of objects and blocks. Knows nothing of what lies inside one.

pub(crate) mod envelope;
pub(crate) mod v6;

use runtap_wire::{DecodeError, Reader};

use self::envelope::{MAGIC, SERIALIZER};
use crate::Error;

/// The families of formats; what lies in their blocks differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// `NetPerf` 1 and 2: one object that holds all events.
    NetPerf1,
    /// `NetPerf` 3: blocks of events with their stacks in them.
    NetPerf3,
    /// Nettrace 4, and what people call 5.
    #[default]
    Nettrace4,
    /// Nettrace 6.
    Nettrace6,
}

/// What comes next in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The payload of an object that begins at `start`: `size` bytes, directly behind what was read.
    Object { start: u64, kind: Kind, version: u32, size: u32 },
    /// The end marker.
    End,
}

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Trace,
    Event,
    Metadata,
    Stack,
    SequencePoint,
    Thread,
    RemoveThread,
    LabelList,
    /// A name or number that nobody knows, or a version that asks for a newer reader.
    Unknown,
}

/// Splits a stream into frames.
#[derive(Debug, Clone, Default)]
pub(crate) struct Framing {
    format: Format,
    place: Place,
    /// How many bytes more the stream had in front of this place when it was written, modulo 4: blocks are aligned.
    shift: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// At the first byte.
    #[default]
    Start,
    /// At the first object.
    First,
    /// At an object or the end marker.
    Between,
    /// Behind the payload of an object that an end tag follows.
    InObject,
}

impl Framing {
    /// Known once a frame was read.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// What comes next is an object: what was in front of it could not be read.
    pub(crate) fn resume(&mut self, format: Format, shift: u8) {
        (self.format, self.shift) = (format, shift);
        self.place = if self.place == Place::Start { Place::First } else { Place::Between };
    }

    /// The shift of what was read; `None` if nothing was.
    pub(crate) fn shift(&self) -> Option<u8> {
        (self.place != Place::Start).then_some(self.shift)
    }

    /// What comes next is what stands behind a payload.
    pub(crate) fn go_behind_payload(&mut self) {
        self.place = match self.place {
            Place::Start | Place::First => self.place,
            Place::Between | Place::InObject if self.format == Format::Nettrace6 => Place::Between,
            Place::Between | Place::InObject => Place::InObject,
        };
    }

    /// Reads up to the next payload, which the caller then takes off the stream before it asks again.
    ///
    /// An error for which [`DecodeError::is_incomplete`] holds means that more bytes are needed; what `r` has passed
    /// over is done with.
    pub(crate) fn next(&mut self, r: &mut Reader<'_>, max_block: u32) -> Result<Frame, Error> {
        let mut probe = r.clone();
        match self.place {
            Place::Start => {
                self.format = prelude(&mut probe)?;
                self.place = Place::First;
            }
            Place::InObject => {
                envelope::end_of_object(&mut probe)?;
                self.place = Place::Between;
            }
            Place::First | Place::Between => {}
        }
        *r = probe.clone();
        let frame = match (self.format, self.place) {
            (Format::Nettrace6, _) => v6::frame(&mut probe, max_block)?,
            (Format::NetPerf3, Place::First) => envelope::first_of_netperf(&mut probe, &mut self.format)?,
            (format, _) => envelope::frame(&mut probe, format, max_block, self.shift)?,
        };
        *r = probe;
        self.place = if self.format == Format::Nettrace6 { Place::Between } else { Place::InObject };
        Ok(frame)
    }
}

/// Reads the first bytes. `NetPerf` 1 to 3 are told apart by the first object.
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

/// The size of a block, checked against a limit.
fn checked_size(at: &Reader<'_>, size: u32, limit: u32) -> Result<u32, DecodeError> {
    if size > limit {
        let kind = runtap_wire::DecodeErrorKind::TooLarge { value: size.into(), limit: limit.into() };
        return Err(at.error("block size", kind));
    }
    Ok(size)
}
