//! The end of a command's output, printed when the command fails without a failed test.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::Write as _;

/// The number of bytes that are kept. Servers show the last 200 lines.
const MAX_TAIL_BYTES: usize = 32 << 10;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    is_truncated: bool,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let last = bytes.get(bytes.len().saturating_sub(MAX_TAIL_BYTES)..).unwrap_or(bytes);
        self.is_truncated |= last.len() < bytes.len();
        self.bytes.extend(last);
        let more = self.bytes.len().saturating_sub(MAX_TAIL_BYTES);
        self.is_truncated |= more > 0;
        self.bytes.drain(..more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Prints the output to standard error, starting at a complete line.
    pub(crate) fn print(&mut self) {
        let bytes = self.text();
        // The reader may have closed the stream.
        let _ = std::io::stderr().lock().write_all(bytes);
    }

    fn text(&mut self) -> &[u8] {
        let is_truncated = self.is_truncated;
        let bytes = self.bytes.make_contiguous();
        let from = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if is_truncated { bytes.get(from..).unwrap_or_default() } else { bytes }
    }
}

pub(crate) fn print_error(text: &dyn Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_from_the_start_of_a_line() {
        let mut tail = Tail::default();
        tail.push(b"one\ntwo\n");
        assert_eq!(tail.text(), b"one\ntwo\n");
        for number in 0..20_000 {
            tail.push(format!("{number}\n").as_bytes());
        }
        assert!(tail.text().len() <= MAX_TAIL_BYTES && tail.text().ends_with(b"\n19999\n"));
        assert!(tail.text().starts_with(b"1"), "a complete line");
        let mut tail = Tail::default();
        tail.push(&vec![b'x'; MAX_TAIL_BYTES + 1]);
        assert_eq!(tail.text().len(), MAX_TAIL_BYTES);
    }
}
