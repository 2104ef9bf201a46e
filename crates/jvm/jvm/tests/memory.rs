//! The memory for a long recording. This test has its own process, because the memory is measured for the process.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::Instant;

use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Rows};
use runtap_bytefrog_proto::{Dialect, Message, to_bytes};
use runtap_jvm::recording::{Options, find, replay};
use runtap_testkit::Skip;

/// Returns the peak memory use, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// Eight million events, 64 MB, need the memory of a trace with four methods.
#[test]
fn a_long_recording_takes_no_more_than_a_short_one() {
    replayed(8_000_000);
}

/// A recording of 800 MB needs no more memory.
#[test]
#[ignore = "writes and reads 800 MB"]
fn a_hundred_million_events() {
    replayed(100_000_000);
}

/// A recording of 8 GB needs no more memory.
#[test]
#[ignore = "writes and reads 8 GB"]
fn a_thousand_million_events() {
    replayed(1_000_000_000);
}

/// Makes a recording of at least this many events, and replays it.
#[expect(clippy::print_stderr, reason = "what was measured")]
fn replayed(events: u64) {
    const EVENTS: u64 = 4096;
    let batches = events.div_ceil(EVENTS);
    let folder = tempfile::tempdir().expect("a folder");
    let rows: Vec<[u8; 8]> = (0..EVENTS)
        .map(|n| {
            let method = u32::try_from(n / 2 % 4).expect("small");
            let kind = if n % 2 == 0 { BatchKind::Entry } else { BatchKind::Exit };
            BatchEvent { kind, method, delta: u32::try_from(n).expect("small") }.to_bytes()
        })
        .collect();
    let mut data =
        BufWriter::new(File::create(folder.path().join("a.data0.a2h.bin")).expect("it can be made"));
    data.write_all(&[0x1e, 0]).expect("written");
    for batch in 0..batches {
        let batch =
            Batch { thread: 0, sequence: batch * EVENTS, base: batch * EVENTS, rows: Rows::new(&rows) };
        let bytes = to_bytes(&Message::Batch(batch), Dialect::F1).expect("it fits");
        data.write_all(&bytes).expect("written");
    }
    data.into_inner().expect("written");
    std::fs::write(folder.path().join("a.ctl.a2h.bin"), [0, 0xf1]).expect("written");
    let recorded = find(folder.path()).expect("a recording").remove(0);
    let Some(before) = peak() else {
        return Skip::because("this system does not say what a process takes").report();
    };
    let began = Instant::now();
    let report = replay(&recorded, &Options::default()).expect("read").model.report();
    let took = began.elapsed();
    assert_eq!(report.counters.entries, batches * EVENTS / 2);
    assert_eq!((report.counters.missing, report.counters.exits), (0, batches * EVENTS / 2));
    let grown = peak().unwrap_or(u64::MAX).saturating_sub(before);
    eprintln!("{events} events: {:.1} s, {} KiB more", took.as_secs_f64(), grown >> 10);
    assert!(grown < 8 << 20, "{grown} bytes more");
}
