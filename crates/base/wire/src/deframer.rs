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

    /// Gives memory back beyond `most` bytes, if what is pending is not larger than that.
    pub fn shrink_to(&mut self, most: usize) {
        if self.buffer.capacity() > most && self.pending().len() <= most {
            self.buffer = self.pending().to_vec();
            self.start = 0;
        }
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

    #[test]
    fn memory_of_a_large_message_is_given_back() {
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
