//! Encodes the events of the program in a version of the protocol.
//!
//! [`Encoder`] keeps the sequence ids and the names already sent, and [`Truth`] counts what was sent.

use std::collections::BTreeMap;

use runtap_bytefrog_proto::f1::{Batch, BatchEvent, BatchKind, Drop, DropReason, Rows};
use runtap_bytefrog_proto::{Dialect, EncodeError, Exit, JavaString, Message, Stamp, encode};

use super::shop::{EXCEPTIONS, Event, METHODS, ShopEvent, THREADS};

/// The numbers of messages sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Truth {
    entries: u64,
    exits: u64,
    exceptions: u64,
    bubbles: u64,
    markers: u64,
    /// The number of calls by method.
    methods: BTreeMap<&'static str, u64>,
    /// The number of calls that were not sent.
    pub(super) untold: u64,
}

impl Truth {
    /// Formats the numbers as one line of JSON.
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

    /// Counts the calls in events that are not sent.
    pub(super) fn unheard(&mut self, events: &[Event]) {
        let entries = events.iter().filter(|event| matches!(event.act, ShopEvent::Enter(_))).count();
        self.untold += entries as u64;
    }
}

/// Encodes events for data connections.
#[derive(Debug)]
pub(super) struct Encoder {
    dialect: Dialect,
    /// The next id. Versions 1 to 4 have one sequence for all threads.
    next: u64,
    /// F1 has one sequence per thread.
    threads: [u64; THREADS.len()],
    /// Whether the names of methods, exceptions and threads were sent. Each is sent once.
    told: (Vec<bool>, Vec<bool>, Vec<bool>),
    /// The events of an incomplete batch: thread, first id, base time.
    batch: Option<(u32, u64, u64, Vec<[u8; 8]>)>,
    pub(super) truth: Truth,
}

/// The bytes for each data connection.
pub(super) type Outgoing = Vec<Vec<u8>>;

impl Encoder {
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

    /// Returns the id of the next event, for a data break.
    pub(super) fn next(&self) -> u32 {
        u32::try_from(self.next & 0xffff_ffff).unwrap_or(0)
    }

    /// Encodes events. All events of a thread use one connection; there is at least one.
    pub(super) fn encode(&mut self, events: &[Event], connections: usize) -> Result<Outgoing, EncodeError> {
        let mut out = vec![Vec::new(); connections.max(1)];
        for event in events {
            self.names(event, &mut out)?;
            self.one(event, &mut out)?;
        }
        self.flush(&mut out)?;
        Ok(out)
    }

    /// For F1, encodes that an unknown number of events of each thread was dropped since a time.
    pub(super) fn dropped(&self, time: u64, connections: usize) -> Result<Outgoing, EncodeError> {
        let mut out = vec![Vec::new(); connections.max(1)];
        if self.dialect != Dialect::F1 {
            return Ok(out);
        }
        for (thread, sequence) in (0..).zip(self.threads) {
            let drop = Drop { thread, sequence, time, count: Drop::UNKNOWN, reason: DropReason::SUSPENDED };
            self.encode_message(thread, &Message::Drop(drop), &mut out)?;
        }
        Ok(out)
    }

    fn encode_message(
        &self,
        thread: u32,
        message: &Message<'_>,
        out: &mut Outgoing,
    ) -> Result<(), EncodeError> {
        let connection = usize::try_from(thread).unwrap_or(0) % out.len().max(1);
        match out.get_mut(connection) {
            Some(out) => encode(message, self.dialect, out),
            None => Ok(()),
        }
    }

    /// Returns the time of an event in the units of the version.
    fn time(&self, event: &Event) -> u64 {
        event.time / self.dialect.nanoseconds()
    }

    /// In versions 2 to 4, the original agent has no messages for threads, exceptions and markers.
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
            ShopEvent::Enter(method) | ShopEvent::Leave(method) => (Some(method), None),
            ShopEvent::Throw(method, exception, _) | ShopEvent::Bubble(method, exception) => {
                (Some(method), Some(exception))
            }
            ShopEvent::Mark(..) => (None, None),
        };
        if let Some(method) = method.filter(|method| first(&mut self.told.0, *method)) {
            let signature = name(&METHODS, method);
            self.encode_message(
                event.thread,
                &Message::MapMethod { method, signature: signature.as_java_str() },
                out,
            )?;
        }
        if self.is_terse() {
            return Ok(());
        }
        if let Some(exception) = exception.filter(|exception| first(&mut self.told.1, *exception)) {
            let name = name(&EXCEPTIONS, exception);
            self.encode_message(
                event.thread,
                &Message::MapException { exception, name: name.as_java_str() },
                out,
            )?;
        }
        if first(&mut self.told.2, event.thread) {
            let (time, name) = (self.time(event), name(&THREADS, event.thread));
            let message = Message::MapThreadName { thread: event.thread, time, name: name.as_java_str() };
            self.encode_message(event.thread, &message, out)?;
        }
        Ok(())
    }

    /// Returns the stamp of the next event.
    fn stamp(&mut self, event: &Event) -> Stamp {
        let sequence = match usize::try_from(event.thread).ok().and_then(|at| self.threads.get_mut(at)) {
            Some(sequence) if self.dialect == Dialect::F1 => sequence,
            _ => &mut self.next,
        };
        *sequence += 1;
        Stamp { time: event.time / self.dialect.nanoseconds(), sequence: *sequence - 1, thread: event.thread }
    }

    fn one(&mut self, event: &Event, out: &mut Outgoing) -> Result<(), EncodeError> {
        if self.is_terse() && matches!(event.act, ShopEvent::Throw(..) | ShopEvent::Mark(..)) {
            return Ok(());
        }
        self.count(&event.act);
        if self.dialect == Dialect::F1
            && let ShopEvent::Enter(method) | ShopEvent::Leave(method) = event.act
        {
            return self.batched(event, method, out);
        }
        self.flush(out)?;
        let at = self.stamp(event);
        match &event.act {
            ShopEvent::Enter(method) => {
                self.encode_message(event.thread, &Message::Entry { at, method: *method }, out)
            }
            ShopEvent::Leave(method) => {
                let exit = if self.is_terse() { Exit::Thrown(0) } else { Exit::Line(30) };
                self.encode_message(event.thread, &Message::Exit { at, method: *method, exit }, out)
            }
            ShopEvent::Throw(method, exception, line) => {
                let message = Message::Exception { at, method: *method, exception: *exception, line: *line };
                self.encode_message(event.thread, &message, out)
            }
            ShopEvent::Bubble(method, _) if self.is_terse() => self.encode_message(
                event.thread,
                &Message::Exit { at, method: *method, exit: Exit::Thrown(1) },
                out,
            ),
            ShopEvent::Bubble(method, exception) => {
                let message = Message::Bubble { at, method: *method, exception: *exception };
                self.encode_message(event.thread, &message, out)
            }
            ShopEvent::Mark(key, value) => {
                let (key, value) = (JavaString::from(*key), JavaString::from(value.as_str()));
                let message = Message::Marker {
                    time: at.time,
                    sequence: at.sequence,
                    thread: (self.dialect == Dialect::F1).then_some(at.thread),
                    key: key.as_java_str(),
                    value: value.as_java_str(),
                };
                self.encode_message(event.thread, &message, out)
            }
        }
    }

    fn count(&mut self, act: &ShopEvent) {
        let is_terse = self.is_terse();
        let truth = &mut self.truth;
        match act {
            // Encoded as an exit with a flag.
            ShopEvent::Bubble(..) if is_terse => truth.exits += 1,
            ShopEvent::Enter(method) => {
                truth.entries += 1;
                if let Some(name) = usize::try_from(*method).ok().and_then(|at| METHODS.get(at)) {
                    *truth.methods.entry(name).or_default() += 1;
                }
            }
            ShopEvent::Leave(_) => truth.exits += 1,
            ShopEvent::Throw(..) => truth.exceptions += 1,
            ShopEvent::Bubble(..) => truth.bubbles += 1,
            ShopEvent::Mark(..) => truth.markers += 1,
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
        let kind = if matches!(event.act, ShopEvent::Enter(_)) { BatchKind::Entry } else { BatchKind::Exit };
        rows.push(BatchEvent { kind, method, delta }.to_bytes());
        Ok(())
    }

    fn flush(&mut self, out: &mut Outgoing) -> Result<(), EncodeError> {
        let Some((thread, sequence, base, rows)) = self.batch.take() else { return Ok(()) };
        let batch = Batch { thread, sequence, base, rows: Rows::new(&rows) };
        self.encode_message(thread, &Message::Batch(batch), out)
    }
}
