//! Any bytes as the events of a Bytefrog agent (first byte: version and limits; second: chunk size): no panic, chunk
//! sizes do not matter, every frame was opened by an entry, and the limits hold.
#![no_main]

use runtap_bytefrog::{CallTree, Limits, Model, Report};
use runtap_bytefrog_proto::{Decoder, Dialect, Stream};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some(([settings, chunk], bytes)) = input.split_first_chunk() else { return };
    let Some(dialect) = Dialect::ALL.get(usize::from(settings & 7)).copied() else { return };
    let small = Limits {
        window: 64,
        nodes: 8,
        methods: 4,
        threads: 2,
        depth: 3,
        frames: 4,
        places: 3,
        lines: 3,
        segments: 2,
        slow_calls: 2,
        names: 200,
    };
    let limits = if settings & 8 == 0 { Limits { window: 1024, ..Limits::default() } } else { small };
    let (report, tree) = trace(dialect, &limits, bytes, usize::from(*chunk).max(1));
    let rows: u64 = tree.rows.iter().map(|row| row.calls).sum();
    let entries: u64 = report.methods.iter().map(|method| method.entries).sum();
    assert_eq!(rows + report.without_node + report.too_deep, entries);
    assert!(entries <= report.counters.entries);
    assert!(report.counters.entries <= bytes.len() as u64 / 8);
    assert!(
        tree.rows.iter().all(|row| row.cut + row.open + row.thrown <= row.calls && row.own <= row.inclusive)
    );
    assert!(report.threads.len() <= limits.threads as usize && report.segments.len() <= limits.segments);
    assert_eq!((report, tree), trace(dialect, &limits, bytes, bytes.len().max(1)));
});

fn trace(dialect: Dialect, limits: &Limits, bytes: &[u8], size: usize) -> (Report, CallTree) {
    let mut model = Model::new(dialect, limits, 1);
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
    for chunk in bytes.chunks(size) {
        let read = decoder.feed(chunk, |_, message| {
            model.take(&message);
            None
        });
        if read.is_err() {
            break;
        }
    }
    model.finish();
    (model.report(), model.call_tree(None))
}
