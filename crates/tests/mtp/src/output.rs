//! The output of a program, with bounded memory: the beginning and the end are kept.

use std::collections::VecDeque;
use std::io::Read;

/// The number of bytes kept of the beginning, and of the end.
const MAX_KEPT_BYTES: usize = 256 << 10;

/// The output of one program on one of its streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Output {
    /// Appends output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(MAX_KEPT_BYTES - self.head.len()));
        self.head.extend_from_slice(first);
        // Skip bytes that would be removed again.
        let rest = rest.get(rest.len().saturating_sub(MAX_KEPT_BYTES)..).unwrap_or_default();
        let excess = (self.tail.len() + rest.len()).saturating_sub(MAX_KEPT_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes that were printed.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of bytes that were dropped between the beginning and the end.
    pub fn left_out(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// Returns the output as text. Invalid UTF-8 is replaced, and a line reports the number of dropped bytes.
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

    /// Returns whether nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Reads until the end, and passes each chunk to `each`.
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
        assert!(text.contains(&format!("\n… {} bytes left out …\n", 1_600_000 - 2 * MAX_KEPT_BYTES)));
        assert!(text.len() < 2 * MAX_KEPT_BYTES + 100);
    }

    #[test]
    fn chunk_sizes_do_not_affect_the_result() {
        let bytes: Vec<u8> = (0..3 * MAX_KEPT_BYTES + 17).map(|n| n.to_le_bytes()[0]).collect();
        let (mut one, mut many) = (Output::default(), Output::default());
        one.push(&bytes);
        bytes.chunks(1000).for_each(|piece| many.push(piece));
        assert_eq!(one, many);
        assert_eq!(one.left_out(), MAX_KEPT_BYTES as u64 + 17);
    }

    #[test]
    fn short_output_is_complete() {
        let mut output = Output::default();
        output.push(b"a\xff");
        assert_eq!((output.text().as_str(), output.left_out()), ("a\u{fffd}", 0));
    }
}
