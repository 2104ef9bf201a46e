//! Events with any payloads, threads, times and stacks (8 bytes of each; the rest is payload) as input of one of the
//! reports and profiles, selected by the first byte: no panic.
#![no_main]

use runtap_clr::report::{Collect, Counters, Exceptions, Gc, Http, Jit, Locks, Logs, Loss, ThreadPool};
use runtap_clr::{DotnetTraceBuilder, HeapEvents, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::{EventToWrite, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer};

const KINDS: [(&str, &str, &[u32]); 7] = [
    (
        "Microsoft-Windows-DotNETRuntime",
        "",
        &[
            1, 2, 3, 4, 9, 10, 13, 15, 20, 32, 35, 50, 51, 54, 55, 57, 59, 61, 62, 63, 64, 65, 80, 81, 91,
            141, 142, 143, 144, 145, 151, 152, 303,
        ],
    ),
    ("Microsoft-Windows-DotNETRuntimeRundown", "", &[141, 142, 143, 144, 151, 152, 153, 154]),
    ("Microsoft-DotNETCore-SampleProfiler", "", &[0]),
    ("Microsoft-DotNETCore-EventPipe", "", &[1]),
    ("System.Threading.Tasks.TplEventSource", "", &[7, 8, 9, 10, 11, 12, 14, 15, 17]),
    ("Universal.Events", "cpu", &[1]),
    // The events of a heap.
    ("Microsoft-Windows-DotNETRuntime", "", &[15, 16, 17, 18, 19, 36, 37, 38]),
];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((choice, input)) = input.split_first() else { return };
    let mut writer = Writer::new(&TraceHeader::new(0, 0, 3_124_099));
    let kinds: Vec<_> = KINDS
        .iter()
        .flat_map(|(provider, name, events)| events.iter().map(move |event| (*provider, *name, *event)))
        .collect();
    // Only the ones that occur: a definition costs more than an event.
    let mut ids = vec![None; kinds.len()];
    let mut timestamp = 0u64;
    for chunk in input.chunks(72).take(4_000) {
        let Some(([kind, thread, step, shift, a, b, c, d], payload)) = chunk.split_first_chunk() else {
            break;
        };
        timestamp = timestamp.saturating_add(u64::from(*step) << (shift % 60));
        let stack = [*a, *b, *c, *d].map(|byte| u64::from(byte) << (byte % 50));
        let kind = usize::from(*kind) % kinds.len();
        let metadata_id = *ids[kind].get_or_insert_with(|| {
            let (provider, name, event) = kinds[kind];
            writer.define_event(&Metadata::new(provider, event, name)).expect("a sound definition")
        });
        let event = EventToWrite {
            metadata_id,
            thread_id: u64::from(thread % 4),
            capture_thread_id: 1,
            timestamp,
            stack: &stack[..usize::from(*d % 5)],
            payload,
            ..Default::default()
        };
        let _ = writer.event(&event);
    }
    look(&writer.finish(), *choice);
});

fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    while let Ok(Some(item)) = reader.next() {
        visit(&item);
    }
}

fn look(bytes: &[u8], choice: u8) {
    macro_rules! report {
        ($kind:ident) => {{
            let mut collector = $kind::default();
            read(bytes, |item| collector.item(item));
            let _ = collector.finish();
        }};
    }
    match choice % 20 {
        0 => report!(Gc),
        1 => report!(Exceptions),
        2 => report!(Locks),
        3 => report!(Jit),
        4 => report!(ThreadPool),
        5 => report!(Http),
        6 => report!(Counters),
        7 => report!(Logs),
        8 => {
            let mut loss = Loss::default();
            read(bytes, |item| loss.item(item));
            assert_eq!(loss.report(0).lost_count, 0);
        }
        9 => {
            let mut builder = DotnetTraceBuilder::new();
            read(bytes, |item| builder.item(item));
            builder.cut_off();
            let _ = builder.finish(&ProfileOptions::default());
        }
        19 => {
            let mut events = HeapEvents::new();
            read(bytes, |item| events.item(item));
            if let Some(graph) = events.finish() {
                assert!(graph.object_count() as usize <= bytes.len());
            }
        }
        n => {
            let mut builder = ProfileBuilder::of(View::ALL[usize::from(n - 10)]);
            read(bytes, |item| builder.item(item));
            let _ = builder.finish(&ProfileOptions::default());
        }
    }
}
