//! The last bytes received on a connection, to help users find an error in them.

use std::fmt::Write as _;

/// The number of bytes kept before the last chunk.
const MAX_KEPT_BYTES: usize = 4 << 10;
/// The number of bytes shown before the invalid offset, and from the offset on.
const SHOWN_BEFORE: usize = 16;
const SHOWN_FROM: usize = 32;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct RecentBytes {
    bytes: Vec<u8>,
    /// The offset of the first byte.
    start: u64,
}

impl RecentBytes {
    /// Appends received bytes.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let excess = self.bytes.len().saturating_sub(MAX_KEPT_BYTES);
        self.bytes.drain(..excess);
        self.start += excess as u64;
        self.bytes.extend_from_slice(chunk);
    }

    /// Formats the bytes around an offset on one line: the bytes before it, `|`, and the bytes from it on. `None` if
    /// the bytes are no longer available.
    pub(crate) fn around(&self, offset: u64) -> Option<String> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let before = self.bytes.get(at.saturating_sub(SHOWN_BEFORE)..at)?;
        let from = self.bytes.get(at..)?;
        if before.is_empty() && from.is_empty() {
            return None;
        }
        let hex = |bytes: &[u8]| {
            bytes.iter().fold(String::new(), |mut text, byte| {
                // Writing to a string does not fail.
                let _ = write!(text, " {byte:02x}");
                text
            })
        };
        let mark = if before.is_empty() { "" } else { " |" };
        let shown = from.get(..SHOWN_FROM).unwrap_or(from);
        let more = if shown.len() < from.len() { " …" } else { "" };
        let start = offset - before.len() as u64;
        Some(format!("bytes from offset {start}:{}{mark}{}{more}", hex(before), hex(shown)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_around_an_offset_are_shown_while_they_are_available() {
        let mut sent = RecentBytes::default();
        assert_eq!(sent.around(0), None);
        sent.push(&[1, 2]);
        sent.push(&[3, 0xff]);
        assert_eq!(sent.around(2).unwrap(), "bytes from offset 0: 01 02 | 03 ff");
        assert_eq!(sent.around(0).unwrap(), "bytes from offset 0: 01 02 03 ff");
        assert_eq!(sent.around(4).unwrap(), "bytes from offset 0: 01 02 03 ff |");
        assert_eq!(sent.around(5), None);
        sent.push(&[7; 100]);
        let long = sent.around(4).unwrap();
        assert!(long.ends_with("07 …") && long.matches("07").count() == SHOWN_FROM, "{long}");
        sent.push(&vec![8; 2 * MAX_KEPT_BYTES]);
        sent.push(&[9]);
        assert_eq!(sent.around(4), None, "the bytes are no longer available");
        assert!(sent.around(104 + 2 * MAX_KEPT_BYTES as u64).unwrap().ends_with("08 | 09"));
        assert!(sent.bytes.len() <= 3 * MAX_KEPT_BYTES);
    }
}
