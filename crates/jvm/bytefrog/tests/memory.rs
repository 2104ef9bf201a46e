//! The memory of a large trace. This test has its own process, because the memory is measured for the process.

use runtap_bytefrog::{Limits, Model};
use runtap_bytefrog_proto::{Dialect, Exit, Message, Stamp};
use runtap_testkit::Skip;

/// Returns the peak memory use so far, in bytes.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[test]
fn ten_thousand_methods_in_each_of_a_hundred_threads() {
    let Some(before) = peak() else {
        return Skip::because("this system does not say what a process takes").report();
    };
    let mut model = Model::new(Dialect::V1, &Limits::default(), 1_000_000);
    let mut sequence = 0;
    let mut calls = |rounds: u32| {
        for _ in 0..rounds {
            for thread in 0..100 {
                for method in 0..10_000 {
                    for entry in [true, false] {
                        let at = Stamp { time: sequence >> 12, sequence, thread };
                        sequence += 1;
                        model.take(&if entry {
                            Message::Entry { at, method }
                        } else {
                            Message::Exit { at, method, exit: Exit::Line(1) }
                        });
                    }
                }
            }
        }
        peak().unwrap_or_default() - before
    };
    let once = calls(1);
    let more = calls(1);
    assert!(once <= 100 << 20, "{once} bytes");
    // Calls that were seen before need no memory.
    assert!(more - once < 1 << 20, "{once}, then {more} bytes");
    let report = model.report();
    assert_eq!((report.without_node, report.too_deep, report.beyond), (0, 0, 0));
    assert_eq!(report.counters.entries, 2_000_000);
}
