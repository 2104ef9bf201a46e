//! Views that consist of events, on recordings of programs that counted the events themselves, and on synthetic streams.

use std::collections::BTreeMap;

use runtap_clr::clr::{RUNTIME, TPL};
use runtap_clr::payload::Decoder;
use runtap_clr::{ProfileBuilder, ProfileOptions};
use runtap_model::{Sample, Trace, View};
use runtap_nettrace::{
    EventToWrite, Field, FieldType, Metadata, Observe, Reader, StreamItem, TraceHeader, Writer,
};
use runtap_testkit::{Skip, require, shared_data};
use runtap_wire::Writer as Bytes;
use serde_json::Value;

fn recording(name: &str) -> Result<(Vec<u8>, Value), Skip> {
    let answers = shared_data(format!("nettrace/{name}.json"))?;
    Ok((shared_data(format!("nettrace/{name}.nettrace.zst"))?, serde_json::from_slice(&answers).unwrap()))
}

fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    while let Some(item) = reader.next().unwrap() {
        visit(&item);
    }
}

fn profile(bytes: &[u8], view: View) -> Trace {
    let mut builder = ProfileBuilder::of(view);
    read(bytes, |item| builder.item(item));
    assert_eq!(builder.malformed(), 0);
    builder.finish(&ProfileOptions::default())
}

/// The sum of a number in the events of one kind.
fn sum(bytes: &[u8], id: u32, field: &str) -> f64 {
    let (mut decoder, mut sum) = (Decoder::new(), 0.0);
    read(bytes, |item| match item {
        StreamItem::Event(event) => {
            if event.metadata.is_some_and(|m| (m.provider.as_str(), m.event_id) == (RUNTIME, id)) {
                sum += decoder.payload(event).f64(field).unwrap();
            }
        }
        item => decoder.item(item),
    });
    sum
}

/// The frames of a sample, root first.
fn frames(trace: &Trace, sample: &Sample) -> Vec<String> {
    let mut frames: Vec<String> = sample.stack.map_or_else(Vec::new, |stack| {
        trace.stacks().frames(stack).map(|frame| trace.frame(frame).to_string()).collect()
    });
    frames.reverse();
    frames
}

/// The frames and weights of all events, sorted by thread and time.
fn events(trace: &Trace, view: View) -> Vec<(Vec<String>, u64)> {
    let mut events = Vec::new();
    for (_, thread) in trace.threads() {
        events.extend(thread.samples(view).map(|sample| (frames(trace, &sample), sample.weight)));
    }
    events
}

/// The number and sum of the events by their last frame.
fn by_leaf(trace: &Trace, view: View) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for (frames, weight) in events(trace, view) {
        let (n, sum) = sums.entry(frames.last().cloned().unwrap_or_default()).or_insert((0, 0));
        (*n, *sum) = (*n + 1, *sum + weight);
    }
    sums
}

#[test]
fn exceptions_by_type_are_those_that_were_thrown() {
    for name in ["net8/exceptions", "net8/gcverbose-allocs", "net10/allocs"] {
        let (bytes, answers) = require!(recording(name));
        let trace = profile(&bytes, View::Exceptions);
        let found: BTreeMap<String, u64> =
            by_leaf(&trace, View::Exceptions).into_iter().map(|(leaf, (_, sum))| (leaf, sum)).collect();
        let wanted: BTreeMap<String, u64> =
            serde_json::from_value(answers["exceptions_by_type"].clone()).unwrap();
        assert_eq!(found, wanted, "{name}");
        let thrown = events(&trace, View::Exceptions);
        assert!(
            thrown.iter().all(|(frames, _)| frames.iter().any(|frame| frame.starts_with("allocs!Program."))),
            "{name}"
        );
    }
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn allocations_add_up_to_the_reported_bytes() {
    let (bytes, _) = require!(recording("net8/gcverbose-allocs"));
    let trace = profile(&bytes, View::Alloc);
    let total: u64 = events(&trace, View::Alloc).iter().map(|(_, weight)| weight).sum();
    assert!((sum(&bytes, 10, "AllocationAmount64") - total as f64).abs() < 1.0);
    let small = by_leaf(&trace, View::Alloc)["SmallObject"];
    // 400,000 objects of 40 bytes, according to the program.
    assert!((15_000_000..17_000_000).contains(&small.1), "{small:?}");
    let array = ["allocs!Program.AllocArrays(int32)", "System.Byte[]"].map(str::to_owned);
    assert!(events(&trace, View::Alloc).iter().any(|(frames, _)| frames.ends_with(&array)));
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn waits_for_locks_have_the_reported_durations() {
    let (bytes, answers) = require!(recording("net8/contention"));
    let trace = profile(&bytes, View::Contention);
    let waits = events(&trace, View::Contention);
    assert!(waits.len() as u64 >= answers["truth"]["lock_contention_count"].as_u64().unwrap());
    let total: u64 = waits.iter().map(|(_, weight)| weight).sum();
    let told = sum(&bytes, 91, "DurationNs");
    assert!((told - total as f64).abs() < waits.len() as f64, "{total} of {told}");
    let of_program =
        waits.iter().filter(|(frames, _)| frames.iter().any(|frame| frame.contains("<Main>b__0")));
    assert!(of_program.count() >= 60);
}

#[test]
fn every_collection_is_a_pause() {
    for name in ["net8/gcverbose-allocs", "net10/allocs"] {
        let (bytes, answers) = require!(recording(name));
        let trace = profile(&bytes, View::Gc);
        let found = by_leaf(&trace, View::Gc);
        // The program counts a collection in every generation up to its own.
        let wanted: Vec<u64> =
            serde_json::from_value(answers["truth"]["collections_by_generation"].clone()).unwrap();
        for generation in 0..3 {
            let wanted = wanted[generation] - wanted.get(generation + 1).unwrap_or(&0);
            let (n, ns) = found[&format!("GC gen {generation} (Induced)")];
            assert_eq!(n, wanted, "{name} {generation}");
            assert!(ns > n * 10_000 && ns < n * 100_000_000, "{name} {generation}: {ns} ns");
        }
        for (frames, _) in events(&trace, View::Gc) {
            assert!(frames[0] == "allocs!Program.Main(class System.String[])", "{frames:?}");
        }
    }
}

#[test]
fn compiled_methods_are_those_that_were_emitted() {
    let (bytes, answers) = require!(recording("net9/jitloader"));
    let trace = profile(&bytes, View::Jit);
    let compiled = events(&trace, View::Jit);
    let named = |part: &str| {
        compiled.iter().filter(|(frames, _)| frames.last().unwrap().contains(part)).count() as u64
    };
    let truth = &answers["truth"];
    assert_eq!(named("!Gen.T"), truth["emitted_methods"].as_u64().unwrap());
    assert_eq!(named("!dynamicClass.dm_"), truth["dynamic_methods"].as_u64().unwrap());
    assert!(compiled.iter().all(|(_, ns)| *ns > 0 && *ns < 1_000_000_000));
}

/// Three methods that await each other forever: all the time belongs to the innermost one.
#[test]
fn chains_of_awaits_are_stacks() {
    let (bytes, _) = require!(recording("net9/cpu-async-stacks"));
    let trace = profile(&bytes, View::Async);
    let levels: Vec<String> =
        [1, 2, 3].iter().map(|n| format!("async!Never+<Level{n}Async>d__{n}.MoveNext()")).collect();
    let stacks = events(&trace, View::Async);
    let innermost: Vec<_> = stacks.iter().filter(|(frames, _)| frames.ends_with(&levels)).collect();
    // One was started by Main, one by a thread of the pool.
    assert_eq!(innermost.len(), 2, "{stacks:#?}");
    for (frames, ns) in &innermost {
        assert!(*ns > 3_000_000_000, "{ns}");
        assert!(frames.iter().any(|f| f == "async!Never.Level1Async()"), "{frames:?}");
    }
    assert!(innermost.iter().any(|(frames, _)| frames[0] == "async!Program.Main(class System.String[])"));
    // Task.Delay, awaited repeatedly for three seconds, is most of the loop's time.
    let delay = ["async!Values+<LoopAsync>d__1.MoveNext()", "Task.Delay"].map(str::to_owned);
    let delays: u64 = stacks.iter().filter(|(frames, _)| frames.ends_with(&delay)).map(|(_, ns)| ns).sum();
    assert!((2_000_000_000..4_000_000_000).contains(&delays), "{delays}");
}

/// A stream builder with times in milliseconds.
struct Stream(Writer);

impl Stream {
    fn new() -> Self {
        Self(Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000)))
    }

    fn define(&mut self, provider: &str, id: u32, fields: &[(&str, FieldType)]) -> u32 {
        let mut metadata = Metadata::new(provider, id, if fields.is_empty() { "" } else { "E" });
        metadata.fields =
            fields.iter().map(|(name, field_type)| Field::new(*name, field_type.clone())).collect();
        self.0.define_event(&metadata).unwrap()
    }

    fn event(&mut self, metadata_id: u32, thread_id: u64, ms: u64, stack: &[u64], payload: &Bytes) {
        let event = EventToWrite {
            metadata_id,
            thread_id,
            capture_thread_id: thread_id,
            timestamp: ms,
            stack,
            payload: payload.as_bytes(),
            ..Default::default()
        };
        self.0.event(&event).unwrap();
    }

    /// Formats every event as `frame;frame milliseconds`.
    fn lines(self, view: View) -> Vec<String> {
        let trace = profile(&self.0.finish(), view);
        let line = |(frames, ns): (Vec<String>, u64)| format!("{} {}", frames.join(";"), ns / 1_000_000);
        events(&trace, view).into_iter().map(line).collect()
    }
}

fn bytes(write: impl FnOnce(&mut Bytes)) -> Bytes {
    let mut bytes = Bytes::new();
    write(&mut bytes);
    bytes
}

#[test]
fn a_lock_that_is_never_acquired_is_waited_for_until_the_end() {
    let mut stream = Stream::new();
    let (start, stop) = (stream.define(RUNTIME, 81, &[]), stream.define(RUNTIME, 91, &[]));
    let wanted = bytes(|w| _ = w.u8(0).u16(0));
    // An old runtime does not report the duration.
    let taken = bytes(|w| _ = w.u8(0).u16(0));
    stream.event(start, 1, 10, &[0x10], &wanted);
    stream.event(start, 2, 20, &[0x20], &wanted);
    stream.event(stop, 2, 50, &[], &taken);
    stream.event(stop, 3, 60, &[], &taken);
    stream.event(stop, 2, 100, &[], &taken);
    assert_eq!(stream.lines(View::Contention), ["?!0x10 90", "?!0x20 30"]);
}

#[test]
fn pauses_are_attributed_to_collections() {
    let mut stream = Stream::new();
    let [start, restart, suspend, triggered] = [1, 3, 9, 35].map(|id| stream.define(RUNTIME, id, &[]));
    let nothing = Bytes::new();
    let suspending = |reason| bytes(|w| _ = w.u32(reason).u32(0).u16(0));
    let collection = |depth, reason, kind| bytes(|w| _ = w.u32(1).u32(depth).u32(reason).u32(kind).u16(0));
    // Suspensions of the sampler are not collections.
    stream.event(suspend, 1, 1, &[], &suspending(0));
    stream.event(restart, 1, 2, &[], &nothing);
    stream.event(suspend, 1, 10, &[], &suspending(1));
    stream.event(triggered, 1, 11, &[0x10], &bytes(|w| _ = w.u32(0)));
    stream.event(start, 1, 12, &[], &collection(0, 0, 0));
    stream.event(restart, 1, 30, &[], &nothing);
    // A background collection stops the program twice; another thread's collection occurs in between.
    stream.event(triggered, 2, 39, &[0x20], &bytes(|w| _ = w.u32(4)));
    stream.event(suspend, 2, 40, &[], &suspending(1));
    stream.event(start, 2, 41, &[], &collection(2, 4, 1));
    stream.event(restart, 2, 45, &[], &nothing);
    stream.event(suspend, 2, 50, &[], &suspending(6));
    stream.event(restart, 2, 53, &[], &nothing);
    stream.event(suspend, 2, 60, &[], &suspending(1));
    stream.event(start, 2, 90, &[], &collection(1, 99, 0));
    assert_eq!(
        stream.lines(View::Gc),
        [
            "?!0x10;GC gen 0 (AllocSmall) 20",
            "?!0x20;GC gen 2 (AllocLarge, background) 5",
            "GC (suspension only) 3",
            "GC gen 1 (unknown reason) 30"
        ]
    );
}

#[test]
fn a_compilation_inside_another_counts_once() {
    let mut stream = Stream::new();
    let (jitting, load) = (stream.define(RUNTIME, 145, &[]), stream.define(RUNTIME, 143, &[]));
    let begin = |method: u64, name: &str| {
        bytes(|w| _ = w.u64(method).u64(7).u32(0).u32(0).utf16z("N.T").utf16z(name).utf16z("void (int32)"))
    };
    let done = |method: u64| {
        bytes(|w| {
            w.u64(method).u64(7).u64(0x1000 * method).u32(16).u32(0).u32(0);
            w.utf16z("N.T").utf16z("x").utf16z("void ()").u16(0).u64(0);
        })
    };
    stream.event(jitting, 1, 10, &[0x10], &begin(1, "outer"));
    stream.event(jitting, 1, 20, &[0x20], &begin(2, "inner"));
    stream.event(jitting, 2, 25, &[], &begin(1, "outer"));
    stream.event(load, 1, 30, &[], &done(2));
    stream.event(load, 2, 35, &[], &done(1));
    stream.event(load, 1, 60, &[], &done(1));
    // Loaded without being compiled; compiled without an end.
    stream.event(load, 1, 70, &[], &done(3));
    stream.event(jitting, 1, 80, &[], &begin(4, "failed"));
    assert_eq!(
        stream.lines(View::Jit),
        ["?!0x10;?!N.T.outer(int32) 40", "?!0x20;?!N.T.inner(int32) 10", "?!N.T.outer(int32) 10"]
    );
}

#[test]
fn sampled_allocations_take_precedence_over_ticks() {
    let mut stream = Stream::new();
    let (tick, sampled) = (stream.define(RUNTIME, 10, &[]), stream.define(RUNTIME, 303, &[]));
    let name = "System.Byte[]";
    stream.event(
        tick,
        1,
        1,
        &[],
        &bytes(|w| {
            w.u32(100_000).u32(0).u16(0).u64(100_000).u64(0x70).utf16z(name).u32(0).u64(0x10).u64(24);
        }),
    );
    stream.event(
        sampled,
        1,
        2,
        &[0x10],
        &bytes(|w| {
            w.u32(0).u16(0).u64(0x70).utf16z(name).u64(0x10).u64(5_000_000_000_000).u64(0);
        }),
    );
    assert_eq!(stream.lines(View::Alloc), ["?!0x10;System.Byte[] 5000000"]);
}

#[test]
fn types_of_sampled_objects_are_distinguished() {
    let mut stream = Stream::new();
    let (by_type, types) = (stream.define(RUNTIME, 32, &[]), stream.define(RUNTIME, 15, &[]));
    let object = |type_id: u64| bytes(|w| _ = w.u64(0x10).u64(type_id).u32(3).u64(6_000_000).u16(0));
    stream.event(by_type, 1, 1, &[], &object(0x70));
    stream.event(by_type, 1, 2, &[], &object(0x71));
    stream.event(
        types,
        1,
        3,
        &[],
        &bytes(|w| {
            w.u32(1).u16(0).u64(0x70).u64(0).u32(0).u32(0).u8(0).utf16z("A.B").u32(0);
        }),
    );
    assert_eq!(stream.lines(View::Alloc), ["A.B 6", "type 0x71 6"]);
}

/// Tasks that existed before, await in a circle, or end out of order.
#[test]
fn inconsistent_tasks_do_not_affect_others() {
    let i32s = |names: &[&'static str]| -> Vec<(&'static str, FieldType)> {
        names.iter().map(|name| (*name, FieldType::I32)).collect()
    };
    let mut stream = Stream::new();
    let awaits = stream.define(TPL, 10, &i32s(&["S", "O", "TaskID", "Behavior", "ContinueWithTaskID"]));
    let begins = stream.define(
        TPL,
        14,
        &[
            ("TaskID", FieldType::I32),
            ("OperationName", FieldType::String),
            ("RelatedContext", FieldType::I64),
        ],
    );
    let ends = stream.define(TPL, 15, &i32s(&["TaskID", "Status"]));
    let runs = stream.define(TPL, 17, &i32s(&["TaskID", "Work"]));
    let begin = |task: i32, name: &str| bytes(|w| _ = w.i32(task).utf16z(name).i64(0));
    let wait = |task: i32, by: i32| bytes(|w| _ = w.i32(1).i32(0).i32(task).i32(2).i32(by));
    let two = |a: i32, b: i32| bytes(|w| _ = w.i32(a).i32(b));
    stream.event(begins, 1, 0, &[], &begin(1, "inner"));
    stream.event(awaits, 1, 10, &[], &wait(1, 2));
    stream.event(awaits, 1, 20, &[], &wait(2, 1));
    stream.event(awaits, 1, 20, &[], &wait(1, 1));
    stream.event(runs, 1, 25, &[], &two(9, 2));
    stream.event(ends, 1, 30, &[], &two(1, 1));
    stream.event(ends, 1, 30, &[], &two(77, 1));
    stream.event(runs, 1, 35, &[], &two(2, 2));
    // The number of a task that has not ended is reused.
    stream.event(begins, 1, 40, &[], &begin(2, "other"));
    stream.event(ends, 1, 50, &[], &two(2, 1));
    stream.event(ends, 1, 90, &[], &two(2, 1));
    assert_eq!(
        stream.lines(View::Async),
        ["an asynchronous operation;inner 30", "an asynchronous operation 10", "other 10"]
    );
}
