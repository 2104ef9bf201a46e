//! HQ of Bytefrog agents: events a second of processor time on one core, from bytes to the call tree.
//!
//! - `decode`: bytes to messages, and no more.
//! - `tree`: the same with order, call tree, counts and exceptions, as HQ does it live.
//!
//! The recording of version 1 is repeated with sequence ids and times that go on; F1 has the same events as batches. The
//! original HQ takes 0.15 to 0.36 million events/s (measured with the original programs).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use nix::time::ClockId;
use runtap_bytefrog::{Limits, Model};
use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Rows};
use runtap_bytefrog_proto::{Decoder, Dialect, Limits as Wire, Message, Stamp, Stream, encode};
use runtap_testkit::shared_data;

use crate::output::line;

/// Millions of events a second that the original HQ takes at best.
const ORIGINAL: f64 = 0.36;
/// What ours should take.
const BAR: f64 = 20.0;
/// Events of a run.
const EVENTS: u64 = 20_000_000;
/// Bytes of a read.
const CHUNK: usize = 256 << 10;

/// Messages with their offsets.
type Messages = Vec<(u64, Vec<u8>)>;

/// With a number: so many events of each kind, and the memory that they take.
pub(crate) fn run(events: Option<u64>) -> Result<()> {
    let recording = match shared_data("bytefrog/v1_basic.data0.a2h.bin") {
        Ok(recording) => recording,
        Err(skip) => {
            line(skip);
            return Ok(());
        }
    };
    let (once, each) = first(&recording)?;
    let ours = batches(&once)?;
    if let Some(events) = events {
        long(&once, Dialect::V1, events / each)?;
        return long(&ours, Dialect::F1, events / each);
    }
    line(format_args!("{:<28} {:>10} {:>14}", "Mevents/s, one core", "decode", "tree"));
    for (name, dialect, round) in [
        ("version 1, the recording", Dialect::V1, once.as_slice()),
        ("F1, the same", Dialect::F1, ours.as_slice()),
    ] {
        let stream = repeated(round, dialect, EVENTS / each)?;
        let decode = (0..3).map(|_| decode(&stream, dialect)).try_fold(0.0, best)?;
        let tree = (0..3).map(|_| tree(&stream, dialect, each)).try_fold(0.0, best)?;
        let told = if tree < BAR { format!(", below the bar of {BAR}") } else { String::new() };
        line(format_args!(
            "{name:<28} {decode:>10.1} {tree:>14.1}  ({:.0} x the original HQ{told})",
            tree / ORIGINAL
        ));
    }
    Ok(())
}

fn best(so_far: f64, next: Result<f64>) -> Result<f64> {
    next.map(|next| so_far.max(next))
}

/// The events and names of a recording without its hello, each as its message; and how many events there are.
fn first(recording: &[u8]) -> Result<(Messages, u64)> {
    let mut all = Vec::new();
    let mut events = 0;
    let mut failed = None;
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(Dialect::V1)));
    decoder.feed(recording, |offset, message| {
        if !matches!(message, Message::DataHello { .. }) {
            let mut bytes = Vec::new();
            if let Err(error) = encode(&message, Dialect::V1, &mut bytes) {
                failed = Some(error);
            }
            events += u64::from(stamp(&message).is_some());
            all.push((offset, bytes));
        }
        None
    })?;
    failed.map_or(Ok((all, events)), |error| Err(error.into()))
}

fn stamp(message: &Message<'_>) -> Option<Stamp> {
    match *message {
        Message::Entry { at, .. }
        | Message::Exit { at, .. }
        | Message::Exception { at, .. }
        | Message::Bubble { at, .. } => Some(at),
        _ => None,
    }
}

/// The same events as F1 has them: in order, a batch for each run of entries and exits of a thread.
fn batches(once: &[(u64, Vec<u8>)]) -> Result<Messages> {
    let mut events = BTreeMap::new();
    let mut out = Vec::new();
    for (_, bytes) in once {
        let stream = Stream::data_from_agent(Some(Dialect::V1));
        let (message, _) = runtap_bytefrog_proto::decode(bytes, 0, stream, Wire::default())?;
        match stamp(&message) {
            Some(at) => drop(events.insert(at.sequence, (at, bytes))),
            None => out.push((0, runtap_bytefrog_proto::to_bytes(&message, Dialect::F1)?)),
        }
    }
    let mut waiting: BTreeMap<u32, Vec<[u8; 8]>> = BTreeMap::new();
    let mut next: BTreeMap<u32, u64> = BTreeMap::new();
    let mut send = |thread: u32, rows: &mut Vec<[u8; 8]>, next: &mut BTreeMap<u32, u64>| -> Result<()> {
        let sequence = next.entry(thread).or_default();
        let batch = Batch { thread, sequence: *sequence, base: 0, rows: Rows::new(rows) };
        out.push((0, runtap_bytefrog_proto::to_bytes(&Message::Batch(batch), Dialect::F1)?));
        *sequence += rows.len() as u64;
        rows.clear();
        Ok(())
    };
    for (at, bytes) in events.values() {
        let stream = Stream::data_from_agent(Some(Dialect::V1));
        let (message, _) = runtap_bytefrog_proto::decode(bytes, 0, stream, Wire::default())?;
        let delta = u32::try_from(at.time)?.saturating_mul(1_000_000);
        let rows = waiting.entry(at.thread).or_default();
        let (kind, method) = match message {
            Message::Entry { method, .. } => (BatchKind::Entry, method),
            // Exceptions as messages of their own would be measured beside the batches: as ends, the events are as many.
            Message::Exit { method, .. }
            | Message::Bubble { method, .. }
            | Message::Exception { method, .. } => (BatchKind::Exit, method),
            _ => continue,
        };
        rows.push(BatchEvent { kind, method, delta }.to_bytes());
        if rows.len() == 1000 {
            send(at.thread, rows, &mut next)?;
        }
    }
    for (thread, rows) in &mut waiting {
        send(*thread, rows, &mut next)?;
    }
    Ok(out)
}

/// One round after the other, with ids that go on. A round of version 1 has all ids from 0.
struct Rounds<'a> {
    round: &'a [(u64, Vec<u8>)],
    dialect: Dialect,
    /// Events of a round of version 1.
    each: u64,
    number: u64,
    next: BTreeMap<u32, u64>,
}

impl<'a> Rounds<'a> {
    fn new(round: &'a [(u64, Vec<u8>)], dialect: Dialect) -> Self {
        let event = |(_, bytes): &&(u64, Vec<u8>)| matches!(bytes.first(), Some(0x14..=0x17));
        let each = round.iter().filter(event).count() as u64;
        Self { round, dialect, each, number: 0, next: BTreeMap::new() }
    }

    /// Appends the next round. Names come with the first one only.
    fn write(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let stream = Stream::data_from_agent(Some(self.dialect));
        for (_, bytes) in self.round {
            let (mut message, _) = runtap_bytefrog_proto::decode(bytes, 0, stream, Wire::default())?;
            match &mut message {
                Message::Entry { at, .. }
                | Message::Exit { at, .. }
                | Message::Exception { at, .. }
                | Message::Bubble { at, .. } => {
                    at.sequence = (at.sequence + self.number * self.each) & 0xffff_ffff;
                    at.time = (at.time + self.number) & 0xffff_ffff;
                }
                Message::Batch(batch) => {
                    let next = self.next.entry(batch.thread).or_default();
                    batch.sequence = *next;
                    batch.base = self.number * 1_000_000_000;
                    *next += batch.rows.len() as u64;
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

fn repeated(round: &[(u64, Vec<u8>)], dialect: Dialect, rounds: u64) -> Result<Vec<u8>> {
    let (mut all, mut out) = (Rounds::new(round, dialect), Vec::new());
    for _ in 0..rounds {
        all.write(&mut out)?;
    }
    Ok(out)
}

/// So many events, made as they are needed, and the memory of the process at each tenth of them: it should not grow.
fn long(round: &[(u64, Vec<u8>)], dialect: Dialect, rounds: u64) -> Result<()> {
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
            let counters = model.report().counters;
            let seen = counters.entries + counters.exits + counters.bubbles + counters.exceptions;
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let memory = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
            line(format_args!("version {dialect}: {seen:>13} events, {}", memory.replace('\t', " ")));
        }
    }
    Ok(())
}

/// Processor time of this thread: what else the machine does is no part of it.
fn now() -> Result<Duration> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}

/// Millions of events a second.
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

fn tree(stream: &[u8], dialect: Dialect, each: u64) -> Result<f64> {
    let start = now()?;
    let mut decoder = Decoder::new(Stream::data_from_agent(Some(dialect)));
    let mut model = Model::new(dialect, &Limits::default(), 1_000_000_000);
    for chunk in stream.chunks(CHUNK) {
        decoder.feed(chunk, |_, message| {
            model.take(&message);
            None
        })?;
    }
    model.finish();
    let speed = speed(EVENTS / each * each, start)?;
    let report = model.report();
    let counters = report.counters;
    let seen = counters.entries + counters.exits + counters.bubbles + counters.exceptions;
    if seen != EVENTS / each * each || counters.missing + counters.repeated > 0 {
        return Err(anyhow!("{seen} events were seen: {counters:?}"));
    }
    report.methods.first().context("no method was seen")?;
    Ok(speed)
}
