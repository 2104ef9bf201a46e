//! Splitting of chunks of any size into lines.

/// The maximum length of a line in bytes, because tests can print anything.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The splitter, with the incomplete last line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    truncated: u64,
    is_truncated: bool,
}

impl Lines {
    /// Calls `take` for each complete line, without its line end. Invalid UTF-8 becomes U+FFFD.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(&str)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            self.keep(line);
            self.give(&mut take);
        }
        self.keep(bytes);
    }

    /// Calls `take` for the last line if it has no line end.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&str)) {
        if !self.partial.is_empty() {
            self.give(&mut take);
        }
    }

    /// Returns the number of truncated lines.
    pub(crate) fn truncated(&self) -> u64 {
        self.truncated
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
        self.is_truncated |= bytes.len() > room;
        self.partial.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn give(&mut self, take: &mut impl FnMut(&str)) {
        self.truncated += u64::from(std::mem::take(&mut self.is_truncated));
        let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        take(&String::from_utf8_lossy(line));
        self.partial.clear();
    }
}
