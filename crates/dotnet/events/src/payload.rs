//! Payloads of events: typed fields, packed as the definition of the event specifies, in a buffer per thread. Nothing
//! is allocated after the first event of a thread.

use std::cell::Cell;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runtap_diag_server::FieldType;
use uuid::Uuid;

/// The longest text of a field in UTF-16 units. Events above 64 KiB are lost, so one text must leave space for others.
const MAX_TEXT: usize = 16 << 10;

/// The largest buffer that a thread keeps, in bytes.
const MAX_KEPT: usize = 128 << 10;

/// The time from 1601, the start of FILETIME, to 1970.
const FILETIME_EPOCH: Duration = Duration::from_hours(3_234_576);

/// The fields of an event that is being written.
#[derive(Debug, Default)]
pub struct Payload {
    bytes: Vec<u8>,
}

/// A type of field values.
pub trait Value {
    /// Returns the type for the event's definition.
    fn field_type() -> FieldType;

    /// Appends the value.
    fn append(&self, payload: &mut Payload);
}

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `fill` with the buffer of this thread. An event that is written within the call uses another buffer.
pub(crate) fn with<T>(fill: impl FnOnce(&mut Payload) -> T) -> T {
    // A thread that is exiting has no buffer any more.
    let mut payload = Payload { bytes: BUFFER.try_with(Cell::take).unwrap_or_default() };
    let result = fill(&mut payload);
    if payload.bytes.capacity() <= MAX_KEPT {
        payload.bytes.clear();
        let _ = BUFFER.try_with(|buffer| buffer.set(payload.bytes));
    }
    result
}

impl Payload {
    /// Returns the appended bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a field.
    #[inline]
    pub fn push<V: Value + ?Sized>(&mut self, value: &V) -> &mut Self {
        value.append(self);
        self
    }

    #[inline]
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Overwrites a `u16` that was appended before.
    pub(crate) fn patch_u16(&mut self, at: usize, value: u16) {
        if let Some(place) = self.bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *place = value.to_le_bytes();
        }
    }

    /// Formats a text into the payload.
    pub(crate) fn display(&mut self, value: impl fmt::Display) -> &mut Self {
        let mut text = Text::new(self);
        // Fails only if the value's own code does: its text ends there.
        let _ = fmt::Write::write_fmt(&mut text, format_args!("{value}"));
        text.finish();
        self
    }

    /// Starts a text that consists of several parts.
    pub(crate) fn text(&mut self) -> Text<'_> {
        Text::new(self)
    }
}

/// A UTF-16 field that is being written: of limited length, and without NUL, which would end it.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    payload: &'a mut Payload,
    left: usize,
    cut: bool,
}

impl<'a> Text<'a> {
    fn new(payload: &'a mut Payload) -> Self {
        Self { payload, left: MAX_TEXT, cut: false }
    }

    pub(crate) fn push(&mut self, text: &str) -> &mut Self {
        if self.cut {
            return self;
        }
        if text.len() <= self.left && is_plain(text.as_bytes()) {
            self.left -= text.len();
            widen(text.as_bytes(), &mut self.payload.bytes);
            return self;
        }
        for c in text.chars() {
            self.push_char(c);
        }
        self
    }

    pub(crate) fn push_char(&mut self, c: char) {
        let c = if c == '\0' { char::REPLACEMENT_CHARACTER } else { c };
        if self.cut || self.left < c.len_utf16() {
            self.cut = true;
            return;
        }
        self.left -= c.len_utf16();
        for unit in c.encode_utf16(&mut [0; 2]) {
            self.payload.raw(&unit.to_le_bytes());
        }
    }

    pub(crate) fn finish(self) {
        if self.cut {
            self.payload.raw(&0x2026u16.to_le_bytes());
        }
        self.payload.raw(&[0, 0]);
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Returns whether each byte is a nonzero ASCII character. Tests eight bytes at a time, because the texts are short.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // The subtraction sets the highest bit only of bytes that are 0, and of bytes above such a byte.
    let plain = |eight: &[u8; 8]| {
        let eight = u64::from_ne_bytes(*eight);
        (eight.wrapping_sub(LOW) | eight) & HIGH == 0
    };
    let (eights, rest) = text.as_chunks();
    match text.last_chunk() {
        Some(last) => eights.iter().all(plain) && plain(last),
        None => rest.iter().all(|byte| (1..=0x7f).contains(byte)),
    }
}

/// Appends ASCII as UTF-16, four characters at a time.
#[inline]
fn widen(text: &[u8], to: &mut Vec<u8>) {
    let start = to.len();
    to.resize(start + 2 * text.len(), 0);
    let to = to.get_mut(start..).unwrap_or_default();
    let (wide, _) = to.as_chunks_mut();
    let (fours, rest) = text.as_chunks();
    for (to, from) in wide.iter_mut().zip(fours) {
        *to = widen_four(*from);
    }
    // The last four are converted again, so that there is no remainder; shorter texts one by one.
    if let (Some(to), Some(from)) = (to.last_chunk_mut(), text.last_chunk()) {
        *to = widen_four(*from);
    } else {
        let (units, _) = to.as_chunks_mut();
        for ([low, _], byte) in units.iter_mut().zip(rest) {
            *low = *byte;
        }
    }
}

/// Interleaves the bytes with zeros in four instructions, like a byte shuffle.
#[inline]
fn widen_four(text: [u8; 4]) -> [u8; 8] {
    let wide = u64::from(u32::from_le_bytes(text));
    let wide = (wide | wide << 16) & 0x0000_ffff_0000_ffff;
    ((wide | wide << 8) & 0x00ff_00ff_00ff_00ff).to_le_bytes()
}

macro_rules! numbers {
    ($($type:ty => $field:ident),* $(,)?) => {$(
        impl Value for $type {
            fn field_type() -> FieldType {
                FieldType::$field
            }

            #[inline]
            fn append(&self, payload: &mut Payload) {
                payload.raw(&self.to_le_bytes());
            }
        }
    )*};
}

numbers! {
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64, f32 => F32, f64 => F64,
}

impl Value for bool {
    fn field_type() -> FieldType {
        FieldType::Bool
    }

    #[inline]
    fn append(&self, payload: &mut Payload) {
        payload.raw(&u32::from(*self).to_le_bytes());
    }
}

impl Value for usize {
    fn field_type() -> FieldType {
        FieldType::U64
    }

    fn append(&self, payload: &mut Payload) {
        u64::try_from(*self).unwrap_or(u64::MAX).append(payload);
    }
}

impl Value for str {
    fn field_type() -> FieldType {
        FieldType::String
    }

    #[inline]
    fn append(&self, payload: &mut Payload) {
        if self.len() <= MAX_TEXT && is_plain(self.as_bytes()) {
            widen(self.as_bytes(), &mut payload.bytes);
            payload.raw(&[0, 0]);
            return;
        }
        let mut text = payload.text();
        text.push(self);
        text.finish();
    }
}

impl Value for String {
    fn field_type() -> FieldType {
        FieldType::String
    }

    fn append(&self, payload: &mut Payload) {
        self.as_str().append(payload);
    }
}

impl Value for Uuid {
    fn field_type() -> FieldType {
        FieldType::Guid
    }

    fn append(&self, payload: &mut Payload) {
        payload.raw(&self.to_bytes_le());
    }
}

/// Units of 100 ns since 1601; earlier times become 0.
impl Value for SystemTime {
    fn field_type() -> FieldType {
        FieldType::DateTime
    }

    fn append(&self, payload: &mut Payload) {
        let since = self.duration_since(UNIX_EPOCH).unwrap_or_default() + FILETIME_EPOCH;
        i64::try_from(since.as_nanos() / 100).unwrap_or(i64::MAX).append(payload);
    }
}

/// A count and at most 65,535 elements.
impl<T: Value> Value for [T] {
    fn field_type() -> FieldType {
        FieldType::Array(Box::new(T::field_type()))
    }

    fn append(&self, payload: &mut Payload) {
        let count = u16::try_from(self.len()).unwrap_or(u16::MAX);
        count.append(payload);
        for element in self.iter().take(usize::from(count)) {
            element.append(payload);
        }
    }
}

impl<V: Value + ?Sized> Value for &V {
    fn field_type() -> FieldType {
        V::field_type()
    }

    #[inline]
    fn append(&self, payload: &mut Payload) {
        (**self).append(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(fill: impl FnOnce(&mut Payload)) -> Vec<u8> {
        with(|payload| {
            fill(payload);
            payload.as_bytes().to_vec()
        })
    }

    #[test]
    fn values_are_packed() {
        let all = bytes(|payload| {
            payload.push(&-2i16).push(&true).push("é").push(&[1u8, 2][..]).push(&UNIX_EPOCH);
        });
        let mut expected = vec![0xfe, 0xff, 1, 0, 0, 0, 0xe9, 0, 0, 0, 2, 0, 1, 2];
        expected.extend(116_444_736_000_000_000i64.to_le_bytes());
        assert_eq!(all, expected);
    }

    #[test]
    fn texts_have_no_nul_and_a_maximum_length() {
        assert_eq!(
            bytes(|p| {
                p.push("a\0b");
            }),
            [b'a', 0, 0xfd, 0xff, b'b', 0, 0, 0]
        );
        let long = bytes(|p| {
            p.push(&"x".repeat(MAX_TEXT + 1));
        });
        assert_eq!(long.len(), 2 * MAX_TEXT + 4);
        assert_eq!(long[long.len() - 4..], [0x26, 0x20, 0, 0]);
        // A surrogate pair is not split.
        let pairs = bytes(|p| {
            p.push(&format!("a{}", "😀".repeat(MAX_TEXT)));
        });
        assert_eq!(pairs.len(), 2 * (MAX_TEXT - 1) + 4);
    }

    proptest::proptest! {
        #[test]
        fn texts_are_utf16(text in "[a-z]{0,20}|[ -é\u{0}😀]{0,20}") {
            let units: Vec<u8> = text.replace('\0', "\u{fffd}").encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
            proptest::prop_assert_eq!(bytes(|p| { p.push(text.as_str()); }), &units[..]);
            proptest::prop_assert_eq!(bytes(|p| { p.display(&text); }), units);
        }
    }

    #[test]
    fn events_within_events_use_separate_buffers() {
        let outer = bytes(|outer| {
            outer.push(&1u8);
            assert_eq!(
                bytes(|inner| {
                    inner.push(&2u8);
                }),
                [2]
            );
            outer.push(&3u8);
        });
        assert_eq!(outer, [1, 3]);
    }
}
