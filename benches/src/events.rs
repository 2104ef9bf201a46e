//! The cost of an event for the program that writes it: when the event is not enabled, and with a session whose reader
//! keeps up.
//!
//! Server, program and reader share the machine, as in practice. Events are written in bursts that fit into the
//! session's buffer, so that none is lost: a burst with lost events would appear cheap.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use nix::time::{ClockId, clock_gettime};
use runtap_diag::blocking::Client;
use runtap_diag::{Level, Provider, SessionConfig};
use runtap_diag_server::{Builder, Event, EventData, EventPipe, ProcessDescription};
use runtap_nettrace::{Field, FieldType, Metadata, Reader};
use runtap_transport::Endpoint;
use runtap_wire::Writer;

use crate::output::{self, Table, bar, median};

const PROVIDER: &str = "Bench-Events";
const BURST: u32 = 20_000;
const DISABLED_BURST: u32 = 20_000_000;
const BURSTS: usize = 50;
/// Time for the reader to receive a burst.
const PAUSE: Duration = Duration::from_millis(20);

const MAX_DISABLED: f64 = 2.0;
const MAX_ENABLED: f64 = 100.0;

pub(crate) fn run() -> Result<()> {
    output::machine();
    let pipe = EventPipe::new();
    let mut metadata = Metadata::new(PROVIDER, 1, "Event");
    metadata.fields = vec![Field::new("n", FieldType::U32), Field::new("text", FieldType::String)];
    let event = pipe.define(metadata)?;
    let directory = tempfile::tempdir()?;
    let description = ProcessDescription::of_this_process().entry_assembly("bench");
    let server = Builder::new(description).pipe(pipe).path(directory.path().join("s")).spawn()?;

    let disabled = median(bursts(&event, &[], 1)) - median(empty(&event));
    let client = Client::new(Endpoint::unix(server.path()))?;
    let config = SessionConfig::new(vec![Provider::new(PROVIDER, u64::MAX, Level::Verbose)]);
    let mut session = client.start_session(&config)?;
    let id = session.id();
    let reading = thread::spawn(move || -> Result<u64> {
        let mut reader = Reader::new();
        while let Some(chunk) = session.next_chunk()? {
            reader.feed(&chunk);
            while reader.next()?.is_some() {}
        }
        Ok(reader.lost())
    });
    let stack: Vec<u64> = (0..24).map(|frame| 0x7f00_0000_0000 + frame * 0x100).collect();
    let mut table = Table::new(&["", "ns an event", "most"]);
    let mut row = |what: &str, times: Vec<f64>| {
        let most = times.iter().copied().fold(0.0, f64::max);
        let middle = median(times);
        table.row(&[what.to_owned(), format!("{middle:.1}"), format!("{most:.1}")]);
        middle
    };
    let enabled = row("one thread", bursts(&event, &[], 1));
    row("one thread, with a stack of 24 frames", bursts(&event, &stack, 1));
    row("two threads, each", bursts(&event, &[], 2));
    client.stop_session(id)?;
    let Ok(read) = reading.join() else { bail!("the reader has failed") };
    let lost = read?;
    table.print(&format!("an event of 28 bytes, {BURSTS} bursts of {BURST}; medians and slowest bursts"));
    bar("a disabled event takes at most 2 ns", disabled <= MAX_DISABLED, &format!("{disabled:.2} ns"));
    bar("an enabled one at most 100 ns", enabled <= MAX_ENABLED, &format!("{enabled:.1} ns"));
    bar("none was lost", lost == 0, &lost.to_string());
    server.shut_down();
    output::machine();
    Ok(())
}

/// Returns the processor time of this thread, which is independent of other load.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Returns the cost of the loop itself, which is not part of the cost of an event.
fn empty(event: &Event) -> Vec<f64> {
    let one = || {
        let start = thread_time();
        for _ in 0..DISABLED_BURST {
            black_box(event);
        }
        thread_time().saturating_sub(start).as_secs_f64() * 1e9 / f64::from(DISABLED_BURST)
    };
    (0..5).map(|_| one()).collect()
}

/// Returns nanoseconds per event for each burst; all threads write concurrently.
fn bursts(event: &Event, stack: &[u64], threads: usize) -> Vec<f64> {
    let mut payload = Writer::new();
    payload.u32(7).utf16z("ten letters");
    let payload = payload.into_bytes();
    let one = |times: &mut Vec<f64>| {
        let (count, size) = if event.is_enabled() { (BURSTS, BURST) } else { (5, DISABLED_BURST) };
        for _ in 0..count {
            let start = thread_time();
            for _ in 0..size {
                if stack.is_empty() {
                    black_box(event).write_here(&payload);
                } else {
                    black_box(event).write(&EventData { stack, payload: &payload, ..EventData::default() });
                }
            }
            times.push(thread_time().saturating_sub(start).as_secs_f64() * 1e9 / f64::from(size));
            if event.is_enabled() {
                thread::sleep(PAUSE);
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut times = Vec::new();
                    one(&mut times);
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}
