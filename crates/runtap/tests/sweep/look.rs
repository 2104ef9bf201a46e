//! Everything that a recording is looked at with. Says what must be the same whichever way it is read.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use runtap_clr::payload::{Fields, Payload, Value};
use runtap_clr::report::{Collect, Counters, Exceptions, Gc, Http, Jit, Locks, Logs, Loss, ThreadPool};
use runtap_clr::{DotnetTraceBuilder, EventCounts, ProfileBuilder, ProfileOptions};
use runtap_model::View;
use runtap_nettrace::inspect::{Block, Content, Inspect, Inspected};
use runtap_nettrace::{Event, InOrder, Observe, Reader, Repair, Repaired, Scan, StreamItem};
use runtap_sinks::{Format, Options};

/// The events and errors found in a recording.
pub(crate) struct Found {
    pub(crate) events: u64,
    pub(crate) partial: bool,
}

impl Found {
    /// The least number of events in front of a byte: those of the blocks that end there.
    pub(crate) fn events_before(&self, at: usize, blocks: &[Block]) -> u64 {
        let before =
            blocks.iter().take_while(|block| block.offset + block.header_bytes + block.size < at as u64);
        let in_block =
            |block: &Block| if let Content::Events(found) = &block.content { found.events } else { 0 };
        before.map(in_block).sum::<u64>().min(self.events)
    }
}

/// Reads what can be read, behind damage too.
fn read(bytes: &[u8], mut visit: impl FnMut(&StreamItem<'_>)) -> Reader {
    let (mut reader, mut errors) = (Reader::new(), 0);
    for part in [bytes, &[]] {
        if part.is_empty() {
            reader.finish();
        }
        let mut items = reader.items(part);
        while items.for_each(|item| visit(&item)).is_err() {
            errors += 1;
            assert!(errors <= bytes.len(), "no end of errors");
        }
    }
    reader
}

/// Looks at a stream with everything. `what` is its name.
pub(crate) fn look_at_everything(bytes: &[u8], what: &str) -> Found {
    let mut events = 0;
    let reader = read(bytes, |item| events += u64::from(matches!(item, StreamItem::Event(_))));
    let found = Found { events, partial: reader.partial().is_some() };
    assert_eq!(in_parts(bytes), events, "{what}, in parts");
    assert_eq!(in_order(bytes), events, "{what}, in order");
    inspect(bytes);
    look_at_repaired(bytes, what);
    meaning(bytes);
    for view in View::ALL.into_iter().filter(|view| *view != View::ThreadTime) {
        let mut builder = ProfileBuilder::of(view);
        read(bytes, |item| builder.item(item));
        let trace = builder.finish(&ProfileOptions::default());
        for format in Format::ALL {
            // Errors are expected: there may be no samples, or the times may be invalid.
            let _ = format.write(&trace, std::io::sink(), &Options::new(view));
        }
    }
    let mut builder = DotnetTraceBuilder::new();
    read(bytes, |item| builder.item(item));
    builder.cut_off();
    let trace = builder.finish(&ProfileOptions::default());
    let mut options = Options::new(View::ThreadTime);
    options.dotnet_trace = true;
    let _ = Format::Speedscope.write(&trace, std::io::sink(), &options);
    found
}

/// An event without its stack, and its stack.
type EventDigest = (u64, u64);

fn content(event: &Event<'_>) -> EventDigest {
    let (mut hasher, mut stack) = (DefaultHasher::new(), DefaultHasher::new());
    (event.thread_id, event.capture_thread_id, event.process_id).hash(&mut hasher);
    (event.processor, event.sequence, event.timestamp, event.payload).hash(&mut hasher);
    [event.activity_id, event.related_activity_id].map(|id| id.map(|id| *id.as_bytes())).hash(&mut hasher);
    event.stack.bytes().hash(&mut stack);
    (hasher.finish(), stack.finish())
}

fn contents(bytes: &[u8]) -> (Vec<EventDigest>, Reader) {
    let mut all = Vec::new();
    let reader = read(bytes, |item| {
        if let StreamItem::Event(event) = item {
            all.push(content(event));
        }
    });
    (all, reader)
}

fn repair(bytes: &[u8]) -> (Vec<u8>, Repaired) {
    let mut repair = Repair::new();
    repair.feed(bytes);
    repair.finish()
}

/// A repaired recording is complete, needs no repair, and starts with every event before the first omitted byte.
fn look_at_repaired(bytes: &[u8], what: &str) {
    let (repaired, done) = repair(bytes);
    if repaired.is_empty() {
        return;
    }
    let (kept, reader) = contents(&repaired);
    assert!(reader.is_complete() && reader.partial().is_none(), "{what}, repaired: {:?}", reader.partial());
    let (again, second) = repair(&repaired);
    assert!(again == repaired && !second.has_changed(), "{what}, repaired twice: {second:?}");
    check_places(&done, what);
    // In the oldest versions a repair ends at the first damage: definitions are named by their offsets there.
    let is_oldest = reader.header().is_some_and(|header| header.version < 3);
    if is_oldest || done.start_added {
        return;
    }
    // A block that nothing sound follows is kept only as far as it is known to be sound. A reader goes on into the damage; a
    // repair goes on behind it, and behind a second header too.
    let sound = done.skipped.first().map_or(bytes.len() as u64, |first| first.offset);
    let (before, _) = contents(&bytes[..usize::try_from(sound).unwrap()]);
    assert!(
        kept.starts_with(&before),
        "{what}, repaired: {} of {} events: {done:?}",
        kept.len(),
        before.len()
    );
}

/// The places that were left out follow each other, and no byte is in two of them.
fn check_places(done: &Repaired, what: &str) {
    let mut end = None;
    for place in &done.skipped {
        assert!(place.bytes > 0 && end.is_none_or(|end| end < place.offset), "{what}: {:?}", done.skipped);
        end = Some(place.offset + place.bytes);
    }
    assert!(end.is_none_or(|end| end <= done.bytes_read), "{what}: {done:?}");
    let listed: u64 = done.skipped.iter().map(|place| place.bytes).sum();
    let all_are_listed = done.skipped_places == done.skipped.len() as u64;
    assert!(
        if all_are_listed { listed == done.bytes_skipped } else { listed < done.bytes_skipped },
        "{what}"
    );
}

/// A repaired copy with missing bytes has only events of the recording, in the order of the recording, each with its stack or
/// without a stack.
pub(crate) fn look_at_repaired_hole(recording: &[u8], copy: &[u8], what: &str) {
    let mut no_stack = DefaultHasher::new();
    [0_u8; 0][..].hash(&mut no_stack);
    let no_stack = no_stack.finish();
    let (all, _) = contents(recording);
    let (kept, _) = contents(&repair(copy).0);
    let mut rest = all.iter();
    for (place, (event, stack)) in kept.iter().enumerate() {
        let is_it = |(other, its): &&EventDigest| event == other && (stack == its || *stack == no_stack);
        assert!(rest.any(|other| is_it(&other)), "{what}: event {place} of {} was not there", kept.len());
    }
}

fn in_parts(bytes: &[u8]) -> u64 {
    let mut events = 0;
    for part in Scan::of(bytes, 20_000) {
        let mut reader = part.reader();
        let mut visit = |item: StreamItem<'_>| events += u64::from(matches!(item, StreamItem::Event(_)));
        for range in part.feed_ranges() {
            reader.seek(range.start);
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            let mut items = reader.items(&bytes[range]);
            while items.for_each(&mut visit).is_err() {}
        }
        reader.finish();
        let mut items = reader.items(&[]);
        while items.for_each(&mut visit).is_err() {}
    }
    events
}

fn in_order(bytes: &[u8]) -> u64 {
    let (mut reader, mut events) = (InOrder::new(), 0);
    for chunk in bytes.chunks(40_000).chain([&[][..]]) {
        if chunk.is_empty() {
            reader.finish();
        } else {
            reader.feed(chunk);
        }
        loop {
            match reader.next() {
                Ok(Some(StreamItem::Event(_))) => events += 1,
                Ok(Some(_)) | Err(_) => {}
                Ok(None) => break,
            }
        }
    }
    events
}

fn inspect(bytes: &[u8]) {
    let mut inspect = Inspect::new();
    inspect.feed(bytes);
    inspect.finish();
    let mut at = 0;
    while let Some(found) = inspect.next() {
        if let Inspected::Block(block) = found {
            assert!(block.offset >= at && block.offset < bytes.len() as u64, "{block:?}");
            at = block.offset;
        }
    }
}

/// Counts, reports and the fields of every event, in one reading.
fn meaning(bytes: &[u8]) {
    let mut counts = EventCounts::new();
    let mut decoder = runtap_clr::payload::Decoder::new();
    let (mut gc, mut exceptions, mut locks) = (Gc::default(), Exceptions::default(), Locks::default());
    let (mut jit, mut pool, mut http) = (Jit::default(), ThreadPool::default(), Http::default());
    let (mut counters, mut logs, mut loss) = (Counters::default(), Logs::default(), Loss::default());
    let reader = read(bytes, |item| {
        match item {
            StreamItem::Event(event) => {
                counts.add(event);
                look_into(decoder.payload(event));
            }
            item => {
                if let StreamItem::Metadata(metadata) = item {
                    counts.redefined(metadata.id);
                }
                decoder.item(item);
            }
        }
        gc.item(item);
        exceptions.item(item);
        locks.item(item);
        jit.item(item);
        pool.item(item);
        http.item(item);
        counters.item(item);
        logs.item(item);
        loss.item(item);
    });
    let _ = (gc.finish(), exceptions.finish(), locks.finish(), jit.finish(), pool.finish(), http.finish());
    let _ = (counters.finish(), logs.finish(), loss.report(reader.lost()));
    let rows: u64 = counts.rows().iter().map(|row| row.n).sum();
    assert_eq!(rows, counts.total());
}

/// All fields of an event. A few bytes of a payload can be many values, but not without end.
fn look_into(payload: Payload<'_>) {
    let values = count(payload.fields());
    let bytes = payload.bytes().len();
    assert!(values <= 128 * (bytes + 8), "{values} values of {bytes} bytes");
}

fn count(fields: Fields<'_>) -> usize {
    fields.map_while(Result::ok).map(|(_, value)| one(value)).sum()
}

fn one(value: Value<'_>) -> usize {
    1 + match value {
        Value::Object(object) => count(object.fields()),
        Value::Array(elements) => elements.map(one).sum(),
        _ => 0,
    }
}
