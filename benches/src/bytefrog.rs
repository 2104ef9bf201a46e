//! Throughput of HQ for Bytefrog agents: events per second of processor time on one core, from bytes to the call tree.
//!
//! - `decode`: only bytes to messages.
//! - `tree`: also order, call tree, counts and exceptions, as in live use.
//!
//! The recordings of version 1 and of version 4, which adds line visits, are repeated with continuing sequence ids and
//! times; F1 has the events of version 1 in batches. The original HQ handles 0.15 to 0.36 million events/s (measured
//! with the original programs). For counting instructions there is a stream that needs no recording ([`make`],
//! [`take`]).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use nix::time::ClockId;
use runtap_bytefrog::{Counters, Limits, Model};
use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Rows};
use runtap_bytefrog_proto::{
    Decoder, Dialect, Exit, JavaStr, Limits as Wire, Message, Stamp, Stream, encode, to_bytes,
};
use runtap_testkit::shared_data;

use crate::output::line;

/// Maximum throughput of the original HQ, in millions of events per second.
const ORIGINAL: f64 = 0.36;
/// Target for the ratio of runtap's throughput to [`ORIGINAL`].
const BAR: f64 = 20.0;
/// Events per run.
const EVENTS: u64 = 20_000_000;
/// Bytes per read.
const CHUNK: usize = 256 << 10;

/// Messages with their offsets.
type Messages = Vec<(u64, Vec<u8>)>;

/// With `events`: runs that many events of each kind, and prints the memory in use.
pub(crate) fn run(events: Option<u64>) -> Result<()> {
    let recordings =
        ["v1_basic", "v4_basic"].map(|name| shared_data(format!("bytefrog/{name}.data0.a2h.bin")));
    let [v1, v4] = match recordings {
        [Ok(v1), Ok(v4)] => [v1, v4],
        [Err(skip), _] | [_, Err(skip)] => {
            line(skip);
            return Ok(());
        }
    };
    let (v1, v4) = (first(&v1, Dialect::V1)?, first(&v4, Dialect::V4)?);
    let ours = batches(&v1)?;
    let rows = [
        ("version 1, the recording", Dialect::V1, &v1),
        ("version 4, with lines", Dialect::V4, &v4),
        ("F1, as version 1", Dialect::F1, &ours),
    ];
    if let Some(events) = events {
        for (_, dialect, round) in rows {
            long(round, dialect, events / round.counts.all())?;
        }
        return Ok(());
    }
    line(format_args!("{:<28} {:>10} {:>14}", "Mevents/s, one core", "decode", "tree"));
    for (name, dialect, round) in rows {
        let rounds = EVENTS / round.counts.all();
        let stream = repeated(round, dialect, rounds)?;
        let decode = (0..3).map(|_| decode(&stream, dialect)).try_fold(0.0, best)?;
        let tree = (0..3).map(|_| tree(&stream, dialect, round.counts, rounds)).try_fold(0.0, best)?;
        let told = if tree < BAR { format!(", below the bar of {BAR}") } else { String::new() };
        line(format_args!(
            "{name:<28} {decode:>10.1} {tree:>14.1}  ({:.0} x the original HQ{told})",
            tree / ORIGINAL
        ));
    }
    Ok(())
}

/// The number of events of each kind in a recording. Equal for every row of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    entries: u64,
    exits: u64,
    exceptions: u64,
    bubbles: u64,
    visits: u64,
}

impl Counts {
    fn all(self) -> u64 {
        self.entries + self.exits + self.exceptions + self.bubbles + self.visits
    }

    fn add(&mut self, message: &Message<'_>) {
        match message {
            Message::Entry { .. } => self.entries += 1,
            // In versions 2 to 4, a flag marks calls that were ended by an exception.
            Message::Exit { exit: Exit::Thrown(1..), .. } => self.bubbles += 1,
            Message::Exit { .. } => self.exits += 1,
            Message::Exception { .. } => self.exceptions += 1,
            Message::Bubble { .. } => self.bubbles += 1,
            Message::Visit { .. } => self.visits += 1,
            _ => {}
        }
    }

    fn of(counters: &Counters) -> Self {
        Self {
            entries: counters.entries,
            exits: counters.exits,
            exceptions: counters.exceptions,
            bubbles: counters.bubbles,
            visits: counters.visits,
        }
    }

    fn times(self, rounds: u64) -> Self {
        Self {
            entries: self.entries * rounds,
            exits: self.exits * rounds,
            exceptions: self.exceptions * rounds,
            bubbles: self.bubbles * rounds,
            visits: self.visits * rounds,
        }
    }
}

/// The events and names of a recording without its hello, each as its own message.
struct Round {
    messages: Messages,
    counts: Counts,
}

fn best(so_far: f64, next: Result<f64>) -> Result<f64> {
    next.map(|next| so_far.max(next))
}

fn first(recording: &[u8], dialect: Dialect) -> Result<Round> {
    let mut round = Round { messages: Vec::new(), counts: Counts::default() };
    let mut failed = None;
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
    decoder.feed(recording, |offset, message| {
        if !matches!(message, Message::DataHello { .. }) {
            let mut bytes = Vec::new();
            if let Err(error) = encode(&message, dialect, &mut bytes) {
                failed = Some(error);
            }
            round.counts.add(&message);
            round.messages.push((offset, bytes));
        }
        None
    })?;
    failed.map_or(Ok(round), |error| Err(error.into()))
}

fn stamp(message: &Message<'_>) -> Option<Stamp> {
    match *message {
        Message::Entry { at, .. }
        | Message::Exit { at, .. }
        | Message::Exception { at, .. }
        | Message::Bubble { at, .. }
        | Message::Visit { at, .. } => Some(at),
        _ => None,
    }
}

/// Sequence ids are set in each round.
fn batch(thread: u32, rows: &[[u8; 8]]) -> Message<'_> {
    Message::Batch(Batch { thread, sequence: 0, base: 0, rows: Rows::new(rows) })
}

/// Converts events to F1: a batch for each run of entries and exits of a thread, and separate messages for exceptions.
fn batches(once: &Round) -> Result<Round> {
    let stream = Stream::data_from_agent(Some(Dialect::V1));
    let mut events = BTreeMap::new();
    let mut out = Vec::new();
    for (_, bytes) in &once.messages {
        let (message, _) = runtap_bytefrog_proto::decode(bytes, 0, stream, Wire::default())?;
        match stamp(&message) {
            Some(at) => drop(events.insert(at.sequence, (at, bytes))),
            None => out.push((0, to_bytes(&message, Dialect::F1)?)),
        }
    }
    let mut waiting: BTreeMap<u32, Vec<[u8; 8]>> = BTreeMap::new();
    let mut send = |message: &Message<'_>| -> Result<()> {
        out.push((0, to_bytes(message, Dialect::F1)?));
        Ok(())
    };
    for (at, bytes) in events.values() {
        let (message, _) = runtap_bytefrog_proto::decode(bytes, 0, stream, Wire::default())?;
        let delta = u32::try_from(at.time)?.saturating_mul(1_000_000);
        let rows = waiting.entry(at.thread).or_default();
        let stamp = Stamp { time: delta.into(), sequence: 0, thread: at.thread };
        let (row, alone) = match message {
            Message::Entry { method, .. } => {
                (Some(BatchEvent { kind: BatchKind::Entry, method, delta }), None)
            }
            Message::Exit { method, .. } => (Some(BatchEvent { kind: BatchKind::Exit, method, delta }), None),
            Message::Exception { method, exception, line, .. } => {
                (None, Some(Message::Exception { at: stamp, method, exception, line }))
            }
            Message::Bubble { method, exception, .. } => {
                (None, Some(Message::Bubble { at: stamp, method, exception }))
            }
            _ => continue,
        };
        rows.extend(row.map(BatchEvent::to_bytes));
        if !rows.is_empty() && (rows.len() == 1000 || alone.is_some()) {
            send(&batch(at.thread, rows))?;
            rows.clear();
        }
        if let Some(alone) = alone {
            send(&alone)?;
        }
    }
    for (thread, rows) in waiting.iter().filter(|(_, rows)| !rows.is_empty()) {
        send(&batch(*thread, rows))?;
    }
    Ok(Round { messages: out, counts: once.counts })
}

/// Repeated rounds with continuing ids. A round of versions 1 to 4 uses all ids from 0; in F1 each thread has its own
/// ids.
struct Rounds<'a> {
    round: &'a Round,
    dialect: Dialect,
    number: u64,
    next: BTreeMap<u32, u64>,
}

impl<'a> Rounds<'a> {
    fn new(round: &'a Round, dialect: Dialect) -> Self {
        Self { round, dialect, number: 0, next: BTreeMap::new() }
    }

    /// Appends the next round. Only the first round includes names.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let stream = Stream::data_from_agent(Some(self.dialect));
        let each = self.round.counts.all();
        let mut numbered = |thread: u32, count: u64| {
            let next = self.next.entry(thread).or_default();
            *next += count;
            *next - count
        };
        for (_, bytes) in &self.round.messages {
            let (mut message, _) = runtap_bytefrog_proto::decode(bytes, 0, stream, Wire::default())?;
            match &mut message {
                Message::Exception { at, .. } | Message::Bubble { at, .. } if self.dialect == Dialect::F1 => {
                    at.sequence = numbered(at.thread, 1);
                    at.time += self.number * 1_000_000_000;
                }
                Message::Entry { at, .. }
                | Message::Exit { at, .. }
                | Message::Exception { at, .. }
                | Message::Bubble { at, .. }
                | Message::Visit { at, .. } => {
                    at.sequence = (at.sequence + self.number * each) & 0xffff_ffff;
                    at.time = (at.time + self.number) & 0xffff_ffff;
                }
                Message::Batch(batch) => {
                    batch.sequence = numbered(batch.thread, batch.rows.len() as u64);
                    batch.base = self.number * 1_000_000_000;
                }
                _ if self.number > 0 => continue,
                _ => {}
            }
            encode(&message, self.dialect, out)?;
        }
        self.number += 1;
        Ok(())
    }
}

fn repeated(round: &Round, dialect: Dialect, rounds: u64) -> Result<Vec<u8>> {
    let (mut all, mut out) = (Rounds::new(round, dialect), Vec::new());
    for _ in 0..rounds {
        all.write(&mut out)?;
    }
    Ok(out)
}

/// Feeds `rounds` rounds, generated on the fly, and prints the memory of the process at each tenth of them: it should
/// not grow.
fn long(round: &Round, dialect: Dialect, rounds: u64) -> Result<()> {
    let (mut all, mut out) = (Rounds::new(round, dialect), Vec::new());
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
    let mut model = Model::new(dialect, &Limits::default(), 1_000_000_000);
    for number in 1..=rounds {
        out.clear();
        all.write(&mut out)?;
        decoder.feed(&out, |_, message| {
            model.take(&message);
            None
        })?;
        if number.is_multiple_of((rounds / 10).max(1)) {
            let seen = Counts::of(&model.counters()).all();
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let memory = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
            line(format_args!("version {dialect}: {seen:>13} events, {}", memory.replace('\t', " ")));
        }
    }
    Ok(())
}

/// Returns the processor time of this thread, which is independent of other load.
fn now() -> Result<Duration> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}

/// Returns millions of events per second.
fn speed(events: u64, start: Duration) -> Result<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a measure")]
    let events = events as f64;
    Ok(events / now()?.saturating_sub(start).as_secs_f64() / 1e6)
}

fn decode(stream: &[u8], dialect: Dialect) -> Result<f64> {
    let start = now()?;
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
    let (mut events, mut sum) = (0, 0u64);
    for chunk in stream.chunks(CHUNK) {
        decoder.feed(chunk, |_, message| {
            if let Message::Batch(batch) = message {
                events += batch.rows.len() as u64;
                sum = batch.events().fold(sum, |sum, event| {
                    sum.wrapping_add(u64::from(event.method) ^ u64::from(event.delta))
                });
            } else if let Some(at) = stamp(&message) {
                events += 1;
                sum = sum.wrapping_add(at.sequence ^ at.time);
            }
            None
        })?;
    }
    black_box(sum);
    speed(events, start)
}

fn tree(stream: &[u8], dialect: Dialect, counts: Counts, rounds: u64) -> Result<f64> {
    let start = now()?;
    let model = played(stream, dialect)?;
    let expected = counts.times(rounds);
    let speed = speed(expected.all(), start)?;
    let counters = model.counters();
    if Counts::of(&counters) != expected || counters.missing + counters.repeated + counters.orphans > 0 {
        return Err(anyhow!("{expected:?} were sent, and these were seen: {counters:?}"));
    }
    model.report().methods.first().context("no method was seen")?;
    Ok(speed)
}

/// Decodes a data connection as HQ does.
fn played(stream: &[u8], dialect: Dialect) -> Result<Model> {
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
    let mut model = Model::new(dialect, &Limits::default(), 1_000_000_000);
    for chunk in stream.chunks(CHUNK) {
        decoder.feed(chunk, |_, message| {
            model.take(&message);
            None
        })?;
    }
    model.finish();
    Ok(model)
}

/// Makes a stream of version 1 with about `events` events of a synthetic program: a recursion, loops over a few
/// methods, and occasional exceptions, in three alternating threads.
pub(crate) fn make(events: u64) -> Result<Vec<u8>> {
    let mut out = to_bytes(&Message::DataHello { run: 0 }, Dialect::V1)?;
    for method in 0..20 {
        let signature = format!("shop/Cart.method{method};1;(I)V");
        let signature = JavaStr::from_bytes(signature.as_bytes());
        encode(&Message::MapMethod { method, signature }, Dialect::V1, &mut out)?;
    }
    let name = JavaStr::from_bytes(b"java.lang.IllegalStateException");
    encode(&Message::MapException { exception: 0, name }, Dialect::V1, &mut out)?;
    let mut made = Made { out, sequence: 0, thread: 0 };
    while made.sequence < events {
        made.thread = (made.thread + 1) % 3;
        made.recursion(8)?;
        for method in 2..20 {
            made.say(true, method)?;
            made.say(false, method)?;
        }
        made.thrown()?;
    }
    Ok(made.out)
}

struct Made {
    out: Vec<u8>,
    sequence: u64,
    thread: u32,
}

impl Made {
    fn at(&mut self) -> Stamp {
        self.sequence += 1;
        Stamp { time: self.sequence >> 10, sequence: self.sequence - 1, thread: self.thread }
    }

    fn say(&mut self, entry: bool, method: u32) -> Result<()> {
        let at = self.at();
        let message = if entry {
            Message::Entry { at, method }
        } else {
            Message::Exit { at, method, exit: Exit::Line(1) }
        };
        Ok(encode(&message, Dialect::V1, &mut self.out)?)
    }

    fn recursion(&mut self, depth: u32) -> Result<()> {
        self.say(true, 1)?;
        if depth > 1 {
            self.recursion(depth - 1)?;
            self.recursion(depth - 2)?;
        }
        self.say(false, 1)
    }

    fn thrown(&mut self) -> Result<()> {
        self.say(true, 0)?;
        let at = self.at();
        encode(&Message::Exception { at, method: 0, exception: 0, line: 7 }, Dialect::V1, &mut self.out)?;
        let at = self.at();
        Ok(encode(&Message::Bubble { at, method: 0, exception: 0 }, Dialect::V1, &mut self.out)?)
    }
}

/// Processes such a stream as HQ does and returns the number of events.
pub(crate) fn take(stream: &[u8]) -> Result<u64> {
    let counters = played(stream, Dialect::V1)?.counters();
    if counters.missing + counters.repeated + counters.orphans > 0 {
        return Err(anyhow!("not as it was made: {counters:?}"));
    }
    Ok(Counts::of(&counters).all())
}
