//! What a connection has sent last, for people who have to find a mistake in it.

use std::fmt::Write as _;

/// So much is kept of what came before the last piece.
const KEPT: usize = 4 << 10;
/// Shown before the place that is wrong, and from there on.
const BEFORE: usize = 16;
const FROM: usize = 32;

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    bytes: Vec<u8>,
    /// Offset of the first of them.
    start: u64,
}

impl Sent {
    /// Takes in what has come.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let excess = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..excess);
        self.start += excess as u64;
        self.bytes.extend_from_slice(piece);
    }

    /// The bytes around an offset, as a line: those before, `|`, those from there on. Nothing if they are gone.
    pub(crate) fn around(&self, offset: u64) -> Option<String> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let before = self.bytes.get(at.saturating_sub(BEFORE)..at)?;
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
        let shown = from.get(..FROM).unwrap_or(from);
        let more = if shown.len() < from.len() { " …" } else { "" };
        let start = offset - before.len() as u64;
        Some(format!("bytes from offset {start}:{}{mark}{}{more}", hex(before), hex(shown)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_around_a_place_are_shown_while_they_are_there() {
        let mut sent = Sent::default();
        assert_eq!(sent.around(0), None);
        sent.push(&[1, 2]);
        sent.push(&[3, 0xff]);
        assert_eq!(sent.around(2).unwrap(), "bytes from offset 0: 01 02 | 03 ff");
        assert_eq!(sent.around(0).unwrap(), "bytes from offset 0: 01 02 03 ff");
        assert_eq!(sent.around(4).unwrap(), "bytes from offset 0: 01 02 03 ff |");
        assert_eq!(sent.around(5), None);
        sent.push(&[7; 100]);
        let long = sent.around(4).unwrap();
        assert!(long.ends_with("07 …") && long.matches("07").count() == FROM, "{long}");
        sent.push(&vec![8; 2 * KEPT]);
        sent.push(&[9]);
        assert_eq!(sent.around(4), None, "it is gone");
        assert!(sent.around(104 + 2 * KEPT as u64).unwrap().ends_with("08 | 09"));
        assert!(sent.bytes.len() <= 3 * KEPT);
    }
}
