//! Small traces of F1 made by hand, valid and invalid.

#[path = "common/shown.rs"]
mod shown;

use runtap_bytefrog::{Limits, MethodReport, Model};
use runtap_bytefrog_proto::f1::{
    Batch, BatchEvent, BatchKind, Count, CountRows, Drop, DropReason, Hit, HitRows, Rows,
};
use runtap_bytefrog_proto::{Dialect, JavaStr, Location, Message, Rule, Stamp};

use crate::shown::tree;

fn batch(model: &mut Model, thread: u32, sequence: u64, base: u64, events: &[(BatchKind, u32, u32)]) {
    let rows: Vec<[u8; 8]> = events
        .iter()
        .map(|(kind, method, delta)| BatchEvent { kind: *kind, method: *method, delta: *delta }.to_bytes())
        .collect();
    model.take(&Message::Batch(Batch { thread, sequence, base, rows: Rows::new(&rows) }));
}

#[test]
fn batches_of_f1() {
    use BatchKind::{Entry, Exit, Reserved};
    let mut model = Model::new(Dialect::F1, &Limits::default(), 1_000_000);
    batch(&mut model, 70_000, 0, 1 << 40, &[(Entry, 1, 0), (Entry, 2, 10), (Exit, 2, 25)]);
    // Two of these came before.
    batch(
        &mut model,
        70_000,
        1,
        1 << 40,
        &[(Entry, 2, 10), (Exit, 2, 25), (Entry, 3, 30), (Reserved(2), 9, 31)],
    );
    let at = Stamp { time: (1 << 40) + 35, sequence: 5, thread: 70_000 };
    model.take(&Message::Bubble { at, method: 3, exception: 1 });
    batch(&mut model, 70_000, 6, 1 << 40, &[(Exit, 1, 100)]);
    assert_eq!(
        tree(&model),
        ["0 (method 1) 1/100/80", "1 (method 2) 1/15/15", "1 (method 3) 1/5/5 thrown 1",]
    );
    // A gap in one thread is not a gap in another.
    batch(&mut model, 1, 0, 0, &[(Entry, 7, 0)]);
    batch(&mut model, 70_000, 7, 1 << 41, &[(Entry, 4, 0)]);
    batch(&mut model, 70_000, 10, 1 << 41, &[(Exit, 4, 9), (Entry, 5, 10), (Exit, 5, 11)]);
    batch(&mut model, 1, 1, 9, &[(Exit, 7, 0)]);
    let drop = Drop { thread: 1, sequence: 2, time: 10, count: 40, reason: DropReason::FULL };
    batch(&mut model, 1, 2, 10, &[]);
    model.take(&Message::Drop(drop));
    model.take(&Message::ThreadEnd { thread: 1, time: 50 });
    batch(&mut model, 1, 2, 60, &[(Entry, 8, 0), (Exit, 8, 1)]);
    let report = model.report();
    assert_eq!((report.counters.missing, report.counters.repeated), (2, 2));
    assert_eq!((report.counters.drops, report.counters.dropped, report.counters.orphans), (1, 40, 0));
    let broken: Vec<Rule> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(
        broken,
        [
            Rule::SequenceGap,
            Rule::SequenceRepeated,
            Rule::UnknownMethod,
            Rule::UnknownException,
            Rule::Reserved,
            Rule::ThreadReused,
        ]
    );
    assert!(tree(&model).contains(&"0 (method 4) 1/0/0 cut 1".to_owned()), "{:?}", tree(&model));
    assert!(tree(&model).contains(&"0 (method 7) 1/9/9".to_owned()), "{:?}", tree(&model));
}

/// A thread that was too fast for HQ has events for its first calls and counts for the others, which are added up.
#[test]
fn calls_of_events_and_of_counts_are_one_sum() {
    use BatchKind::{Entry, Exit};
    let mut model = Model::new(Dialect::F1, &Limits::default(), 0);
    batch(&mut model, 1, 0, 0, &[(Entry, 1, 0), (Entry, 2, 10), (Exit, 2, 20)]);
    let drop = Drop { thread: 1, sequence: 3, time: 20, count: Drop::UNKNOWN, reason: DropReason::DEGRADED };
    model.take(&Message::Drop(drop));
    let rows = [(2, 7, 3), (3, 2, 0)]
        .map(|(method, calls, thrown)| Count { method, calls, thrown, nanoseconds: 0 }.to_bytes());
    for snapshot in 0..2 {
        // Numbers since the beginning: a second snapshot adds nothing.
        let rows = Rows::new(&rows);
        model.take(&Message::Counts(CountRows { snapshot, time: 30, last: true, reset: false, rows }));
    }
    let report = model.report();
    let of = |method: &MethodReport| (method.calls(), method.returns(), method.thrown(), method.untimed());
    let methods: Vec<_> = report.methods.iter().map(of).collect();
    assert_eq!(methods, [(1, 0, 0, 0), (8, 5, 3, 7), (2, 2, 0, 0)]);
    let partly: Vec<bool> = report.methods.iter().map(MethodReport::is_partly_timed).collect();
    assert_eq!(partly, [true, true, false]);
    assert_eq!((report.methods[1].ended_total(), report.methods[2].ended_total()), (Some(10), None));
    let counters = report.counters;
    assert_eq!((counters.calls(), counters.counted_besides(), counters.degraded), (11, 9, 1));
    // No drop without a count, but the times are incomplete.
    assert_eq!((counters.dropped, counters.drops_unknown), (0, 0));
    assert!(report.has_losses());
}

#[test]
fn counts_and_coverage_of_f1() {
    let mut model = Model::new(Dialect::F1, &Limits::default(), 0);
    let mut counts = |snapshot, last, reset, rows: &[(u32, u64)]| {
        let rows: Vec<[u8; 28]> = rows
            .iter()
            .map(|(method, calls)| {
                Count { method: *method, calls: *calls, thrown: 1, nanoseconds: 10 * calls }.to_bytes()
            })
            .collect();
        model.take(&Message::Counts(CountRows { snapshot, time: 0, last, reset, rows: Rows::new(&rows) }));
    };
    counts(0, true, false, &[(1, 5), (2, 1)]);
    // Absolute numbers, in two messages; from zero then.
    counts(1, false, true, &[(1, 8)]);
    counts(1, true, true, &[(2, 2)]);
    counts(2, true, false, &[(1, 3)]);
    let rows = [Hit { method: 1, location: None }, Hit { method: 3, location: Some(4) }].map(Hit::to_bytes);
    model.take(&Message::Coverage(HitRows { time: 0, rows: Rows::new(&rows) }));
    model.take(&Message::MapLocation(Location {
        location: 4,
        method: 3,
        start_line: 12,
        end_line: 13,
        start_char: 1,
        end_char: 2,
    }));
    model.take(&Message::MapMethod { method: 9, signature: JavaStr::from_bytes(b"never") });
    let report = model.report();
    let methods: Vec<_> = report.methods.iter().map(|method| (method.counted, method.has_run)).collect();
    assert_eq!(methods, [(Some((11, 2, 110)), true), (Some((2, 1, 20)), true), (None, true)]);
    assert_eq!(report.lines.len(), 1);
    assert_eq!(report.lines[0].location.map(|at| at.start_line), Some(12));
    assert_eq!((report.counters.entries, report.counters.counted, report.counters.calls()), (0, 13, 13));
}
