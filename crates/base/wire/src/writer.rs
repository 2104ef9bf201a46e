//! A writer of little-endian fields.

use crate::Uuid;

/// Appends little-endian fields to a buffer; the counterpart of [`Reader`](crate::Reader). Methods return the writer so
/// that calls can be chained.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

macro_rules! fixed {
    ($($name:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("Appends a little-endian `", stringify!($type), "`.")]
        #[inline]
        pub fn $name(&mut self, value: $type) -> &mut Self {
            self.bytes(&value.to_le_bytes())
        }
    )*};
}

impl Writer {
    /// Creates an empty writer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty writer that reuses the memory of `memory`, whose contents are discarded.
    pub fn reusing(mut memory: Vec<u8>) -> Self {
        memory.clear();
        Self { bytes: memory }
    }

    /// Returns the number of bytes written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes written.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes written, without copying them.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Discards the bytes written and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Appends bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fixed! { u8: u8, u16: u16, u32: u32, u64: u64, i8: i8, i16: i16, i32: i32, i64: i64, f32: f32, f64: f64 }

    /// Appends a GUID in .NET's layout.
    pub fn guid(&mut self, value: Uuid) -> &mut Self {
        self.bytes(&value.to_bytes_le())
    }

    /// Appends an unsigned LEB128 integer.
    pub fn varu32(&mut self, value: u32) -> &mut Self {
        self.varu64(u64::from(value))
    }

    /// Appends an unsigned LEB128 integer.
    pub fn varu64(&mut self, mut value: u64) -> &mut Self {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.u8(low & 0x7f);
            }
            self.u8(low | 0x80);
        }
    }

    /// Appends text as UTF-16 with a terminating NUL unit.
    pub fn utf16z(&mut self, text: &str) -> &mut Self {
        for unit in text.encode_utf16() {
            self.u16(unit);
        }
        self.u16(0)
    }

    /// Appends a counted string: the number of units including the terminating NUL as a `u32`, then the units. `None`
    /// is written as the count 0.
    pub fn utf16_counted(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            None => self.u32(0),
            Some(text) => {
                let units = text.encode_utf16().count() + 1;
                self.u32(u32::try_from(units).unwrap_or(u32::MAX)).utf16z(text)
            }
        }
    }

    /// Overwrites four bytes at `at`, for example with a length that was not known before. Does nothing if `at` is out
    /// of range.
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        if let Some(place) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = value.to_le_bytes();
        }
    }
}
