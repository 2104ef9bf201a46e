//! Heap dumps made by hand: every kind of record, both sizes of ids, pieces of any size, and damage.

use proptest::prelude::*;
use runtap_heap::hprof::{HeapDump, HprofReader};
use runtap_heap::{Dominators, Incomplete, RootKind, root_counts, type_rows};

const STRING: u64 = 0x10;
const CLASS: u64 = 0x20;
const WEAK: u64 = 0x30;
const REFERENCE: u64 = 0x40;
const NODE: u64 = 0x50;
const NODES: u64 = 0x60;
const OBJECT: u64 = 0x70;

/// Writes a dump.
struct Writer {
    id_bytes: usize,
    out: Vec<u8>,
    /// The part of the heap that is being written.
    heap: Vec<u8>,
}

impl Writer {
    fn new(version: &str, id_bytes: usize) -> Self {
        let mut out = format!("JAVA PROFILE {version}\0").into_bytes();
        out.extend(u32::try_from(id_bytes).unwrap().to_be_bytes());
        out.extend([0; 8]);
        Self { id_bytes, out, heap: Vec::new() }
    }

    fn id(&self, id: u64) -> Vec<u8> {
        id.to_be_bytes()[8 - self.id_bytes..].to_vec()
    }

    fn record(&mut self, tag: u8, parts: &[&[u8]]) {
        let body = parts.concat();
        self.out.extend([tag, 0, 0, 0, 0]);
        self.out.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        self.out.extend(body);
    }

    fn class_name(&mut self, class: u64, name: &str) {
        self.name(class + 1, name);
        let (class, name) = (self.id(class), self.id(class + 1));
        self.record(2, &[&[0; 4], &class, &[0; 4], &name]);
    }

    fn name(&mut self, id: u64, name: &str) {
        let id = self.id(id);
        self.record(1, &[&id, name.as_bytes()]);
    }

    fn part(&mut self, parts: &[&[u8]]) {
        self.heap.extend(parts.concat());
    }

    /// Describes a class; a static field has a reference or a byte.
    fn class(&mut self, class: u64, superclass: u64, statics: &[Option<u64>], fields: &[(u64, u8)]) {
        let mut body = [self.id(class), vec![0; 4], self.id(superclass)].concat();
        body.extend(vec![0; 5 * self.id_bytes + 4]);
        // A constant.
        body.extend([0, 1, 0, 9, 10, 1, 2, 3, 4]);
        body.extend(u16::try_from(statics.len()).unwrap().to_be_bytes());
        for value in statics {
            body.extend(self.id(1));
            match value {
                Some(target) => body.extend([vec![2], self.id(*target)].concat()),
                None => body.extend([8, 77]),
            }
        }
        body.extend(u16::try_from(fields.len()).unwrap().to_be_bytes());
        for (name, basic_type) in fields {
            body.extend([self.id(*name), vec![*basic_type]].concat());
        }
        self.part(&[&[0x20], &body]);
    }

    fn instance(&mut self, address: u64, class: u64, data: &[u8]) {
        let size = u32::try_from(data.len()).unwrap().to_be_bytes();
        self.part(&[&[0x21], &self.id(address), &[0; 4], &self.id(class), &size, data]);
    }

    fn array(&mut self, address: u64, class: u64, elements: &[u64]) {
        let count = u32::try_from(elements.len()).unwrap().to_be_bytes();
        let elements: Vec<u8> = elements.iter().flat_map(|it| self.id(*it)).collect();
        self.part(&[&[0x22], &self.id(address), &[0; 4], &count, &self.id(class), &elements]);
    }

    fn values(&mut self, address: u64, basic_type: u8, count: u32, bytes: &[u8]) {
        self.part(&[&[0x23], &self.id(address), &[0; 4], &count.to_be_bytes(), &[basic_type], bytes]);
    }

    fn end_part(&mut self, tag: u8) {
        let heap = std::mem::take(&mut self.heap);
        self.record(tag, &[&heap]);
    }
}

/// A heap with every kind of record.
fn dump(version: &str, id_bytes: usize) -> Vec<u8> {
    let mut w = Writer::new(version, id_bytes);
    for (class, name) in [
        (STRING, "java/lang/String"),
        (CLASS, "java/lang/Class"),
        (WEAK, "java/lang/ref/WeakReference"),
        (REFERENCE, "java/lang/ref/Reference"),
        (NODE, "app/Outer$Node"),
        (NODES, "[Lapp/Outer$Node;"),
        (OBJECT, "java/lang/Object"),
    ] {
        w.class_name(class, name);
    }
    for (id, name) in [(0x900, "value"), (0x901, "coder"), (0x902, "referent"), (0x903, "next")] {
        w.name(id, name);
    }
    // A stack of one frame, and a damaged frame.
    let (frame, method, none) = (w.id(0x700), w.id(0x900), w.id(0));
    w.record(4, &[&frame, &method, &none, &none, &[0; 8]]);
    w.record(4, &[&[1; 15]]);
    w.record(5, &[&[0; 11], &[1], &frame]);
    // This instance is described before its class.
    let next = w.id(0x2020);
    w.instance(0x2000, NODE, &[&next[..], &[0; 4]].concat());
    w.class(OBJECT, 0, &[], &[]);
    w.class(STRING, OBJECT, &[Some(0x4000), None], &[(0x901, 8), (0x900, 2)]);
    w.class(CLASS, OBJECT, &[], &[]);
    w.class(REFERENCE, OBJECT, &[], &[(0x902, 2), (0x903, 2)]);
    w.class(WEAK, REFERENCE, &[], &[]);
    w.class(NODE, OBJECT, &[], &[(0x903, 2), (0x904, 10)]);
    w.end_part(0x1c);
    let null = w.id(0);
    w.instance(0x2020, NODE, &[&null[..], &[0; 4]].concat());
    w.array(0x2040, NODES, &[0x2000, 0, 0x2020, 0x77]);
    let [one, two] = [w.id(0x3000), w.id(0x3020)];
    w.instance(0x4000, STRING, &[&[0], &one[..]].concat());
    w.instance(0x4020, STRING, &[&[0], &two[..]].concat());
    w.values(0x3000, 8, 5, b"hello");
    w.values(0x3020, 8, 5, b"hello");
    w.values(0x3040, 11, 3, &[1; 24]);
    let target = w.id(0x4020);
    w.instance(0x5000, WEAK, &[&target[..], &null].concat());
    for (tag, more) in [(1, id_bytes), (2, 8), (3, 8), (4, 4), (5, 0), (6, 4), (7, 0), (8, 8), (0xff, 0)] {
        let object = if tag == 5 { STRING } else { 0x2040 };
        w.part(&[&[tag], &w.id(object), &vec![0; more]]);
    }
    w.part(&[&[3], &w.id(0x5000), &[0; 8]]);
    // Android.
    w.part(&[&[0xfe, 0, 0, 0, 1], &w.id(1), &[0x89], &w.id(0x4000), &[0x8e], &w.id(0x4000), &[0; 8]]);
    w.part(&[&[0x90], &w.id(0x4020), &[0xc3], &w.id(0x6000), &[0; 4], &7u32.to_be_bytes(), &[10]]);
    w.end_part(0x1c);
    w.record(0x2c, &[]);
    w.out
}

fn read(bytes: &[u8], piece: usize) -> HeapDump {
    let mut reader = HprofReader::new();
    bytes.chunks(piece).for_each(|piece| reader.feed(piece).unwrap());
    reader.finish()
}

/// Returns everything that a dump contains, for comparisons.
fn summary(HeapDump { graph, texts }: &HeapDump) -> impl PartialEq + std::fmt::Debug + use<> {
    let rows: Vec<_> = type_rows(graph, &Dominators::new(graph))
        .iter()
        .map(|row| {
            let name = graph.types()[row.type_id as usize].name.clone();
            (name, row.count, row.bytes, row.retained_bytes)
        })
        .collect();
    let numbers = [graph.weak_references(), graph.dangling_references()];
    (rows, root_counts(graph), numbers, texts.clone(), graph.incomplete().cloned())
}

#[test]
fn every_record_is_read() {
    for (version, id_bytes) in [("1.0.1", 8), ("1.0.2", 8), ("1.0.2", 4)] {
        let dump = read(&dump(version, id_bytes), usize::MAX);
        let (graph, texts) = (&dump.graph, &dump.texts);
        assert_eq!(graph.incomplete(), None, "{version} {id_bytes}");
        let rows: Vec<(String, u64)> = type_rows(graph, &Dominators::new(graph))
            .iter()
            .map(|row| (graph.types()[row.type_id as usize].name.clone(), row.count))
            .collect();
        for (name, count) in [
            ("app.Outer$Node", 2),
            ("app.Outer$Node[]", 1),
            ("java.lang.String", 2),
            ("java.lang.Class", 6),
            ("byte[]", 2),
            ("long[]", 1),
            ("int[]", 1),
            ("java.lang.ref.WeakReference", 1),
        ] {
            assert!(rows.contains(&(name.to_owned(), count)), "{name}: {rows:?}");
        }
        let object = |address| graph.object_at(address).unwrap();
        let targets = |address| {
            let targets = graph.references_of(object(address)).iter();
            targets.map(|it| graph.address_of(*it)).collect::<Vec<u64>>()
        };
        assert_eq!(targets(0x2000), [0x2020, NODE], "an object keeps its class alive");
        assert_eq!(targets(0x2040), [0x2000, 0x2020]);
        assert_eq!(targets(STRING), [OBJECT, 0x4000]);
        assert_eq!(targets(0x5000), [WEAK], "a weak reference keeps nothing alive");
        // The class of arrays is not described.
        assert_eq!((graph.weak_references(), graph.dangling_references()), (1, 2));
        assert_eq!((texts.arrays, texts.texts.len(), texts.texts[0].copies), (2, 1, 2));
        assert_eq!(texts.texts[0].text, "hello");
        assert_eq!(graph.represented_class(object(NODE)), Some("app.Outer$Node"));
        assert_eq!(graph.represented_class(object(0x2000)), None);
        let of_frame =
            graph.roots().iter().filter(|it| graph.root_name(it) == Some("java.lang.Object.value"));
        assert_eq!(of_frame.count(), 3, "two variables and a local reference");
        let counts = root_counts(graph);
        assert_eq!(counts.iter().find(|it| it.kind == RootKind::Stack).map(|it| it.count), Some(2));
        assert_eq!(counts.iter().find(|it| it.kind == RootKind::SystemClass).map(|it| it.count), Some(1));
        assert_eq!(counts.len(), 10, "{counts:?}");
    }
}

#[test]
fn sizes_follow_from_the_distances_of_objects() {
    for (array_header, reference, header) in [(16, 4, 12), (24, 8, 16), (16, 8, 12), (12, 4, 8)] {
        let mut w = Writer::new("1.0.2", 8);
        w.class(OBJECT, 0, &[], &[]);
        w.class(NODE, OBJECT, &[], &[(0x903, 2), (0x904, 10), (0x905, 8)]);
        let mut address = 0x1000u64;
        let aligned = |bytes: u64| bytes.next_multiple_of(8);
        let instance = aligned(header + reference + 5) + 8;
        for length in 0..40u32 {
            w.values(address, 8, length, &vec![0; length as usize]);
            address += aligned(array_header + u64::from(length));
            w.array(address, NODES, &vec![0; length as usize]);
            address += aligned(array_header + reference * u64::from(length));
            // The JVM leaves a gap of 8 bytes between the fields.
            w.instance(address, NODE, &[0; 13]);
            address += instance;
        }
        w.instance(address, OBJECT, &[]);
        w.end_part(0x0c);
        let graph = read(&w.out, usize::MAX).graph;
        let mut rows = type_rows(&graph, &Dominators::new(&graph));
        rows.retain(|row| row.count == 40);
        let of = |element: u64| (0..40).map(|length| aligned(array_header + element * length)).sum::<u64>();
        let bytes: Vec<u64> = rows.iter().map(|row| row.bytes).collect();
        for expected in [of(1), of(reference), 40 * instance] {
            assert!(bytes.contains(&expected), "{bytes:?} lacks {expected} ({array_header}, {reference})");
        }
        assert_eq!(graph.incomplete(), None);
    }
}

#[test]
fn a_truncated_dump_gives_the_part_that_it_has() {
    let bytes = dump("1.0.2", 8);
    let whole = read(&bytes, usize::MAX).graph.object_count();
    let mut last = 0;
    for end in 32..bytes.len() {
        let graph = read(&bytes[..end], 64).graph;
        assert_eq!(graph.incomplete(), Some(&Incomplete::Truncated { offset: end as u64 }), "{end}");
        assert!(graph.object_count() >= last && graph.object_count() <= whole);
        last = graph.object_count();
    }
    assert_eq!(last, whole);
}

#[test]
fn damage_is_located_and_other_files_are_rejected() {
    let mut w = Writer::new("1.0.2", 8);
    w.values(0x10, 8, 2, b"ok");
    w.part(&[&[0x55]]);
    w.end_part(0x0c);
    let graph = read(&w.out, 7).graph;
    assert_eq!(graph.object_count(), 1);
    let at = w.out.len() - 1;
    assert_eq!(
        graph.incomplete().unwrap().to_string(),
        format!("damaged: tag in a heap at offset {at}: is 0x55, expected a tag of hprof 1.0.2")
    );
    for array in [true, false] {
        let mut w = Writer::new("1.0.2", 8);
        if array {
            w.part(&[&[0x22], &[1; 12], &9u32.to_be_bytes(), &[2; 11]]);
        } else {
            w.part(&[&[0x21], &[1; 20], &9u32.to_be_bytes(), &[2; 8]]);
        }
        w.end_part(0x1c);
        w.record(0x2c, &[]);
        let incomplete = read(&w.out, 5).graph.incomplete().unwrap().to_string();
        assert!(incomplete.contains("extends beyond its record"), "{incomplete}");
    }
    for other in [&b"JAVA PROFILE 1.0.2"[..], b"Nettrace", b"JAVA PROFILE 1.0.2\0\0\0\0\x05"] {
        let mut reader = HprofReader::new();
        let result = reader.feed(&[other, &[b'x'; 40]].concat());
        assert!(result.is_err(), "{}", String::from_utf8_lossy(other));
    }
}

#[test]
fn instances_that_are_too_short_are_damaged() {
    for is_early in [false, true] {
        let mut w = Writer::new("1.0.2", 8);
        if !is_early {
            w.class(NODE, 0, &[], &[(0x903, 2); 3]);
        }
        w.instance(0x1000, NODE, &0x2000u64.to_be_bytes());
        w.instance(0x2000, NODE, &[0; 24]);
        if is_early {
            w.class(NODE, 0, &[], &[(0x903, 2); 3]);
        }
        w.end_part(0x0c);
        let graph = read(&w.out, 100).graph;
        assert_eq!(graph.reference_count() + graph.roots().len(), 3, "{is_early}");
        let incomplete = graph.incomplete().unwrap().to_string();
        assert!(incomplete.contains("fields of an instance"), "{incomplete}");
        assert!(incomplete.ends_with("are fewer than those of its class"), "{incomplete}");
    }
}

#[test]
fn classes_that_share_a_name_store_it_once() {
    let mut w = Writer::new("1.0.2", 8);
    w.name(1, &"x".repeat(60_000));
    for class in (0x1000..0x4000).step_by(0x10) {
        w.record(2, &[&[0; 4], &u64::to_be_bytes(class), &[0; 4], &1u64.to_be_bytes()]);
        if class < 0x2000 {
            w.class(class, 0, &[], &[]);
            w.instance(class + 8, class, &[]);
        }
    }
    w.end_part(0x0c);
    let graph = read(&w.out, usize::MAX).graph;
    assert_eq!(graph.incomplete(), None);
    assert_eq!(graph.types().iter().map(|it| it.name.len()).sum::<usize>(), 4096 + "java.lang.Class".len());
    let rows = type_rows(&graph, &Dominators::new(&graph));
    assert_eq!(rows.iter().map(|row| row.count).collect::<Vec<_>>(), [256, 256]);
}

proptest! {
    #[test]
    fn pieces_do_not_matter(piece in 1usize..100, four: bool) {
        let bytes = dump("1.0.2", if four { 4 } else { 8 });
        prop_assert_eq!(summary(&read(&bytes, piece)), summary(&read(&bytes, usize::MAX)));
    }

    #[test]
    fn damage_does_not_panic(changes in proptest::collection::vec((31usize..1000, any::<u8>()), 1..6)) {
        let mut bytes = dump("1.0.2", 8);
        for (place, value) in changes {
            let place = place % bytes.len();
            if place >= 31 {
                bytes[place] = value;
            }
        }
        let dump = read(&bytes, 333);
        prop_assert!(Dominators::new(&dump.graph).reachable_bytes() <= dump.graph.total_bytes());
    }
}
