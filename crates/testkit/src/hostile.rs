//! Streams that never end and never repeat. Each grows one kind of data that a reader has to remember. They are
//! generated piece by piece, so they can have any length, and byte by byte, because a writer would reject most of them.
//! Every stream is valid according to its format, and has events that use the definitions.

use std::io::{self, Write};
use std::path::Path;

use crate::replay;

/// The kind of data that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Definitions with different ids, in Nettrace 4.
    Definitions,
    /// Definitions with thousands of unnamed fields each, which take more memory than bytes.
    Fields,
    /// Definitions with the longest names, each used by an event.
    Names,
    /// Stacks with one frame each, without a sequence point.
    Stacks,
    /// Stacks without frames, one per block, with distant ids.
    EmptyStacks,
    /// Capture threads with an event each.
    Threads,
    /// Methods with different names, and samples in them.
    Methods,
    /// Events of one endless run, so that none is known to be the oldest.
    Unordered,
    /// Blocks of the maximum size with one event each.
    Blocks,
    /// Threads of Nettrace 6 with different processes.
    ThreadRows,
    /// Threads of Nettrace 6 with thousands of unnamed attributes each.
    Attributes,
    /// Lists of one short label each, in Nettrace 6, without a sequence point.
    Labels,
    /// One list of a hundred thousand labels, used by all of many small events.
    LongList,
    /// Definitions of Nettrace 6 that sequence points remove repeatedly and that return with new ids.
    TakenBack,
    /// Sequence points with thousands of threads each, and a thousand without any.
    Points,
}

impl Growth {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::Definitions,
        Self::Fields,
        Self::Names,
        Self::Stacks,
        Self::EmptyStacks,
        Self::Threads,
        Self::Methods,
        Self::Unordered,
        Self::Blocks,
        Self::ThreadRows,
        Self::Attributes,
        Self::Labels,
        Self::LongList,
        Self::TakenBack,
        Self::Points,
    ];

    fn is_of_version_6(self) -> bool {
        matches!(self, Self::ThreadRows | Self::Attributes | Self::Labels | Self::LongList | Self::TakenBack)
    }

    /// Writes a stream of at least this number of bytes without an end marker. Returns its actual size in bytes.
    ///
    /// # Errors
    /// If writing fails, for example because the reader stopped.
    pub fn write(self, bytes: u64, w: &mut impl Write) -> io::Result<u64> {
        let mut stream = Stream { w, bytes: 0, version_6: self.is_of_version_6() };
        stream.start()?;
        let mut n = 0;
        while stream.bytes < bytes {
            self.step(n, &mut stream)?;
            n += 1;
        }
        Ok(stream.bytes)
    }

    /// Writes the `n`th piece.
    fn step<W: Write>(self, n: u32, stream: &mut Stream<W>) -> io::Result<()> {
        let time = u64::from(n) * 1000 + 1;
        match self {
            Self::Definitions => {
                let records = (0..500).map(|i| record(n * 500 + i + 10, "Hostile", "Event", &[]));
                stream.definitions(records)?;
                stream.event(n * 500 + 10, 1, 0, time, b"")
            }
            Self::Fields => {
                // A field consists of a type and the end of a name.
                let mut fields = 10_000_u32.to_le_bytes().to_vec();
                fields.extend([9, 0, 0, 0, 0, 0].repeat(10_000));
                stream.definitions([record(n + 10, "Hostile", "Event", &fields)].into_iter())?;
                stream.event(n + 10, 1, 0, time, b"")
            }
            Self::Names => {
                let name = format!("{n}{}", "\u{1}".repeat(30_000));
                stream.definitions([record(n + 10, &name, "Event", &[])].into_iter())?;
                stream.event(n + 10, 1, 0, time, b"")
            }
            Self::Stacks => {
                let mut block = words(&[n * 4000, 4000]);
                for i in 0..4000_u64 {
                    block.extend(words(&[8]));
                    block.extend((u64::from(n) * 4000 + i).to_le_bytes());
                }
                stream.block("StackBlock", 5, &block)?;
                stream.event(1, 1, n * 4000, time, b"")
            }
            Self::EmptyStacks => {
                for i in 0..100 {
                    stream.block("StackBlock", 5, &words(&[(n * 100 + i).wrapping_mul(7919), 1, 0]))?;
                }
                stream.event(1, 1, n, time, b"")
            }
            Self::Threads => {
                let mut events = Vec::new();
                for i in 0..4000 {
                    head(&mut events, (1, u64::from(n) * 4000 + i + 1), 0, u64::from(i == 0) * time, b"");
                }
                stream.events(&events)
            }
            Self::Methods => {
                let mut events = Vec::new();
                for i in 0..200_u64 {
                    let at = 0x1000_0000 + (u64::from(n) * 200 + i) * 64;
                    head(&mut events, (2, 1), 0, 1, &method(at, &format!("Method{n}_{i}")));
                }
                stream.block(
                    "StackBlock",
                    5,
                    &[words(&[n, 1, 8]), (0x1000_0000 + u64::from(n) * 64).to_le_bytes().to_vec()].concat(),
                )?;
                head(&mut events, (1, 1), n, 1, &2_u32.to_le_bytes());
                stream.events(&events)
            }
            Self::Unordered => {
                let mut events = Vec::new();
                for _ in 0..1000 {
                    let start = events.len();
                    head(&mut events, (1, 1), 0, 1, &[7; 90]);
                    events[start] &= !SORTED;
                }
                stream.events(&events)
            }
            Self::Blocks => {
                let mut events = Vec::new();
                head(&mut events, (1, 1), 0, time, &vec![7; 63 << 20]);
                stream.events(&events)
            }
            Self::ThreadRows => {
                let mut rows = Vec::new();
                for i in 0..2000_u64 {
                    let index = u64::from(n) * 2000 + i + 2;
                    let mut row = varint(index);
                    for kind in [2, 3] {
                        row.push(kind);
                        row.extend(varint(index));
                    }
                    rows.extend(u16::try_from(row.len()).unwrap_or(0).to_le_bytes());
                    rows.extend(row);
                }
                stream.block("", 6, &rows)?;
                stream.event(1, u64::from(n) * 2000 + 2, 0, time, b"")
            }
            Self::Attributes => {
                let mut row = varint(u64::from(n) + 2);
                row.extend([4, 0, 0].repeat(20_000));
                let mut rows = u16::try_from(row.len()).unwrap_or(0).to_le_bytes().to_vec();
                rows.extend(row);
                stream.block("", 6, &rows)?;
                stream.event(1, u64::from(n) + 2, 0, time, b"")
            }
            Self::Labels => {
                let mut block = words(&[n * 5000 + 1, 5000]);
                block.extend([0x87, 1].repeat(5000));
                stream.block("", 8, &block)?;
                stream.event(1, 1, 0, time, b"")
            }
            Self::LongList => {
                let time = u64::from(n) * 20_000 + 1;
                if n == 0 {
                    let list = [[5, 0, 0].repeat(99_999), vec![0x85, 0, 0]].concat();
                    stream.block("", 8, &[words(&[1, 1]), list].concat())?;
                }
                let mut events = Vec::new();
                events.push(SORTED | 0x8f | LABELS);
                events.extend([1, 0, 1, 0, 1, 0]);
                events.extend(varint(time));
                events.extend([1, 12]);
                events.extend([0; 12]);
                // Same as before, one tick later.
                events.extend([&[SORTED, 1], &[0; 12][..]].concat().repeat(20_000));
                stream.events(&events)
            }
            Self::TakenBack => {
                // New ids, until a table by id is full.
                let id = n % 60_000 + 10;
                stream.rows(&row_v6(id, &"\u{1}".repeat(30_000)))?;
                stream.event(id, 1, 0, time, b"")?;
                let mut point = time.to_le_bytes().to_vec();
                point.extend(words(&[2, 0]));
                stream.block("", 4, &point)?;
                stream.rows(&row_v6(1, "Hostile"))
            }
            Self::Points => {
                let mut point = time.to_le_bytes().to_vec();
                point.extend(words(&[5000]));
                for i in 0..5000_u64 {
                    point.extend((u64::from(n) * 5000 + i).to_le_bytes());
                    point.extend(words(&[1]));
                }
                stream.block("SPBlock", 4, &point)?;
                let empty = [time.to_le_bytes().to_vec(), words(&[0])].concat();
                for _ in 0..1000 {
                    stream.block("SPBlock", 4, &empty)?;
                }
                stream.event(1, 1, 0, time, b"")
            }
        }
    }
}

/// A stream that is being written.
struct Stream<W> {
    w: W,
    bytes: u64,
    version_6: bool,
}

impl<W: Write> Stream<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.w.write_all(bytes)
    }

    /// Writes the start, and the definitions 1 (a sample) and 2 (a loaded method).
    fn start(&mut self) -> io::Result<()> {
        let mut trace: Vec<u8> =
            [2026_u16, 1, 4, 1, 0, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes).collect();
        trace.extend(0_u64.to_le_bytes());
        trace.extend(1_000_000_000_u64.to_le_bytes());
        trace.extend(words(&[8]));
        if self.version_6 {
            trace.extend(words(&[0]));
            self.put(b"Nettrace\0\0\0\0\x06\0\0\0\0\0\0\0")?;
            self.block("", 1, &trace)?;
            return self.rows(&row_v6(1, "Hostile"));
        }
        trace.extend(words(&[42, 2, 1_000_000]));
        self.put(b"Nettrace\x14\0\0\0!FastSerialization.1")?;
        self.put(&[5, 5, 1])?;
        self.put(&words(&[4, 4, 5]))?;
        self.put(b"Trace\x06")?;
        self.put(&trace)?;
        self.put(&[6])?;
        let runtime = "Microsoft-Windows-DotNETRuntime";
        let mut loaded = words(&[2]);
        loaded.extend(utf16(runtime));
        loaded.extend(words(&[143]));
        loaded.extend(utf16(""));
        loaded.extend(0x30_u64.to_le_bytes());
        loaded.extend(words(&[1, 4, 0]));
        let sample = record(1, "Microsoft-DotNETCore-SampleProfiler", "", &[]);
        self.definitions([sample, loaded].into_iter())
    }

    /// Writes a block, identified by its kind in Nettrace 6 and by its name in Nettrace 4.
    fn block(&mut self, name: &str, kind: u8, payload: &[u8]) -> io::Result<()> {
        let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if self.version_6 {
            self.put(&(size | u32::from(kind) << 24).to_le_bytes())?;
            return self.put(payload);
        }
        self.put(&[5, 5, 1])?;
        self.put(&words(&[2, 2, u32::try_from(name.len()).unwrap_or(0)]))?;
        self.put(name.as_bytes())?;
        self.put(&[6])?;
        self.put(&words(&[size]))?;
        let padding = usize::try_from(self.bytes.next_multiple_of(4) - self.bytes).unwrap_or(0);
        self.put(&[0; 3][..padding])?;
        self.put(payload)?;
        self.put(&[6])
    }

    fn definitions(&mut self, records: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
        let mut blobs = Vec::new();
        for record in records {
            head(&mut blobs, (0, 0), 0, 0, &record);
        }
        let block = compressed(&blobs);
        self.block("MetadataBlock", 3, &block)
    }

    /// Writes a block with one definition of Nettrace 6.
    fn rows(&mut self, row: &[u8]) -> io::Result<()> {
        let mut block = vec![0, 0];
        block.extend(u16::try_from(row.len()).unwrap_or(0).to_le_bytes());
        block.extend(row);
        self.block("", 3, &block)
    }

    fn events(&mut self, events: &[u8]) -> io::Result<()> {
        self.block("EventBlock", 2, &compressed(events))
    }

    /// Writes a block with one event.
    fn event(&mut self, id: u32, thread: u64, stack: u32, time: u64, payload: &[u8]) -> io::Result<()> {
        let mut events = Vec::new();
        head(&mut events, (id, thread), stack, time, payload);
        self.events(&events)
    }
}

/// Header flag: no later event of the stream is older.
const SORTED: u8 = 0x40;
/// Header flag: the header contains the id of a label list.
const LABELS: u8 = 0x10;

/// Appends a blob with the fields that every header may have.
fn head(blobs: &mut Vec<u8>, (id, thread): (u32, u64), stack: u32, ticks: u64, payload: &[u8]) {
    blobs.push(SORTED | 0x8f);
    blobs.extend(varint(id.into()));
    blobs.extend([0]);
    blobs.extend(varint(thread));
    blobs.extend([0]);
    blobs.extend(varint(thread));
    blobs.extend(varint(stack.into()));
    blobs.extend(varint(ticks));
    blobs.extend(varint(payload.len() as u64));
    blobs.extend(payload);
}

/// Returns the payload of a block with compressed headers.
fn compressed(blobs: &[u8]) -> Vec<u8> {
    let mut block = vec![20, 0, 1, 0];
    block.extend([0; 16]);
    block.extend(blobs);
    block
}

/// Returns a definition of Nettrace 4 with these fields.
fn record(id: u32, provider: &str, name: &str, fields: &[u8]) -> Vec<u8> {
    let mut record = words(&[id]);
    record.extend(utf16(provider));
    record.extend(words(&[0]));
    record.extend(utf16(name));
    record.extend([0; 8]);
    record.extend(words(&[0, 4]));
    record.extend(if fields.is_empty() { &[0; 4] } else { fields });
    record
}

/// Returns a definition of Nettrace 6 without its size.
fn row_v6(id: u32, provider: &str) -> Vec<u8> {
    let mut row = varint(id.into());
    row.extend(varint(provider.len() as u64));
    row.extend(provider.as_bytes());
    row.extend([0, 0, 0, 0, 0, 0]);
    row
}

/// Returns the payload of `MethodLoadVerbose_V1`.
fn method(start: u64, name: &str) -> Vec<u8> {
    let mut payload: Vec<u8> = [start, 7, start].into_iter().flat_map(u64::to_le_bytes).collect();
    payload.extend(words(&[64, 0x0600_0001, 1]));
    for text in ["Namespace.Type", name, "void ()"] {
        payload.extend(utf16(text));
    }
    payload.extend([9, 0]);
    payload
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap_or(0);
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// Writes a complete recording of a thread that alternates between two stacks of `depth` frames every millisecond.
///
/// # Errors
/// If writing fails.
pub fn deep_stacks(depth: u32, samples: u32, w: &mut impl Write) -> io::Result<()> {
    let mut stream = Stream { w, bytes: 0, version_6: false };
    stream.start()?;
    let mut stacks = words(&[1, 2]);
    for root in [1_u64, 2] {
        stacks.extend(words(&[depth * 8]));
        stacks.extend((0..u64::from(depth)).flat_map(|n| (root << 32 | n << 4).to_le_bytes()));
    }
    stream.block("StackBlock", 5, &stacks)?;
    let mut events = Vec::new();
    for n in 0..samples {
        head(&mut events, (1, 1), n % 2 + 1, 1_000_000, &2_u32.to_le_bytes());
    }
    stream.events(&events)?;
    stream.put(&[1])
}

/// Serves a runtime on a socket that streams hostile data in every session and rejects all other commands.
///
/// # Panics
/// If the socket cannot be created.
pub fn serve(growth: Growth, bytes: u64, socket: &Path) {
    replay::serve(socket, move |client| {
        growth.write(bytes, &mut io::BufWriter::with_capacity(1 << 16, client)).map(drop)
    });
}
