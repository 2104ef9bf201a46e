//! Heap graphs of .NET programs: the files that dotnet-gcdump, dotnet-monitor and `PerfView` write (`.gcdump`).
//!
//! Source: `Graph.cs`, `MemoryGraph.cs` and `GCHeapDump.cs` of microsoft/perfview, and `FastSerialization.cs` for the
//! container. A file is a tree of objects; the first one, `GCHeapDump`, starts with the graph, and only the graph is read.
//! All numbers are little-endian.
//!
//! - A graph of that format starts at a single node, whose descendants up to the first objects are names and kinds of
//!   roots in brackets. These nodes become [`Root`](crate::Root)s and are not counted as objects.
//! - The writers append the magnitude of an object's size to the name of its type, as in `String (Bytes > 10K)`. It is
//!   removed, so that the objects of a type are counted together.

mod nodes;
mod roots;
mod write;

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

pub use self::write::{GcDumpSource, write};
use crate::gcdump::nodes::Nodes;
use crate::{Graph, Incomplete};

/// How every file starts.
const MAGIC: &[u8] = b"\x14\0\0\0!FastSerialization.1";
/// The newest version of a graph whose layout is known.
const GRAPH_VERSION: i32 = 0;
/// The greatest number of UTF-16 units in a name.
const MAX_NAME: i32 = 1 << 20;

/// Whether a file is a heap graph, according to its first bytes.
pub fn is_gcdump(start: &[u8]) -> bool {
    let mut r = Reader::new(start);
    r.bytes(MAGIC.len(), "magic").is_ok_and(|magic| magic == MAGIC)
        && object(&mut r).is_ok_and(|(name, _)| name == "GCHeapDump")
}

/// Reads a heap graph from pieces of any size. Keeps the file in memory until the end.
#[derive(Debug, Default)]
pub struct GcDumpReader {
    bytes: Vec<u8>,
}

impl GcDumpReader {
    /// Creates a reader at the start of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the graph at the end of the file. A damage behind the types ends the graph and is stated by it.
    ///
    /// # Errors
    /// If the file is no heap graph, is of a newer version, or ends before the first object.
    pub fn finish(self) -> Result<Graph, DecodeError> {
        let mut r = Reader::new(&self.bytes);
        if r.bytes(MAGIC.len(), "magic")? != MAGIC {
            let kind = DecodeErrorKind::Invalid("is not that of a heap graph (gcdump)");
            return Err(DecodeError::new(0, "magic", kind));
        }
        for expected in ["GCHeapDump", "Graphs.MemoryGraph"] {
            let start = r.clone();
            let (name, oldest_reader) = object(&mut r)?;
            if name != expected {
                let kind = DecodeErrorKind::Invalid("is not that of a heap graph (gcdump)");
                return Err(start.error("object type", kind));
            }
            if expected != "GCHeapDump" && oldest_reader > GRAPH_VERSION {
                return Err(start.error("version of the graph", DecodeErrorKind::Invalid("is too new")));
            }
        }
        r.i64("total size")?;
        let root = r.u32("root node")?;
        let mut nodes = Nodes::types(&mut r)?;
        let mut builder = crate::GraphBuilder::default();
        if let Err(error) = nodes.read(&mut r) {
            builder.incomplete(if error.is_incomplete() {
                Incomplete::Truncated { offset: self.bytes.len() as u64 }
            } else {
                Incomplete::Damaged(error)
            });
        }
        Ok(roots::build(&nodes, root, builder))
    }
}

/// Reads the start of an object: the name of its type, and the oldest version of readers that can read it.
fn object(r: &mut Reader<'_>) -> Result<(String, i32), DecodeError> {
    /// `BeginObject` and `BeginPrivateObject`.
    const BEGIN: [u8; 2] = [4, 5];
    const NULL: u8 = 1;
    const END: u8 = 6;
    let tag = |r: &mut Reader<'_>, valid: &[u8]| {
        let start = r.clone();
        let tag = r.u8("tag")?;
        let expected = "the start of an object";
        let kind = DecodeErrorKind::Unexpected { value: tag.into(), expected };
        if valid.contains(&tag) { Ok(()) } else { Err(start.error("tag", kind)) }
    };
    tag(r, &BEGIN)?;
    tag(r, &BEGIN)?;
    tag(r, &[NULL])?;
    r.i32("version")?;
    let oldest_reader = r.i32("oldest reader")?;
    let name = text(r, "object type")?.unwrap_or_default();
    tag(r, &[END])?;
    Ok((name, oldest_reader))
}

/// Reads a text: the number of UTF-16 units, each of which is encoded as up to 3 bytes in the way of UTF-8. `None` for a
/// number of -1.
fn text(r: &mut Reader<'_>, what: &'static str) -> Result<Option<String>, DecodeError> {
    let start = r.clone();
    let count = r.i32(what)?;
    if !(-1..=MAX_NAME).contains(&count) {
        let kind = DecodeErrorKind::TooLarge { value: count.unsigned_abs().into(), limit: 1 << 20 };
        return Err(start.error(what, kind));
    }
    if count == -1 {
        return Ok(None);
    }
    let mut units = Vec::new();
    for _ in 0..count {
        let first = u16::from(r.u8(what)?);
        let mut more = || r.u8(what).map(|byte| u16::from(byte & 0x3f));
        units.push(match first {
            0xe0.. => (first & 0xf) << 12 | more()? << 6 | more()?,
            0xc0.. => (first & 0x1f) << 6 | more()?,
            _ => first,
        });
    }
    Ok(Some(String::from_utf16_lossy(&units)))
}
