//! The ways in which recordings are damaged.

use std::ops::Range;

use runtap_nettrace::inspect::{Block, Inspect, Inspected};

/// A way to damage a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Damage {
    /// The end is missing from this byte on.
    Cut(usize),
    /// This bit is another.
    Flip(usize),
    /// The blocks come in an order that this number stands for.
    Order(usize),
    /// The four bytes here are these.
    Length(usize, u32),
    /// From this byte on, so many are missing.
    Hole(usize, usize),
}

impl Damage {
    /// A damaged copy.
    pub(crate) fn to(self, bytes: &[u8], blocks: &[Block]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        match self {
            Self::Cut(at) => damaged.truncate(at),
            Self::Flip(bit) => damaged[bit / 8] ^= 1 << (bit % 8),
            Self::Order(seed) => return shuffled(bytes, blocks, seed),
            Self::Length(at, value) => damaged[at..at + 4].copy_from_slice(&value.to_le_bytes()),
            Self::Hole(at, length) => drop(damaged.drain(at..at + length)),
        }
        damaged
    }

    /// The first byte that is not what it was, if that can be said of a whole recording.
    pub(crate) fn first_byte(self, length: usize) -> Option<usize> {
        match self {
            Self::Cut(at) => Some(at),
            Self::Flip(bit) => Some(bit / 8),
            Self::Length(at, _) | Self::Hole(at, _) => Some(at),
            Self::Order(_) => None,
        }
        .filter(|at| *at < length)
    }
}

/// Numbers that look random, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    /// Others for other recordings.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(bytes.len() as u64)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 2).unwrap() % end
    }
}

/// The blocks of a recording.
pub(crate) fn blocks(bytes: &[u8]) -> Vec<Block> {
    let mut inspect = Inspect::new();
    inspect.feed(bytes);
    inspect.finish();
    let found = std::iter::from_fn(|| inspect.next());
    found.filter_map(|found| if let Inspected::Block(block) = found { Some(block) } else { None }).collect()
}

/// Where the payload of a block is.
fn payload(block: &Block) -> Range<usize> {
    let start = usize::try_from(block.offset + block.header_bytes).unwrap();
    start..start + usize::try_from(block.size).unwrap()
}

/// Places of sizes of blocks, and of the first numbers in them (sizes of headers, ids, counts), with what to put there.
pub(crate) fn lengths(blocks: &[Block]) -> Vec<(usize, u32)> {
    let values = [0, 1, 0x7f, 0xffff, 0x00ff_ffff, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let mut places = Vec::new();
    for block in blocks.iter().filter(|block| !block.is_truncated && block.size >= 12) {
        let start = payload(block).start;
        let size = if block.number.is_some() {
            start - 4
        } else {
            // Behind two tags, a tag, two versions, the name with its size, and a tag.
            usize::try_from(block.offset).unwrap() + 16 + block.name.len()
        };
        places.extend([size, start, start + 4, start + 8]);
    }
    places.iter().flat_map(|at| values.map(|value| (*at, value))).collect()
}

/// The blocks behind the header in another order. Those with names are padded to where they stand.
fn shuffled(bytes: &[u8], blocks: &[Block], seed: usize) -> Vec<u8> {
    let mut random = Random(seed as u64);
    let mut order: Vec<&Block> = blocks.iter().filter(|block| !block.is_truncated).collect();
    let Some(second) = order.get(1) else { return bytes.to_vec() };
    let mut stream = bytes[..usize::try_from(second.offset).unwrap()].to_vec();
    for n in (2..order.len()).rev() {
        order.swap(n, 1 + random.below(n));
    }
    for block in &order[1..] {
        let start = usize::try_from(block.offset).unwrap();
        if block.number.is_some() || block.header_bytes == 0 {
            stream.extend(&bytes[start..payload(block).end]);
        } else {
            stream.extend(&bytes[start..start + 20 + block.name.len()]);
            while !stream.len().is_multiple_of(4) {
                stream.push(0);
            }
            stream.extend(&bytes[payload(block)]);
            stream.push(6);
        }
    }
    // An end marker, of either kind.
    stream.extend(if blocks[0].number.is_some() { &[0; 4][..] } else { &[1] });
    stream
}
