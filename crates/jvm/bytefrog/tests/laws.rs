//! For any input from an agent: no panic, nothing invented, memory within the limits.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use runtap_bytefrog::{Limits, Model, Report, Selection, StackChange, TreeRow};
use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Drop, DropReason, Rows};
use runtap_bytefrog_proto::{Dialect, Exit, JavaStr, Message, Stamp};

#[derive(Debug, Clone)]
struct Said {
    kind: u8,
    method: u32,
    thread: u32,
    sequence: u32,
    time: u32,
    rows: Vec<[u8; 8]>,
}

fn said() -> impl Strategy<Value = Said> {
    let method = prop_oneof![6 => 0..6u32, 1 => any::<u32>()];
    let thread = prop_oneof![6 => 0..3u32, 1 => 0..70_000u32];
    let sequence = prop_oneof![4 => 0..40u32, 1 => any::<u32>()];
    let row = (0..4u8, 0..5u32, 0..50u32).prop_map(|(kind, method, delta)| {
        let kind = match kind {
            0 | 3 => BatchKind::Entry,
            1 => BatchKind::Exit,
            raw => BatchKind::Reserved(raw),
        };
        BatchEvent { kind, method, delta }.to_bytes()
    });
    (0..12u8, method, thread, sequence, any::<u32>(), vec(row, 0..8)).prop_map(
        |(kind, method, thread, sequence, time, rows)| Said { kind, method, thread, sequence, time, rows },
    )
}

impl Said {
    fn message(&self, ours: bool) -> Message<'_> {
        let Self { method, .. } = *self;
        let thread = if ours { self.thread } else { self.thread & 0xffff };
        let at = Stamp { time: self.time.into(), sequence: self.sequence.into(), thread };
        let name = JavaStr::from_bytes(b"n");
        match self.kind {
            0 | 1 if ours => Message::Batch(Batch {
                thread,
                sequence: at.sequence,
                base: at.time,
                rows: Rows::new(&self.rows),
            }),
            2 if ours => Message::Drop(Drop {
                thread,
                sequence: at.sequence,
                time: at.time,
                count: u64::MAX - u64::from(method & 1),
                reason: DropReason::FULL,
            }),
            3 if ours => Message::ThreadEnd { thread, time: at.time },
            4 => Message::Exception { at, method, exception: 1, line: 2 },
            5 => Message::Bubble { at, method, exception: 1 },
            6 => Message::Marker {
                time: at.time,
                sequence: at.sequence,
                thread: ours.then_some(thread),
                key: name,
                value: JavaStr::from_bytes(if method & 1 == 0 { b"S" } else { b"E" }),
            },
            7 => Message::MapMethod { method, signature: name },
            8 => Message::DataBreak { sequence: self.sequence },
            9 => Message::MapThreadName { thread, time: at.time, name },
            _ if ours => Message::MapException { exception: method, name },
            10 | 11 => Message::Visit { at, method, location: 3 },
            0 | 1 => Message::Entry { at, method },
            _ => Message::Exit { at, method, exit: Exit::Thrown(u8::from(method == 2)) },
        }
    }
}

proptest! {
    #[test]
    fn nothing_is_invented(all in vec(said(), 0..120), ours: bool, small: bool) {
        let dialect = if ours { Dialect::F1 } else { Dialect::V4 };
        let limits = if small {
            Limits {
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
            }
        } else {
            Limits::default()
        };
        let mut model = Model::new(dialect, &limits, 1);
        for said in &all {
            model.take(&said.message(ours));
            prop_assert!(model.waiting() < limits.window);
        }
        model.finish();
        prop_assert_eq!(model.waiting(), 0);
        let report = model.report();
        let tree = model.call_tree(None);
        // Each row is a call that started, and every call that started is listed, or counted as without a node.
        let rows: u64 = tree.rows.iter().map(|row| row.calls).sum();
        let entries: u64 = report.methods.iter().map(|method| method.entries).sum();
        prop_assert!(rows <= entries && entries <= report.counters.entries);
        prop_assert_eq!(rows + report.without_node + report.too_deep, entries);
        if !small {
            prop_assert_eq!(entries, report.counters.entries);
        }
        for (i, row) in tree.rows.iter().enumerate() {
            prop_assert!(row.calls > 0 && row.own <= row.inclusive);
            prop_assert!(row.cut + row.open + row.thrown <= row.calls);
            let caller = tree.rows[..i].iter().rev().find(|above| above.depth < row.depth);
            prop_assert_eq!(caller.map_or(0, |caller| caller.depth + 1), row.depth);
        }
        // The sums over threads equal the total.
        let each: u64 = (0..report.threads.len())
            .flat_map(|thread| model.call_tree(Some(thread)).rows)
            .map(|row| row.calls)
            .sum();
        prop_assert_eq!(each, rows);
        // Made one by one, or one after the other.
        let mut trees = vec![Vec::new(); report.threads.len()];
        let mut signatures = Vec::new();
        model.each_call_tree(|thread, all, rows| {
            trees[thread] = rows.to_vec();
            signatures = all.to_vec();
        });
        let totals = model.thread_totals();
        prop_assert_eq!(totals.len(), trees.len());
        for (thread, rows) in trees.iter().enumerate() {
            let one = model.call_tree(Some(thread));
            prop_assert_eq!(&one.rows, rows);
            prop_assert!(rows.is_empty() || one.signatures == signatures);
            let outermost = rows.iter().filter(|row| row.depth == 0);
            prop_assert_eq!(totals[thread], outermost.map(TreeRow::total).fold(0, u64::saturating_add));
        }
        prop_assert!(report.threads.len() <= limits.threads as usize);
        prop_assert!(report.methods.len() <= limits.methods as usize);
        prop_assert!(report.slow_calls.len() <= limits.slow_calls);
        prop_assert!(report.segments.len() <= limits.segments);
        prop_assert_eq!(model.report(), report);
    }

    /// The parts of a whole have the sums of the whole.
    #[test]
    fn parts_add_up(all in vec(said(), 0..120), ours: bool, at in 0..60u32, by_sequence: bool) {
        let dialect = if ours { Dialect::F1 } else { Dialect::V4 };
        let report = |selection| {
            let mut model = Model::new(dialect, &Limits::default(), 1).selecting(selection);
            for said in &all {
                model.take(&said.message(ours));
            }
            model.finish();
            let (report, tree) = (model.report(), model.call_tree(None));
            let rows: u64 = tree.rows.iter().map(|row| row.calls).sum();
            let entries: u64 = report.methods.iter().map(|method| method.entries).sum();
            assert_eq!(rows + report.without_node + report.too_deep, entries);
            report
        };
        let time = if ours { i64::from(at) } else { i64::from(at) * 1_000_000 };
        let parts = if by_sequence && !ours {
            let at = u64::from(at);
            [Selection::Sequences(vec![(0, at)]), Selection::Sequences(vec![(at, u64::MAX)])]
        } else {
            [Selection::Times(vec![(i64::MIN, time)]), Selection::Times(vec![(time, i64::MAX)])]
        };
        let whole = report(Selection::All);
        let parts = parts.map(report);
        // By signature: a part need not contain every method.
        let add = |sums: &mut BTreeMap<String, Vec<u64>>, report: &Report| {
            for method in &report.methods {
                let numbers = [method.entries, method.exits, method.bubbles, method.own, method.throws];
                let sum = sums.entry(method.signature.clone()).or_insert_with(|| vec![0; numbers.len()]);
                sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
            }
            let threads = report.threads.iter().map(|thread| (format!("thread {}", thread.id), thread.entries));
            threads.for_each(|(name, entries)| sums.entry(name).or_insert_with(|| vec![0])[0] += entries);
        };
        let (mut of_parts, mut of_whole) = (BTreeMap::new(), BTreeMap::new());
        for part in &parts {
            add(&mut of_parts, part);
        }
        add(&mut of_whole, &whole);
        for sums in [&mut of_parts, &mut of_whole] {
            sums.retain(|_, numbers| numbers.iter().any(|number| *number > 0));
        }
        prop_assert_eq!(of_parts, of_whole);
        prop_assert_eq!(&parts[0].counters, &whole.counters);
    }

    /// The log has every call that has a frame, and every end, in a possible order for a stack.
    #[test]
    fn changes_are_those_of_stacks(all in vec(said(), 0..120), ours: bool, at in 0..60i64) {
        let dialect = if ours { Dialect::F1 } else { Dialect::V4 };
        let selection = Selection::Times(vec![(at, i64::MAX)]);
        let mut model = Model::new(dialect, &Limits::default(), 1).selecting(selection);
        model.log_changes();
        let mut changes = Vec::new();
        for said in &all {
            model.take(&said.message(ours));
            changes.extend(model.take_changes());
        }
        model.finish();
        changes.extend(model.take_changes());
        prop_assert_eq!(model.take_changes(), vec![]);
        let mut stacks = BTreeMap::<usize, (Vec<String>, i64)>::new();
        let (mut opened, mut cut) = (0, 0);
        for change in changes {
            let (stack, time) = stacks.entry(change.thread).or_insert((Vec::new(), i64::MIN));
            prop_assert!(change.time >= *time);
            *time = change.time;
            match change.kind {
                StackChange::Opened(method) => {
                    opened += 1;
                    stack.push(model.method(method));
                }
                StackChange::Closed => prop_assert!(stack.pop().is_some()),
                StackChange::Cut(frames) => {
                    cut += frames as u64;
                    prop_assert!(frames <= stack.len());
                    stack.truncate(stack.len() - frames);
                }
            }
        }
        let tree = model.call_tree(None);
        prop_assert_eq!(opened, tree.rows.iter().map(|row| row.calls).sum::<u64>());
        prop_assert_eq!(cut, tree.rows.iter().map(|row| row.cut).sum::<u64>());
    }
}
