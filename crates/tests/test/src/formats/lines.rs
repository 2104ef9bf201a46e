//! Lines out of pieces of any size.

/// What a line may have; a test can print anything.
const LONGEST: usize = 16 << 20;

/// The line that is not whole yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
    cut: u64,
    is_cut: bool,
}

impl Lines {
    /// Calls `take` for each whole line, without its end. What is no UTF-8 becomes U+FFFD.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(&str)) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            self.keep(line);
            self.give(&mut take);
        }
        self.keep(bytes);
    }

    /// The last line, if it has no end.
    pub(crate) fn finish(&mut self, mut take: impl FnMut(&str)) {
        if !self.partial.is_empty() {
            self.give(&mut take);
        }
    }

    /// How many lines were longer than is read.
    pub(crate) fn cut(&self) -> u64 {
        self.cut
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LONGEST.saturating_sub(self.partial.len());
        self.is_cut |= bytes.len() > room;
        self.partial.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn give(&mut self, take: &mut impl FnMut(&str)) {
        self.cut += u64::from(std::mem::take(&mut self.is_cut));
        let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
        take(&String::from_utf8_lossy(line));
        self.partial.clear();
    }
}
