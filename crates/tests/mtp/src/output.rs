//! What a program prints: bounded, with its beginning and its end, whatever it floods us with.

use std::collections::VecDeque;
use std::io::Read;

/// Kept of the beginning, and as much again of the end.
const KEPT: usize = 256 << 10;

/// The output of one program on one of its streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Output {
    /// Takes in what comes next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(first);
        // Of a large piece, only what will stay.
        let rest = rest.get(rest.len().saturating_sub(KEPT)..).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(KEPT);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Bytes that were printed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that were left out between beginning and end.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// As text: what is no UTF-8 is replaced, and a line says how much was left out.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        let left_out = self.left_out();
        if left_out > 0 {
            text.extend(["\n… ", &left_out.to_string(), " bytes left out …\n"]);
        }
        let (one, two) = self.tail.as_slices();
        text.push_str(&String::from_utf8_lossy(&[one, two].concat()));
        text
    }

    /// Whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Reads until the end and hands on each piece as it comes.
pub(crate) fn read_all(mut from: impl Read, mut each: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => each(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept() {
        let mut output = Output::default();
        for n in 0..200_000 {
            output.push(format!("{n:07}\n").as_bytes());
        }
        assert_eq!(output.total(), 1_600_000);
        let text = output.text();
        assert!(text.starts_with("0000000\n0000001\n") && text.ends_with("0199998\n0199999\n"));
        assert!(text.contains(&format!("\n… {} bytes left out …\n", 1_600_000 - 2 * KEPT)));
        assert!(text.len() < 2 * KEPT + 100);
    }

    #[test]
    fn one_large_piece_is_like_many_small_ones() {
        let bytes: Vec<u8> = (0..3 * KEPT + 17).map(|n| n.to_le_bytes()[0]).collect();
        let (mut one, mut many) = (Output::default(), Output::default());
        one.push(&bytes);
        bytes.chunks(1000).for_each(|piece| many.push(piece));
        assert_eq!(one, many);
        assert_eq!(one.left_out(), KEPT as u64 + 17);
    }

    #[test]
    fn short_output_is_whole() {
        let mut output = Output::default();
        output.push(b"a\xff");
        assert_eq!((output.text().as_str(), output.left_out()), ("a\u{fffd}", 0));
    }
}
