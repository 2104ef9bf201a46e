//! The performance counters of a `HotSpot` virtual machine (`hsperfdata`): named numbers and texts. The user who owns the machine
//! controls every byte.
//!
//! ```text
//! offset  bytes
//!      0  4     CA FE C0 C0
//!      4  1     byte order of all following numbers: 0 big-endian, 1 little-endian
//!      5  2     major and minor version: 2, 0
//!      7  1     1 if the machine is ready
//!      8  20    bytes in use, overflow, time of the last change: not read
//!     24  4     offset of the first counter
//!     28  4     number of counters
//!
//! a counter; its offsets are relative to its start:
//!      0  4     total length in bytes, with name and value
//!      4  4     offset of the name, which ends with 0
//!      8  4     number of elements of the value; 0 for a number
//!     12  1     type of the elements: 'B' for bytes, 'J' for a number of 64 bits
//!     13  3     flags, unit, variability: not read
//!     16  4     offset of the value; a text ends with 0
//! ```
//!
//! Source: `openjdk/jdk` `src/hotspot/share/runtime/perfMemory.hpp`, compared with what JDK 11 to 25 write. The meaning of the names
//! is not known here.

use std::borrow::Cow;

use runtap_wire::{DecodeError, DecodeErrorKind};

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const MAJOR: u8 = 2;
const HEADER: usize = 32;
/// The size of a counter without its name and value.
const COUNTER: usize = 20;
/// The maximum number of counters. A virtual machine has fewer than 400.
const MAX_COUNTERS: u32 = 5_000;
/// Longer texts are truncated: the arguments of a program may be long.
const MAX_TEXT: usize = 4_096;
/// The maximum length of a name.
const MAX_NAME: usize = 256;

/// The value of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerfValue<'a> {
    /// A number.
    Number(i64),
    /// A text without its terminating 0, of which at most the first 4,096 bytes are read.
    Text(Cow<'a, str>),
}

/// A counter of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfCounter<'a> {
    /// The name, such as `sun.gc.collector.0.time`.
    pub name: Cow<'a, str>,
    /// The value.
    pub value: PerfValue<'a>,
}

/// The counters in a file, or in its first part. An error ends the iteration.
#[derive(Debug, Clone)]
pub struct PerfData<'a> {
    bytes: &'a [u8],
    is_little: bool,
    at: usize,
    left: u32,
}

impl<'a> PerfData<'a> {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Returns an error if the bytes are not performance counters, the machine is not ready, or there are too many counters.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
        let unexpected = |at: usize, field, expected| {
            let kind = DecodeErrorKind::Unexpected { value: byte(at).into(), expected };
            Err(DecodeError::new(at as u64, field, kind))
        };
        if bytes.len() < HEADER {
            return Err(end(0, "header", HEADER, bytes.len()));
        }
        if !bytes.starts_with(&MAGIC) {
            return unexpected(0, "magic", "the bytes CA FE C0 C0");
        }
        let is_little = match byte(4) {
            0 => false,
            1 => true,
            _ => return unexpected(4, "byte order", "0 or 1"),
        };
        if byte(5) != MAJOR {
            return unexpected(5, "major version", "2");
        }
        if byte(7) != 1 {
            return unexpected(7, "state", "1, because the virtual machine is not ready");
        }
        let mut data = Self { bytes, is_little, at: 0, left: 0 };
        data.at = data.offset(24, "offset of the first counter")?;
        data.left = data.number(28, "number of counters")?;
        if data.left > MAX_COUNTERS {
            let kind = DecodeErrorKind::TooLarge { value: data.left.into(), limit: MAX_COUNTERS.into() };
            return Err(DecodeError::new(28, "number of counters", kind));
        }
        Ok(data)
    }

    fn array<const N: usize>(&self, at: usize, field: &'static str) -> Result<[u8; N], DecodeError> {
        let found = at.checked_add(N).and_then(|end| self.bytes.get(at..end)?.try_into().ok());
        found.ok_or_else(|| end(at, field, N, self.bytes.len().saturating_sub(at)))
    }

    fn number(&self, at: usize, field: &'static str) -> Result<u32, DecodeError> {
        let bytes = self.array(at, field)?;
        Ok(if self.is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn offset(&self, at: usize, field: &'static str) -> Result<usize, DecodeError> {
        Ok(usize::try_from(self.number(at, field)?).unwrap_or(usize::MAX))
    }

    /// Reads the next counter, and moves behind it. `None` if its value has another type.
    fn read(&mut self) -> Result<Option<PerfCounter<'a>>, DecodeError> {
        let start = self.at;
        let length = self.offset(start, "length of a counter")?;
        if length < COUNTER {
            let kind = DecodeErrorKind::TooSmall { value: length as u64, least: COUNTER as u64 };
            return Err(DecodeError::new(start as u64, "length of a counter", kind));
        }
        let found = start.checked_add(length).and_then(|end| self.bytes.get(start..end));
        let counter =
            found.ok_or_else(|| end(start, "counter", length, self.bytes.len().saturating_sub(start)))?;
        self.at = start + length;
        let name = text(counter, start, self.offset(start + 4, "offset of a name")?, "name", MAX_NAME)?;
        let at = self.offset(start + 16, "offset of a value")?;
        let value = match (counter.get(12), self.number(start + 8, "number of elements")?) {
            (Some(b'B'), _) => PerfValue::Text(text(counter, start, at, "value", MAX_TEXT)?),
            (Some(b'J'), 0) => {
                // The value must be in this counter, not in the next one.
                if at.checked_add(8).is_none_or(|end| end > length) {
                    return Err(end(start.saturating_add(at), "value", 8, length.saturating_sub(at)));
                }
                let bytes = self.array(start + at, "value")?;
                PerfValue::Number(if self.is_little {
                    i64::from_le_bytes(bytes)
                } else {
                    i64::from_be_bytes(bytes)
                })
            }
            _ => return Ok(None),
        };
        Ok(Some(PerfCounter { name, value }))
    }
}

impl<'a> Iterator for PerfData<'a> {
    type Item = Result<PerfCounter<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            self.left -= 1;
            match self.read() {
                Ok(None) => {}
                Ok(Some(counter)) => return Some(Ok(counter)),
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

fn end(at: usize, field: &'static str, needed: usize, available: usize) -> DecodeError {
    let kind = DecodeErrorKind::UnexpectedEnd { needed: needed as u64, available: available as u64 };
    DecodeError::new(at as u64, field, kind)
}

/// Returns the text at an offset in a counter up to its terminating 0, or to the end of the counter.
fn text<'a>(
    counter: &'a [u8],
    start: usize,
    at: usize,
    field: &'static str,
    limit: usize,
) -> Result<Cow<'a, str>, DecodeError> {
    let bytes = counter.get(at..).ok_or_else(|| end(start.saturating_add(at), field, 1, 0))?;
    let length =
        bytes.iter().take(limit).position(|byte| *byte == 0).unwrap_or_else(|| bytes.len().min(limit));
    Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a file with these texts and a number before each.
    pub(crate) fn file(little: bool, texts: &[(&str, &str)]) -> Vec<u8> {
        let word = |number: usize| {
            let number = u32::try_from(number).unwrap();
            if little { number.to_le_bytes() } else { number.to_be_bytes() }
        };
        let mut file = [&MAGIC[..], &[u8::from(little), 2, 0, 1], &[0; 16]].concat();
        file.extend([word(HEADER), word(2 * texts.len())].concat());
        for (name, value) in texts {
            let number =
                [word(32), word(20), word(0), *b"J\0\x02\x03", word(24), *b"n\0\0\0", [7; 4], [7; 4]];
            file.extend(number.concat());
            let end = (COUNTER + name.len() + 1 + value.len() + 1).next_multiple_of(8);
            let places = [word(end), word(COUNTER), word(value.len() + 1), *b"B\0\x05\x01"];
            let mut counter = places.concat();
            counter.extend(word(COUNTER + name.len() + 1));
            counter.extend([name.as_bytes(), &[0], value.as_bytes(), &[0]].concat());
            counter.resize(end, 0);
            file.extend(counter);
        }
        file
    }

    fn shown(bytes: &[u8]) -> (Vec<String>, Option<String>) {
        let mut shown = Vec::new();
        for counter in PerfData::new(bytes).unwrap() {
            match counter {
                Ok(PerfCounter { name, value }) => shown.push(format!("{name} {value:?}")),
                Err(error) => return (shown, Some(error.to_string())),
            }
        }
        (shown, None)
    }

    #[test]
    fn numbers_and_texts_are_read_in_both_byte_orders() {
        for little in [false, true] {
            let expected = ["n Number(506381209866536711)", "a.b Text(\"x y\")"].map(str::to_owned);
            assert_eq!(shown(&file(little, &[("a.b", "x y")])), (expected.to_vec(), None));
        }
    }

    #[test]
    fn errors_state_the_offset_and_the_field() {
        let whole = file(true, &[("a", "b")]);
        for (at, byte, error) in [
            (0, 0, "magic at offset 0: is 0x0, expected the bytes CA FE C0 C0"),
            (4, 2, "byte order at offset 4: is 0x2, expected 0 or 1"),
            (5, 1, "major version at offset 5: is 0x1, expected 2"),
            (7, 0, "state at offset 7: is 0x0, expected 1, because the virtual machine is not ready"),
            (29, 255, "number of counters at offset 28: is 65282, more than the allowed 5000"),
        ] {
            let mut other = whole.clone();
            other[at] = byte;
            assert_eq!(PerfData::new(&other).unwrap_err().to_string(), error);
        }
        assert_eq!(
            PerfData::new(&whole[..31]).unwrap_err().to_string(),
            "header at offset 0: needs 32 bytes, 31 are left"
        );
        for (at, byte, read, error) in [
            // A counter of length 0 must not cause an endless loop.
            (HEADER, 0, 0, "length of a counter at offset 32: is 0, less than 20"),
            (HEADER + 2, 1, 0, "counter at offset 32: needs 65568 bytes, 56 are left"),
            (HEADER + 4, 99, 0, "name at offset 131: needs 1 bytes, 0 are left"),
            // The value would be in the next counter.
            (HEADER + 16, 28, 0, "value at offset 60: needs 8 bytes, 4 are left"),
            (HEADER + 32 + 16, 200, 1, "value at offset 264: needs 1 bytes, 0 are left"),
        ] {
            let mut other = whole.clone();
            other[at] = byte;
            let (counters, found) = shown(&other);
            assert_eq!((counters.len(), found.as_deref()), (read, Some(error)));
        }
    }

    proptest! {
        #[test]
        fn a_truncated_file_yields_its_first_counters(little: bool, end in HEADER..400_usize) {
            let whole = file(little, &[("a", "1"), ("bb", "22"), ("ccc", &"3".repeat(99))]);
            let (all, none) = shown(&whole);
            prop_assert!(none.is_none() && all.len() == 6);
            let (part, error) = shown(&whole[..end.min(whole.len())]);
            prop_assert!(all.starts_with(&part));
            prop_assert_eq!(error.is_none(), end >= whole.len());
        }

        #[test]
        fn any_bytes_yield_no_more_than_they_contain(at: usize, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut damaged = file(true, &[("a", "1"), ("bb", "22")]);
            let at = at % damaged.len();
            let end = damaged.len().min(at + bytes.len());
            damaged.splice(at..end, bytes.iter().copied());
            for bytes in [&damaged, &bytes] {
                let Ok(data) = PerfData::new(bytes) else { continue };
                let counters: Vec<_> = data.flatten().collect();
                prop_assert!(counters.len() * COUNTER <= bytes.len());
            }
        }
    }
}
