//! A byte queue that turns chunks into messages.

/// A contiguous queue of received bytes that have not been consumed yet.
///
/// The memory used is bounded by the number of unconsumed bytes. Consuming is free, and freed space at the front is
/// reused before the buffer grows.
#[derive(Debug, Clone, Default)]
pub struct Deframer {
    buffer: Vec<u8>,
    /// Index of the first unconsumed byte.
    start: usize,
    /// Stream offset of the first unconsumed byte.
    offset: u64,
}

impl Deframer {
    /// Creates an empty queue at stream offset 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends received bytes.
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

    /// Returns the bytes that have not been consumed yet.
    pub fn pending(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Returns the stream offset of the first pending byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Marks `n` bytes as consumed, or all pending bytes if there are fewer.
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.buffer.len() - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    /// Shrinks the buffer if its capacity exceeds `most` bytes and the pending bytes fit into `most`.
    pub fn shrink_to(&mut self, most: usize) {
        if self.buffer.capacity() > most && self.pending().len() <= most {
            self.buffer = self.pending().to_vec();
            self.start = 0;
        }
    }

    /// Returns the capacity of the buffer in bytes.
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

    #[test]
    fn shrinking_frees_the_memory_of_a_consumed_large_message() {
        let mut queue = Deframer::new();
        queue.feed(&[7; 10_000]);
        queue.shrink_to(1000);
        assert_eq!(queue.pending().len(), 10_000);
        queue.consume(9_997);
        queue.shrink_to(1000);
        assert!(queue.capacity() <= 1000, "{}", queue.capacity());
        assert_eq!((queue.pending(), queue.offset()), (&[7; 3][..], 9_997));
    }
}
