//! A faster [`Reader`](runtap_wire::Reader) for the hot loops: it does not track the offset in the stream, and its errors
//! are completed outside of the loop.

use runtap_wire::{DecodeError, DecodeErrorKind, Uuid};

/// The reason why a field could not be read; converted to a [`DecodeError`] outside of the hot loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    field: &'static str,
    /// The number of bytes from the field to the end of the block.
    left: usize,
    kind: FaultKind,
}

#[derive(Debug, Clone, Copy)]
enum FaultKind {
    End { needed: usize },
    Overlong { limit: u8 },
    Invalid(&'static str),
}

impl Fault {
    /// Returns whether more bytes could complete the field.
    pub(crate) fn is_incomplete(self) -> bool {
        matches!(self.kind, FaultKind::End { .. })
    }

    /// Converts the fault to an error, for a block that ends at the stream offset `end`.
    pub(crate) fn into_error(self, end: u64) -> DecodeError {
        let kind = match self.kind {
            FaultKind::End { needed } => {
                DecodeErrorKind::UnexpectedEnd { needed: needed as u64, available: self.left as u64 }
            }
            FaultKind::Overlong { limit } => DecodeErrorKind::OverlongVarint { limit },
            FaultKind::Invalid(why) => DecodeErrorKind::Invalid(why),
        };
        DecodeError::new(end.saturating_sub(self.left as u64), self.field, kind)
    }
}

/// Converts an encoded GUID. `None` if it is all zeros, which is .NET's missing GUID.
#[inline]
pub(crate) fn guid(bits: u128) -> Option<Uuid> {
    if bits == 0 { None } else { Some(Uuid::from_bytes_le(bits.to_le_bytes())) }
}

/// A cursor over a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a> {
    all: &'a [u8],
    /// The position of the next byte.
    at: usize,
}

impl<'a> Bytes<'a> {
    #[inline]
    pub(crate) fn new(all: &'a [u8], at: usize) -> Self {
        Self { all, at }
    }

    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Fault> {
        match self.all.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => Err(self.end(field, 1)),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Fault> {
        match self.rest().first_chunk() {
            Some(head) => {
                self.at += N;
                Ok(*head)
            }
            None => Err(self.end(field, N)),
        }
    }

    #[inline]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    #[inline]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u128(&mut self, field: &'static str) -> Result<u128, Fault> {
        Ok(u128::from_le_bytes(self.array(field)?))
    }

    /// Reads a GUID. `None` if it is all zeros, which is .NET's missing GUID.
    pub(crate) fn guid(&mut self, field: &'static str) -> Result<Option<Uuid>, Fault> {
        Ok(guid(self.u128(field)?))
    }

    /// Skips `n` bytes and returns them.
    #[inline]
    pub(crate) fn bytes(&mut self, n: usize, field: &'static str) -> Result<&'a [u8], Fault> {
        match self.rest().get(..n) {
            Some(bytes) => {
                self.at += n;
                Ok(bytes)
            }
            None => Err(self.end(field, n)),
        }
    }

    /// Reads at most 5 bytes; like Microsoft's reader, drops bits beyond 32.
    #[inline]
    pub(crate) fn varu32(&mut self, field: &'static str) -> Result<u32, Fault> {
        match self.rest() {
            [byte @ 0..0x80, ..] => {
                self.at += 1;
                Ok(u32::from(*byte))
            }
            [low, high @ 0..0x80, ..] => {
                self.at += 2;
                Ok(u32::from(low & 0x7f) | u32::from(*high) << 7)
            }
            _ => {
                let value = self.long_varint::<5>(field)?;
                Ok(u32::try_from(value & u64::from(u32::MAX)).unwrap_or(u32::MAX))
            }
        }
    }

    /// Reads at most 10 bytes; drops bits beyond 64.
    #[inline]
    pub(crate) fn varu64(&mut self, field: &'static str) -> Result<u64, Fault> {
        match self.rest() {
            [byte @ 0..0x80, ..] => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            [low, high @ 0..0x80, ..] => {
                self.at += 2;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            [low, middle, high @ 0..0x80, ..] => {
                self.at += 3;
                Ok(u64::from(low & 0x7f) | u64::from(middle & 0x7f) << 7 | u64::from(*high) << 14)
            }
            _ => self.long_varint::<10>(field),
        }
    }

    #[inline(never)]
    fn long_varint<const MAX: u8>(&mut self, field: &'static str) -> Result<u64, Fault> {
        let mut value = 0u64;
        for (i, byte) in (0..MAX).zip(self.rest()) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                self.at += usize::from(i) + 1;
                return Ok(value);
            }
        }
        let left = self.rest().len();
        Err(if left < usize::from(MAX) {
            self.end(field, left + 1)
        } else {
            Fault { field, left, kind: FaultKind::Overlong { limit: MAX } }
        })
    }

    /// Returns the unread bytes.
    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.all.get(self.at..).unwrap_or_default()
    }

    #[cold]
    fn end(&self, field: &'static str, needed: usize) -> Fault {
        Fault { field, left: self.rest().len(), kind: FaultKind::End { needed } }
    }

    /// Creates a fault for a field that begins `back` bytes before the next byte.
    #[cold]
    pub(crate) fn invalid(&self, field: &'static str, back: usize, why: &'static str) -> Fault {
        Fault { field, left: self.rest().len() + back, kind: FaultKind::Invalid(why) }
    }
}
