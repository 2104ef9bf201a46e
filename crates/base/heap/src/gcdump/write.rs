//! Writes heap graphs as `.gcdump` files for `PerfView`, Visual Studio and dotnet-gcdump.

use std::io::{self, Write};

use crate::dense::{Map, at, set, small};
use crate::{Graph, RootKind};

/// What a file states beside the graph.
#[derive(Debug, Clone, Copy, Default)]
pub struct GcDumpSource<'a> {
    /// The name of the process. Empty if unknown.
    pub process: &'a str,
    /// The id of the process; 0 if unknown.
    pub process_id: i32,
    /// The name of the machine. Empty if unknown.
    pub machine: &'a str,
    /// The time in units of 100 ns since the year 1; 0 if unknown.
    pub ticks: i64,
    /// Whether the process has 64 bits.
    pub is_64_bit: bool,
}

/// A node that is no object.
struct RootNode {
    type_index: u32,
    /// The nodes that it references.
    children: Vec<u32>,
}

/// Returns the name of the node above all roots of a kind.
fn group_name(kind: RootKind) -> String {
    match kind {
        RootKind::Stack => "[local vars]".to_owned(),
        RootKind::StaticField => "[static vars]".to_owned(),
        RootKind::ThreadStaticField => "[thread static vars]".to_owned(),
        RootKind::Finalizer => "[finalizer]".to_owned(),
        RootKind::PinnedHandle => "[pinned handles]".to_owned(),
        RootKind::CountedHandle => "[refcounted handles]".to_owned(),
        RootKind::Handle => "[handles]".to_owned(),
        kind => format!("[{}]", kind.name()),
    }
}

/// Writes a graph as a `.gcdump` file. Sizes above 2 GiB are written as 2 GiB.
///
/// Takes about 20 bytes an object of memory.
///
/// # Errors
/// If writing fails, or the graph needs more than the 2 GiB of nodes that a file can contain.
pub fn write(graph: &Graph, source: &GcDumpSource<'_>, out: &mut dyn Write) -> io::Result<()> {
    let too_large =
        || io::Error::other("the heap is too large for a gcdump file, which contains at most 2 GiB of nodes");
    let mut types: Vec<String> = graph.types.iter().map(|it| it.name.clone()).collect();
    let modules = graph.types.iter().map(|it| it.module.as_deref());
    let nodes = root_nodes(graph, &mut types);
    let first_object = small(nodes.len());

    let (mut blob, mut offsets) = (Vec::new(), Vec::new());
    let mut begin = |blob: &Vec<u8>| match i32::try_from(blob.len()) {
        Ok(offset) => {
            offsets.push(offset);
            Ok(())
        }
        Err(_) => Err(too_large()),
    };
    for (number, node) in (0..).zip(&nodes) {
        begin(&blob)?;
        compact(&mut blob, i64::from(node.type_index) << 1);
        references(&mut blob, number, node.children.iter().copied());
    }
    for object in 0..graph.object_count() {
        begin(&blob)?;
        compact(&mut blob, i64::from(graph.type_of(object)) << 1 | 1);
        compact(&mut blob, i64::from(i32::try_from(graph.size_of(object)).unwrap_or(i32::MAX)));
        let targets = graph.references_of(object).iter().map(|target| first_object.saturating_add(*target));
        references(&mut blob, first_object.saturating_add(object), targets);
    }

    let mut w = Output { out, written: 0 };
    w.bytes(super::MAGIC)?;
    w.object("GCHeapDump", 10, 8)?;
    w.object("Graphs.MemoryGraph", 1, 0)?;
    w.bytes(&graph.total_bytes().to_le_bytes())?;
    w.i32(0)?;
    w.count(types.len())?;
    for (name, module) in types.iter().zip(modules.chain(std::iter::repeat(None))) {
        w.text(name)?;
        w.i32(0)?;
        match module {
            Some(module) => w.text(module)?,
            None => w.i32(-1)?,
        }
    }
    w.count(offsets.len())?;
    offsets.iter().try_for_each(|offset| w.i32(*offset))?;
    w.count(blob.len())?;
    w.bytes(&blob)?;
    drop(blob);
    w.count(offsets.len())?;
    nodes.iter().try_for_each(|_| w.bytes(&[0; 8]))?;
    graph.addresses.iter().try_for_each(|address| w.bytes(&address.to_le_bytes()))?;
    let is_64_bit = u8::from(source.is_64_bit);
    w.bytes(&[BYTE, is_64_bit, END, is_64_bit])?;
    w.bytes(&1f32.to_le_bytes())?;
    w.bytes(&1f32.to_le_bytes())?;
    w.bytes(&[NULL, NULL])?;
    w.text("")?;
    w.bytes(&source.ticks.to_le_bytes())?;
    w.text(source.machine)?;
    w.text(source.process)?;
    w.i32(source.process_id)?;
    // Committed bytes and working set, which are unknown, and multipliers of types.
    w.bytes(&[0; 16])?;
    w.i32(0)?;
    w.bytes(&[END, END])?;
    // The table of forward references is empty; the last number is the place of its label.
    let table = w.written;
    w.i32(0)?;
    let label = w.written;
    w.count(usize::try_from(table).unwrap_or(usize::MAX))?;
    w.count(usize::try_from(label).unwrap_or(usize::MAX))
}

/// The tags of the container.
const NULL: u8 = 1;
const BEGIN: u8 = 4;
const END: u8 = 6;
const BYTE: u8 = 8;

/// Returns the nodes above the objects: the root of the graph, a node for each kind of root, and one for each root with a
/// name. Adds their types.
fn root_nodes(graph: &Graph, types: &mut Vec<String>) -> Vec<RootNode> {
    let named = graph.roots.iter().filter(|root| root.name.is_some()).count();
    let mut kinds: Vec<RootKind> = graph.roots.iter().map(|root| root.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut add_type = |name: String| {
        types.push(name);
        small(types.len() - 1)
    };
    let groups = small(kinds.len());
    let first_object = small(1 + kinds.len() + named);
    let mut nodes =
        vec![RootNode { type_index: add_type("[.NET Roots]".to_owned()), children: (1..=groups).collect() }];
    for kind in &kinds {
        nodes.push(RootNode { type_index: add_type(group_name(*kind)), children: Vec::new() });
    }
    let mut named_types: Map<(Option<u32>, bool), u32> = Map::default();
    for root in &graph.roots {
        let object = first_object.saturating_add(root.object);
        let target = match graph.root_name(root) {
            Some(name) => {
                let is_of_thread = root.kind == RootKind::ThreadStaticField;
                let type_index = *named_types.entry((root.name, is_of_thread)).or_insert_with(|| {
                    add_type(if is_of_thread {
                        format!("[thread static var {name}]")
                    } else {
                        format!("[static var {name}]")
                    })
                });
                nodes.push(RootNode { type_index, children: vec![object] });
                small(nodes.len() - 1)
            }
            None => object,
        };
        let group = kinds.binary_search(&root.kind).map_or(0, |place| place + 1);
        if let Some(group) = nodes.get_mut(group) {
            group.children.push(target);
        }
    }
    nodes
}

/// Appends the number of references, and the differences between their targets and the node.
fn references(blob: &mut Vec<u8>, number: u32, targets: impl ExactSizeIterator<Item = u32>) {
    compact(blob, i64::try_from(targets.len()).unwrap_or(i64::MAX));
    targets.for_each(|target| compact(blob, i64::from(target) - i64::from(number)));
}

/// Appends a number in groups of 7 bits, the highest first; the highest bit of the first group is the sign.
fn compact(blob: &mut Vec<u8>, value: i64) {
    let mut groups = [0u8; 10];
    let (mut rest, mut count) = (value, 0u32);
    loop {
        let [low, ..] = rest.to_le_bytes();
        set(&mut groups, count, low & 0x7f);
        count += 1;
        rest >>= 7;
        let is_negative = low & 0x40 != 0;
        if rest == 0 && !is_negative || rest == -1 && is_negative {
            break;
        }
    }
    (0..count).rev().for_each(|group| blob.push(at(&groups, group) | if group > 0 { 0x80 } else { 0 }));
}

/// Writes the values of the container.
struct Output<'a> {
    out: &'a mut dyn Write,
    written: u64,
}

impl Output<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn i32(&mut self, value: i32) -> io::Result<()> {
        self.bytes(&value.to_le_bytes())
    }

    fn count(&mut self, count: usize) -> io::Result<()> {
        // Readers take labels beyond 2 GiB as numbers without a sign.
        self.bytes(
            &u32::try_from(count).map_err(|_large| io::Error::other("the file is too large"))?.to_le_bytes(),
        )
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.count(text.encode_utf16().count())?;
        for unit in text.encode_utf16() {
            let [low, high] = unit.to_le_bytes();
            match unit {
                0..0x80 => self.bytes(&[low])?,
                0x80..0x800 => self.bytes(&[0xc0 | high << 2 | low >> 6, 0x80 | low & 0x3f])?,
                _ => {
                    self.bytes(&[0xe0 | high >> 4, 0x80 | (high & 0xf) << 2 | low >> 6, 0x80 | low & 0x3f])?;
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, name: &str, version: i32, oldest_reader: i32) -> io::Result<()> {
        self.bytes(&[BEGIN, BEGIN, NULL])?;
        self.i32(version)?;
        self.i32(oldest_reader)?;
        self.text(name)?;
        self.bytes(&[END])
    }
}
