//! Recordings of whole machines: samples of running and waiting threads, named by the mappings of each process.

use runtap_clr::{ProfileBuilder, ProfileOptions};
use runtap_model::{SampleKind, Trace, View};
use runtap_nettrace::{
    EventToWrite, Field, FieldType, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer,
};
use runtap_testkit::{require, shared_data};

fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        visit(&item);
    }
}

fn profile(bytes: &[u8]) -> Trace {
    let mut builder = ProfileBuilder::new();
    read(bytes, |item| builder.item(item));
    assert_eq!(builder.malformed(), 0);
    builder.finish(&ProfileOptions::default())
}

#[test]
fn a_machine_is_shown_by_process_and_thread() {
    let bytes = require!(shared_data("nettrace/record-trace-v6-5k.nettrace.zst"));
    let trace = profile(&bytes);
    assert_eq!((trace.ticks(View::Cpu), trace.ticks(View::ThreadTime)), (4_000, 5_000));
    assert_eq!(trace.process().label(), "proc0 (1000) and 2 other processes");
    let labels: Vec<String> = trace.threads().map(|(_, thread)| thread.label()).collect();
    assert_eq!(labels.len(), 30);
    for process in ["proc0 (1000) ", "proc1 (1001) ", "proc2 (1002) "] {
        assert!(labels.iter().any(|label| label.starts_with(process)), "{process} in {labels:?}");
    }
    let mut waited = 0;
    let mut decoder = runtap_clr::payload::Decoder::new();
    read(&bytes, |item| match item {
        StreamItem::Event(event) if event.metadata.is_some_and(|it| it.name == "cswitch") => {
            waited += decoder.payload(event).u64("Value").unwrap();
        }
        StreamItem::Event(_) => {}
        item => decoder.item(item),
    });
    let samples = trace.threads().flat_map(|(_, thread)| thread.samples(View::ThreadTime));
    let ours: u64 = samples.filter(|it| it.kind == SampleKind::EXTERNAL).map(|it| it.weight).sum();
    assert_eq!(ours, waited, "its clock ticks in nanoseconds");
    let modules = trace.all_frames().filter_map(|(_, frame)| frame.module);
    assert_eq!(
        modules.collect::<std::collections::BTreeSet<_>>().len(),
        3,
        "each process maps a file of its own"
    );
}

/// A stream of one process with mappings and symbols.
struct Stream {
    writer: Writer,
    cpu: u32,
    symbol: u32,
    mapping: u32,
}

impl Stream {
    fn new() -> Self {
        let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000));
        let mut define = |provider: &str, id, name: &str, fields: &[(&str, FieldType)]| {
            let mut metadata = Metadata::new(provider, id, name);
            metadata.fields =
                fields.iter().map(|(name, field_type)| Field::new(*name, field_type.clone())).collect();
            writer.define_event(&metadata).unwrap()
        };
        let (number, text) = (FieldType::U64, FieldType::String);
        let range = |last: &'static str| {
            [("StartAddress", number.clone()), ("EndAddress", number.clone()), (last, text.clone())]
        };
        // Ids are chosen by the writer; these differ from those of one-collect.
        let cpu = define("Universal.Events", 21, "cpu", &[("Value", number.clone())]);
        let symbol = define("Universal.System", 22, "ProcessSymbol", &range("Name"));
        let mapping = define("Universal.System", 23, "ProcessMapping", &range("FileName"));
        Self { writer, cpu, symbol, mapping }
    }

    fn event(&mut self, metadata_id: u32, ms: u64, stack: &[u64], payload: &[u8]) {
        let timestamp = ms * 1_000_000;
        let event = EventToWrite {
            metadata_id,
            thread_id: 5,
            capture_thread_id: 1,
            timestamp,
            stack,
            payload,
            ..Default::default()
        };
        self.writer.event(&event).unwrap();
    }

    fn range(&mut self, metadata_id: u32, start: u64, last: u64, text: &str) {
        let mut w = runtap_wire::Writer::new();
        w.u64(start).u64(last).utf16z(text);
        self.event(metadata_id, 0, &[], w.as_bytes());
    }

    fn sample(&mut self, ms: u64, stack: &[u64]) {
        self.event(self.cpu, ms, stack, &1u64.to_le_bytes());
    }
}

#[test]
fn addresses_are_named_by_symbols_and_mappings() {
    let mut stream = Stream::new();
    let (symbol, mapping) = (stream.symbol, stream.mapping);
    stream.range(mapping, 0x1000, 0x1fff, "/usr/lib/libc.so.6");
    stream.range(mapping, 0x3000, 0x3fff, "/srv/app.dll");
    stream.range(symbol, 0x1100, 0x110f, "malloc");
    stream.range(symbol, 0x1110, 0x111f, "free");
    stream.range(symbol, 0, 0, "a kernel function whose address is hidden");
    // The last address of a symbol belongs to it; that of a caller is the one after the call.
    for (ms, stack) in [(1, [0x110f, 0x1110]), (2, [0x1110, 0x3008]), (3, [0x1500, 0x5000])] {
        stream.sample(ms, &stack);
    }
    let trace = profile(&stream.writer.finish());
    let (_, thread) = trace.threads().next().unwrap();
    let stacks: Vec<(Vec<String>, u64)> = thread
        .samples(View::Cpu)
        .map(|sample| {
            let frames = trace.stacks().frames(sample.stack.unwrap());
            (frames.map(|frame| trace.frame(frame).to_string()).collect(), sample.weight)
        })
        .collect();
    let text = |frames: [&str; 2]| frames.map(str::to_owned).to_vec();
    assert_eq!(
        stacks,
        [
            (text(["libc.so.6!malloc", "libc.so.6!malloc"]), 1_000_000),
            (text(["libc.so.6!free", "app!0x3008"]), 1_000_000),
            (text(["libc.so.6!0x1500", "?!0x5000"]), 1_000_000),
        ]
    );
}
