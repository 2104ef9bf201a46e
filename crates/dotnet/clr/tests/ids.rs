//! Results do not depend on the ids of definitions in a stream: neither on large ids, nor on one id that is redefined for each
//! event.
//! time, give the same answers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};

use runtap_clr::lines::{Choice, Chooser, Lines, Style};
use runtap_clr::report::{Collect, Counters, Exceptions, Gc, Http, Jit, Locks, Logs, ThreadPool};
use runtap_clr::{DotnetTraceBuilder, EventCounts, Names, ProfileBuilder, ProfileOptions};
use runtap_model::{FrameTotals, Trace, View};
use runtap_nettrace::{Metadata, Observe, Reader, StreamItem};
use runtap_testkit::{require, shared_data};

/// The number of events that are checked, because redefining before every event is slow.
const ENOUGH: u32 = 400;

/// Passes the first items of a recording to `visit` with other ids. A definition is repeated if its id has been reused.
/// come to mean something else.
fn renumbered(bytes: &[u8], new: fn(u32) -> u32, visit: &mut dyn FnMut(&StreamItem<'_>)) {
    let mut reader = Reader::new();
    reader.feed(bytes);
    reader.finish();
    let mut defined: HashMap<u32, Metadata> = HashMap::new();
    let mut meaning: HashMap<u32, u32> = HashMap::new();
    let mut events = 0;
    while events < ENOUGH
        && let Ok(Some(item)) = reader.next()
    {
        match item {
            StreamItem::Metadata(metadata) => {
                let mut metadata = metadata.clone();
                let old = metadata.id;
                metadata.id = new(old);
                meaning.insert(metadata.id, old);
                visit(&StreamItem::Metadata(&metadata));
                defined.insert(old, metadata);
            }
            StreamItem::Event(mut event) => {
                events += 1;
                let old = event.metadata_id;
                event.metadata_id = new(old);
                event.metadata = defined.get(&old);
                if meaning.insert(event.metadata_id, old) != Some(old)
                    && let Some(metadata) = event.metadata
                {
                    visit(&StreamItem::Metadata(metadata));
                }
                visit(&StreamItem::Event(event));
            }
            item => visit(&item),
        }
    }
}

/// A summary of everything that a sink could see of a profile.
fn profile(trace: &Trace, view: View) -> String {
    let (frames, totals) = FrameTotals::by_name(trace, view);
    let mut lines: Vec<String> = frames
        .all_frames()
        .map(|(handle, frame)| {
            format!("{frame} {} {}", totals.self_weight(handle), totals.total_weight(handle))
        })
        .collect();
    lines.extend(trace.threads().map(|(_, thread)| format!("{} {}", thread.label(), thread.ticks(view))));
    lines.join("\n")
}

/// A hash of the output.
#[derive(Default)]
struct Hash(DefaultHasher);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the results of all consumers of a stream.
fn answers(bytes: &[u8], new: fn(u32) -> u32) -> Vec<(&'static str, String)> {
    let mut reports = (
        (Counters::default(), Exceptions::default(), Gc::default(), Http::default()),
        (Jit::default(), Locks::default(), Logs::default(), ThreadPool::default()),
    );
    let (mut counts, mut names, mut compat) = (EventCounts::new(), Names::new(), DotnetTraceBuilder::new());
    let mut written = Hash::default();
    let mut lines = Lines::new(Chooser::new(Choice::default(), None), Style::Json, false, &mut written);
    let views = [View::ThreadTime, View::Alloc, View::Exceptions, View::Contention, View::Gc, View::Jit];
    let mut profiles = views.map(|view| (view, ProfileBuilder::of(view)));
    renumbered(bytes, new, &mut |item| {
        let ((counters, exceptions, gc, http), (jit, locks, logs, pool)) = &mut reports;
        let all: [&mut dyn Observe; 11] =
            [counters, exceptions, gc, http, jit, locks, logs, pool, &mut counts, &mut names, &mut compat];
        for it in all {
            it.item(item);
        }
        for (_, builder) in &mut profiles {
            builder.item(item);
        }
        lines.item(item).unwrap();
    });
    drop(lines);
    let ((counters, exceptions, gc, http), (jit, locks, logs, pool)) = reports;
    let mut answers = vec![
        ("counters", format!("{:?}", counters.finish())),
        ("exceptions", format!("{:?}", exceptions.finish())),
        ("gc", format!("{:?}", gc.finish())),
        ("http", format!("{:?}", http.finish())),
        ("jit", format!("{:?}", jit.finish())),
        ("locks", format!("{:?}", locks.finish())),
        ("logs", format!("{:?}", logs.finish())),
        ("thread pool", format!("{:?}", pool.finish())),
        ("counts", format!("{} {:?}", counts.total(), counts.rows())),
        ("names", format!("{:?} {}", names.command_line(), names.malformed())),
        ("lines", written.0.finish().to_string()),
        ("dotnet-trace", profile(&compat.finish(&ProfileOptions::default()), View::ThreadTime)),
    ];
    answers
        .extend(profiles.map(|(view, builder)| {
            (view.name(), profile(&builder.finish(&ProfileOptions::default()), view))
        }));
    answers
}

#[test]
fn results_do_not_depend_on_ids() {
    let large: fn(u32) -> u32 = |id| if id == 0 { 0 } else { id * 5_000 + (1 << 24) };
    let one: fn(u32) -> u32 = |id| id.min(1);
    for name in ["net8/startup-suspended", "net8/exceptions", "net9/threadpool", "net10/logs", "net10/meters"]
    {
        let bytes = require!(shared_data(format!("nettrace/{name}.nettrace.zst")));
        let wanted = answers(&bytes, |id| id);
        for (how, new) in [("large", large), ("one", one)] {
            for ((what, wanted), (_, got)) in wanted.iter().zip(answers(&bytes, new)) {
                assert!(*wanted == got, "{name}, ids {how}: {what} differs");
            }
        }
    }
}
