//! A byte queue: chunks in at the back, whole messages out at the front.

/// Bytes that arrived and were not consumed yet, contiguous. Memory is bounded by what was fed and not consumed;
/// consuming is free, and the space in front is used again before the buffer grows.
#[derive(Debug, Clone, Default)]
pub struct Deframer {
    buffer: Vec<u8>,
    /// First byte that was not consumed.
    start: usize,
    /// Stream offset of that byte.
    offset: u64,
}

impl Deframer {
    /// An empty queue at stream offset 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > 0 && self.buffer.capacity() - self.buffer.len() < bytes.len() {
            self.buffer.copy_within(self.start.., 0);
            self.buffer.truncate(self.buffer.len() - self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The bytes that were not consumed yet.
    pub fn pending(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Stream offset of the first pending byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Marks `n` bytes as consumed; at most those that are pending.
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.buffer.len() - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_its_space() {
        let mut queue = Deframer::new();
        for round in 0..1000u64 {
            queue.feed(&[7; 100]);
            assert_eq!(queue.offset(), round * 90);
            assert_eq!(queue.pending().len() as u64, round * 10 + 100);
            queue.consume(90);
        }
        assert!(queue.capacity() < 64 * 1024, "{}", queue.capacity());
        queue.consume(usize::MAX);
        assert!(queue.pending().is_empty());
        assert_eq!(queue.offset(), 100_000);
    }
}
