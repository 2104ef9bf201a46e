//! What the program does, as bytes of a version of the protocol.
//!
//! Owns: [`Teller`], with sequence ids and the names that were told, and [`Truth`], what that comes to.

use std::collections::BTreeMap;

use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Drop, DropReason, Rows};
use runtap_bytefrog_proto::{Dialect, EncodeError, Exit, JavaString, Message, Stamp, encode};

use super::shop::{Act, EXCEPTIONS, Event, METHODS, THREADS};

/// What was told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Truth {
    entries: u64,
    exits: u64,
    exceptions: u64,
    bubbles: u64,
    markers: u64,
    /// Calls, by method.
    methods: BTreeMap<&'static str, u64>,
    /// Calls that were not told.
    pub(super) untold: u64,
}

impl Truth {
    /// One line of JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::json!({
            "entries": self.entries,
            "exits": self.exits,
            "exceptions": self.exceptions,
            "bubbles": self.bubbles,
            "markers": self.markers,
            "methods": self.methods,
            "untold": self.untold,
        })
        .to_string()
    }

    /// Calls of something that nobody hears of.
    pub(super) fn unheard(&mut self, events: &[Event]) {
        let entries = events.iter().filter(|event| matches!(event.act, Act::Enter(_))).count();
        self.untold += entries as u64;
    }
}

/// Makes bytes for data connections.
#[derive(Debug)]
pub(super) struct Teller {
    dialect: Dialect,
    /// The next id: versions 1 to 4 have one for all.
    next: u64,
    /// F1 has one for each thread.
    threads: [u64; THREADS.len()],
    /// Names are told once, when they are needed.
    told: (Vec<bool>, Vec<bool>, Vec<bool>),
    /// Events of a batch that is not whole yet: whose, from which id, since when.
    batch: Option<(u32, u64, u64, Vec<[u8; 8]>)>,
    pub(super) truth: Truth,
}

/// Bytes for each of the data connections.
pub(super) type Outgoing = Vec<Vec<u8>>;

impl Teller {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            next: 0,
            threads: [0; THREADS.len()],
            told: (vec![false; METHODS.len()], vec![false; EXCEPTIONS.len()], vec![false; THREADS.len()]),
            batch: None,
            truth: Truth::default(),
        }
    }

    /// The id of the next event, for a data break.
    pub(super) fn next(&self) -> u32 {
        u32::try_from(self.next & 0xffff_ffff).unwrap_or(0)
    }

    /// Tells events. A thread's always go over the same connection; there is at least one.
    pub(super) fn tell(&mut self, events: &[Event], connections: usize) -> Result<Outgoing, EncodeError> {
        let mut out = vec![Vec::new(); connections.max(1)];
        for event in events {
            self.names(event, &mut out)?;
            self.one(event, &mut out)?;
        }
        self.flush(&mut out)?;
        Ok(out)
    }

    /// F1: something was not told of any thread since a time.
    pub(super) fn dropped(&self, time: u64, connections: usize) -> Result<Outgoing, EncodeError> {
        let mut out = vec![Vec::new(); connections.max(1)];
        if self.dialect != Dialect::F1 {
            return Ok(out);
        }
        for (thread, sequence) in (0..).zip(self.threads) {
            let drop = Drop { thread, sequence, time, count: Drop::UNKNOWN, reason: DropReason::SUSPENDED };
            self.say(thread, &Message::Drop(drop), &mut out)?;
        }
        Ok(out)
    }

    fn say(&self, thread: u32, message: &Message<'_>, out: &mut Outgoing) -> Result<(), EncodeError> {
        let connection = usize::try_from(thread).unwrap_or(0) % out.len().max(1);
        match out.get_mut(connection) {
            Some(out) => encode(message, self.dialect, out),
            None => Ok(()),
        }
    }

    /// Time in the units of the version.
    fn time(&self, event: &Event) -> u64 {
        event.time / self.dialect.nanoseconds()
    }

    /// Versions 2 to 4 have no message of an original agent for threads, exceptions and markers.
    fn is_terse(&self) -> bool {
        matches!(self.dialect, Dialect::V2 | Dialect::V3 | Dialect::V4)
    }

    fn names(&mut self, event: &Event, out: &mut Outgoing) -> Result<(), EncodeError> {
        let first = |told: &mut Vec<bool>, id: u32| {
            let told = usize::try_from(id).ok().and_then(|at| told.get_mut(at));
            told.is_some_and(|told| !std::mem::replace(told, true))
        };
        let name = |names: &[&str], id: u32| {
            JavaString::from(
                usize::try_from(id).ok().and_then(|at| names.get(at)).copied().unwrap_or_default(),
            )
        };
        let (method, exception) = match event.act {
            Act::Enter(method) | Act::Leave(method) => (Some(method), None),
            Act::Throw(method, exception, _) | Act::Bubble(method, exception) => {
                (Some(method), Some(exception))
            }
            Act::Mark(..) => (None, None),
        };
        if let Some(method) = method.filter(|method| first(&mut self.told.0, *method)) {
            let signature = name(&METHODS, method);
            self.say(event.thread, &Message::MapMethod { method, signature: signature.as_java_str() }, out)?;
        }
        if self.is_terse() {
            return Ok(());
        }
        if let Some(exception) = exception.filter(|exception| first(&mut self.told.1, *exception)) {
            let name = name(&EXCEPTIONS, exception);
            self.say(event.thread, &Message::MapException { exception, name: name.as_java_str() }, out)?;
        }
        if first(&mut self.told.2, event.thread) {
            let (time, name) = (self.time(event), name(&THREADS, event.thread));
            let message = Message::MapThreadName { thread: event.thread, time, name: name.as_java_str() };
            self.say(event.thread, &message, out)?;
        }
        Ok(())
    }

    /// The place of the next event.
    fn stamp(&mut self, event: &Event) -> Stamp {
        let sequence = match usize::try_from(event.thread).ok().and_then(|at| self.threads.get_mut(at)) {
            Some(sequence) if self.dialect == Dialect::F1 => sequence,
            _ => &mut self.next,
        };
        *sequence += 1;
        Stamp { time: event.time / self.dialect.nanoseconds(), sequence: *sequence - 1, thread: event.thread }
    }

    fn one(&mut self, event: &Event, out: &mut Outgoing) -> Result<(), EncodeError> {
        if self.is_terse() && matches!(event.act, Act::Throw(..) | Act::Mark(..)) {
            return Ok(());
        }
        self.count(&event.act);
        if self.dialect == Dialect::F1
            && let Act::Enter(method) | Act::Leave(method) = event.act
        {
            return self.batched(event, method, out);
        }
        self.flush(out)?;
        let at = self.stamp(event);
        match &event.act {
            Act::Enter(method) => self.say(event.thread, &Message::Entry { at, method: *method }, out),
            Act::Leave(method) => {
                let exit = if self.is_terse() { Exit::Thrown(0) } else { Exit::Line(30) };
                self.say(event.thread, &Message::Exit { at, method: *method, exit }, out)
            }
            Act::Throw(method, exception, line) => {
                let message = Message::Exception { at, method: *method, exception: *exception, line: *line };
                self.say(event.thread, &message, out)
            }
            Act::Bubble(method, _) if self.is_terse() => {
                self.say(event.thread, &Message::Exit { at, method: *method, exit: Exit::Thrown(1) }, out)
            }
            Act::Bubble(method, exception) => {
                let message = Message::Bubble { at, method: *method, exception: *exception };
                self.say(event.thread, &message, out)
            }
            Act::Mark(key, value) => {
                let (key, value) = (JavaString::from(*key), JavaString::from(value.as_str()));
                let message = Message::Marker {
                    time: at.time,
                    sequence: at.sequence,
                    thread: (self.dialect == Dialect::F1).then_some(at.thread),
                    key: key.as_java_str(),
                    value: value.as_java_str(),
                };
                self.say(event.thread, &message, out)
            }
        }
    }

    fn count(&mut self, act: &Act) {
        let is_terse = self.is_terse();
        let truth = &mut self.truth;
        match act {
            // An exit with a flag.
            Act::Bubble(..) if is_terse => truth.exits += 1,
            Act::Enter(method) => {
                truth.entries += 1;
                if let Some(name) = usize::try_from(*method).ok().and_then(|at| METHODS.get(at)) {
                    *truth.methods.entry(name).or_default() += 1;
                }
            }
            Act::Leave(_) => truth.exits += 1,
            Act::Throw(..) => truth.exceptions += 1,
            Act::Bubble(..) => truth.bubbles += 1,
            Act::Mark(..) => truth.markers += 1,
        }
    }

    fn batched(&mut self, event: &Event, method: u32, out: &mut Outgoing) -> Result<(), EncodeError> {
        let fits = self.batch.as_ref().is_some_and(|(thread, _, base, _)| {
            *thread == event.thread && u32::try_from(event.time - base).is_ok()
        });
        if !fits {
            self.flush(out)?;
        }
        let at = self.stamp(event);
        let (_, _, base, rows) =
            self.batch.get_or_insert_with(|| (event.thread, at.sequence, event.time, Vec::new()));
        let delta = u32::try_from(event.time - *base).unwrap_or(u32::MAX);
        let kind = if matches!(event.act, Act::Enter(_)) { BatchKind::Entry } else { BatchKind::Exit };
        rows.push(BatchEvent { kind, method, delta }.to_bytes());
        Ok(())
    }

    fn flush(&mut self, out: &mut Outgoing) -> Result<(), EncodeError> {
        let Some((thread, sequence, base, rows)) = self.batch.take() else { return Ok(()) };
        let batch = Batch { thread, sequence, base, rows: Rows::new(&rows) };
        self.say(thread, &Message::Batch(batch), out)
    }
}
