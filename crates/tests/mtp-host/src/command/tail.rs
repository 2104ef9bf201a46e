//! The end of what a command has printed, for when it fails without a test to blame.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::Write as _;

/// So many bytes are kept: servers show the last 200 lines.
const KEPT: usize = 32 << 10;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: VecDeque<u8>,
    is_cut: bool,
}

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let last = bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or(bytes);
        self.is_cut |= last.len() < bytes.len();
        self.bytes.extend(last);
        let more = self.bytes.len().saturating_sub(KEPT);
        self.is_cut |= more > 0;
        self.bytes.drain(..more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// On standard error, from the beginning of a line on.
    pub(crate) fn print(&mut self) {
        let bytes = self.text();
        // Whoever reads it may be gone.
        let _ = std::io::stderr().lock().write_all(bytes);
    }

    fn text(&mut self) -> &[u8] {
        let is_cut = self.is_cut;
        let bytes = self.bytes.make_contiguous();
        let from = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if is_cut { bytes.get(from..).unwrap_or_default() } else { bytes }
    }
}

pub(crate) fn say(what: &dyn Display) {
    let _ = writeln!(std::io::stderr().lock(), "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_from_a_line_on() {
        let mut tail = Tail::default();
        tail.push(b"one\ntwo\n");
        assert_eq!(tail.text(), b"one\ntwo\n");
        for number in 0..20_000 {
            tail.push(format!("{number}\n").as_bytes());
        }
        assert!(tail.text().len() <= KEPT && tail.text().ends_with(b"\n19999\n"));
        assert!(tail.text().starts_with(b"1"), "a whole line");
        let mut tail = Tail::default();
        tail.push(&vec![b'x'; KEPT + 1]);
        assert_eq!(tail.text().len(), KEPT);
    }
}
