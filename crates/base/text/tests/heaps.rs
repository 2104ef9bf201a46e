//! How a report on a heap looks as text, and as a document.

use std::path::Path;

use runtap_convert::source::{Heap, HeapFormat};
use runtap_heap::hprof::{RepeatedText, RepeatedTexts};
use runtap_heap::{ClassHistogram, Graph, GraphBuilder, Incomplete, RootKind, TypeOrder};
use runtap_text::document::{HeapDiffDocument, HeapDocument, HeapFileDocument, HeapSource};
use runtap_text::{Print, TextOptions, json};

fn heap() -> Heap {
    let mut builder = GraphBuilder::default();
    let cache = builder.add_type("app.Cache", Some("app".into()));
    let bytes = builder.add_type("byte[]\u{1b}[2J", None);
    let nameless = builder.type_of(7);
    builder.object(0x1000, cache, 24);
    builder.reference(0x2000);
    builder.object(0x2000, bytes, 5_000_000);
    builder.object(0x3000, bytes, 16);
    builder.object(0x4000, nameless, 8);
    builder.dependent(0x1000, 0x4000);
    builder.root(0x1000, RootKind::StaticField, Some("app.Cache.All".to_owned()));
    builder.root(0x1000, RootKind::Stack, None);
    let text = |text: &str, is_truncated| RepeatedText {
        text: text.to_owned(),
        is_truncated,
        copies: 3,
        wasted_bytes: 96,
    };
    let texts = RepeatedTexts {
        arrays: 12,
        wasted_bytes: 192,
        texts: vec![text("hello\n", false), text("a long", true)],
    };
    Heap { format: HeapFormat::Hprof, graph: builder.finish(), texts: Some(texts), lost: 0, partial: None }
}

fn document(heap: Heap, order: TypeOrder, path: Option<&str>) -> HeapDocument {
    HeapDocument::new(HeapSource::File(Path::new("a.hprof")), heap, order, path)
}

fn text(document: &HeapDocument, rows: usize) -> String {
    let mut text = Vec::new();
    document.print(&mut text, &TextOptions { rows: Some(rows), ..TextOptions::default() }).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn types_and_repeated_texts() {
    insta::assert_snapshot!(text(&document(heap(), TypeOrder::Bytes, None), 9), @r"
    4 objects, 5.0 MB; no root reaches 1 of them (16 B)
    Roots: 1 stack, 1 static
    Also: 1 object of unknown type

    COUNT    SIZE  RETAINED  TYPE
        2  5.0 MB    5.0 MB  byte[]\u{1b}[2J
        1    24 B    5.0 MB  app!app.Cache
        1     8 B       8 B  (unknown)

    2 texts of strings in more than one array (192 B could be saved)

    WASTED  COPIES  TEXT
      96 B       3  hello\n
      96 B       3  a long…
    ");
    let by_retained = text(&document(heap(), TypeOrder::Retained, None), 1);
    assert!(by_retained.contains("app!app.Cache\n… and 2 more types\n"), "{by_retained}");
}

#[test]
fn paths_from_a_root() {
    insta::assert_snapshot!(text(&document(heap(), TypeOrder::Bytes, Some("0x4000")), 9), @r"
    A shortest path from a root to 0x4000:

    ADDRESS  SIZE  RETAINED  OBJECT
                             root: static app.Cache.All
    0x1000   24 B    5.0 MB  app!app.Cache
    0x4000    8 B       8 B  (unknown) (dependent handle)
    ");
    for (target, answer) in [
        ("0x3000", "No root reaches 0x3000 (1 object).\n"),
        ("0x1", "The heap has no object at 0x1.\n"),
        ("app.Caches", "The heap has no object of type app.Caches; the nearest name is app.Cache.\n"),
        ("x\u{1b}", "The heap has no object of type x\\u{1b}.\n"),
    ] {
        assert_eq!(text(&document(heap(), TypeOrder::Bytes, Some(target)), 9), answer);
    }
}

#[test]
fn documents() {
    let mut document = document(heap(), TypeOrder::Count, Some("app.Cache"));
    document.limit(1);
    let mut json = Vec::new();
    json::write_document(&mut json, &document).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let path = serde_json::json!({
        "to": "app.Cache",
        "matching_objects": 1,
        "root": {"kind": "static", "name": "app.Cache.All"},
        "objects": [{
            "address": "0x1000", "type": "app.Cache", "module": "app", "class": null, "bytes": 24, "retained_bytes": 5_000_032,
            "dependent": false,
        }],
    });
    let text = serde_json::json!({"text": "hello\n", "truncated": false, "copies": 3, "wasted_bytes": 96});
    let expected = serde_json::json!({
        "schema": "runtap.heap/1", "file": "a.hprof", "pid": null, "format": "hprof", "kind": "jvm", "objects": 4,
        "bytes": 5_000_048, "complete": true, "incomplete_reason": null, "references": 2, "reachable_objects": 3,
        "reachable_bytes": 5_000_032, "weak_references": 0, "dependent_handles": 1,
        "dangling_references": 0, "repeated_addresses": 0, "unnamed_objects": 1,
        "roots": [{"kind": "stack", "count": 1}, {"kind": "static", "count": 1}],
        "types_count": 3,
        "types": [{
            "type": "byte[]\u{1b}[2J", "module": null, "count": 2, "bytes": 5_000_016, "retained_bytes": 5_000_000,
        }],
        "repeated_texts": {"arrays": 12, "wasted_bytes": 192, "texts_count": 2, "texts": [text]},
        "path": path, "lost": 0, "partial": null,
    });
    assert_eq!(json, expected);
    assert_eq!(document.missing(), None);
}

#[test]
fn a_heap_that_was_not_recorded_is_no_empty_heap() {
    let none = || Heap { graph: Graph::missing(Incomplete::NoHeap), texts: None, ..heap() };
    let document = document(none(), TypeOrder::Bytes, None);
    assert_eq!(document.missing(), None);
    assert!(text(&document, 9).starts_with("No objects of a heap in this recording: either"));
    let partial = Heap { graph: Graph::missing(Incomplete::NoEnd), ..none() };
    let partial = self::document(partial, TypeOrder::Bytes, None);
    assert_eq!(partial.missing(), Some("the recording ends before the heap was described completely"));
    assert!(text(&partial, 9).starts_with("0 objects, 0 B"));
}

#[test]
fn dropped_events_make_a_heap_incomplete() {
    let reason = "the target dropped 2 events; objects or references may be missing";
    for graph in [heap().graph, Graph::missing(Incomplete::NoHeap)] {
        let lost = Heap { graph, lost: 2, ..heap() };
        let diff = HeapDiffDocument::new([(Path::new("a"), &lost), (Path::new("b"), &heap())]);
        assert_eq!(diff.missing(), [format!("a is partial: {reason}")]);
        let document = document(lost, TypeOrder::Bytes, None);
        assert_eq!(document.missing(), Some(reason));
        assert_eq!(serde_json::to_value(&document).unwrap()["complete"], false);
    }
}

#[test]
fn growth_between_two_heaps() {
    let before = heap();
    let mut builder = GraphBuilder::default();
    let cache = builder.add_type("app.Cache", Some("app".into()));
    for n in 0..3 {
        builder.object(0x1000 + 0x20 * n, cache, 24);
    }
    let after = Heap { graph: builder.finish(), ..heap() };
    let (one, two) = (Path::new("old.hprof"), Path::new("new\u{1b}.hprof"));
    let diff = HeapDiffDocument::new([(one, &before), (two, &after)]);
    let mut text = Vec::new();
    diff.print(&mut text, &TextOptions { rows: Some(2), ..TextOptions::default() }).unwrap();
    insta::assert_snapshot!(String::from_utf8(text).unwrap(), @r"
    before: 4 objects, 5.0 MB (old.hprof)
    after: 3 objects, 72 B (new\u{1b}.hprof)

    GROWTH  OBJECTS  SIZE AFTER  RETAINED AFTER  TYPE
     +48 B       +2        72 B             0 B  app!app.Cache
      -8 B       -1         0 B             0 B  (unknown)
    … and 1 more type
    ");
    assert!(diff.missing().is_empty());
    let damaged = Heap { graph: Graph::missing(Incomplete::NoEnd), ..heap() };
    let diff = HeapDiffDocument::new([(one, &damaged), (one, &damaged)]);
    assert_eq!(diff.missing().len(), 2);
    let mut text = Vec::new();
    diff.print(&mut text, &TextOptions::default()).unwrap();
    assert!(text.ends_with(b"each type are equal.\n"));
}

#[test]
fn sums_by_class_state_that_references_are_unknown() {
    let text_of_jvm = b" num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:             2             96  [B (java.base@17.0.15)
   2:             3             48  shop.Order
Total             5            144
";
    let histogram = ClassHistogram::parse(text_of_jvm).unwrap();
    let document = HeapDocument::of_classes(HeapSource::Process(7), histogram, TypeOrder::Count);
    insta::assert_snapshot!(text(&document, 9), @r"
    5 objects, 144 B
    Roots: unknown

    COUNT  SIZE  RETAINED  TYPE
        3  48 B         ?  shop.Order
        2  96 B         ?  java.base!byte[]
    ");
    let json = serde_json::to_value(&document).unwrap();
    assert_eq!((&json["file"], &json["pid"]), (&serde_json::Value::Null, &7.into()));
    for unknown in ["references", "reachable_objects", "dangling_references", "repeated_texts"] {
        assert_eq!(json[unknown], serde_json::Value::Null, "{unknown}");
    }
    assert_eq!(document.missing(), None);
    let truncated = ClassHistogram::parse(&text_of_jvm[..200]).unwrap();
    let document = HeapDocument::of_classes(HeapSource::Process(0), truncated, TypeOrder::Bytes);
    assert_eq!(document.missing(), Some("the reply ends before the line with the totals"));
}

#[test]
fn a_written_file() {
    let mut document =
        HeapFileDocument::new("dotnet", 7, "app".to_owned(), std::time::Duration::from_millis(1234));
    document.set_file(Some(Path::new("a\u{1b}.gcdump")), "gcdump", 5_000_000);
    let text = |document: &HeapFileDocument| {
        let mut text = Vec::new();
        document.print(&mut text, &TextOptions::default()).unwrap();
        String::from_utf8(text).unwrap()
    };
    assert_eq!(text(&document), "a\\u{1b}.gcdump  5.0 MB as gcdump  in 1.2 s\n");
    document.set_heap(&Heap { lost: 2, ..heap() });
    assert_eq!(text(&document), "a\\u{1b}.gcdump  5.0 MB as gcdump  4 objects of 5.0 MB  in 1.2 s\n");
    let expected = serde_json::json!({
        "schema": "runtap.heap.file/1", "pid": 7, "name": "app", "kind": "dotnet", "path": "a\u{1b}.gcdump",
        "format": "gcdump", "bytes": 5_000_000, "objects": 4, "heap_bytes": 5_000_048, "complete": false,
        "incomplete_reason": "the target dropped 2 events; objects or references may be missing",
        "duration_ns": 1_234_000_000,
    });
    assert_eq!(serde_json::to_value(&document).unwrap(), expected);
}
