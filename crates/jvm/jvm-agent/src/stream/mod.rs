//! From events of rings to messages for HQ.
//!
//! Owns: threads with their ids on the wire and their sequence numbers, which names were told, and what is buffered for each
//! data connection. `f1` and `old` know the two kinds of messages. Refuses to: open a socket or read a clock.

mod constructors;
mod f1;
mod losses;
mod old;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use runtap_bytefrog_proto::{Dialect, JavaStr, Message, encode};

use crate::delegates::Delegates;
use crate::names::Names;
use crate::ring::Kind;

/// Names of threads, and other texts, are not longer on the wire.
const MOST_TEXT: usize = 65_535;

/// What ends a call whose probe can't say so.
const OVERFLOW: &[u8] = b"java.lang.StackOverflowError";

/// Threads that are remembered. Of more, virtual ones are forgotten that have no open call.
const MOST_THREADS: usize = 65_536;

/// A thread of Java, as HQ knows it.
#[derive(Debug)]
struct Thread {
    wire: u32,
    /// Its data connection.
    connection: usize,
    /// F1: the number of its next event.
    sequence: u64,
    /// Methods of its open calls.
    stack: Vec<u32>,
    constructors: constructors::Constructors,
    is_virtual: bool,
    /// Events that were thrown away since it was last told, and the time of the first.
    missing: u64,
    missing_since: u64,
    /// Events of it are missing: one that ends a call whose begin is not known may be of those.
    lossy: bool,
    /// A virtual one: the time of its last event.
    last: u64,
}

/// An event, with its time since the agent's time 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) time: u64,
    pub(crate) method: u32,
    pub(crate) line: u16,
    pub(crate) exception: u32,
}

/// What is to be sent.
#[derive(Debug)]
pub(crate) struct Stream {
    dialect: Dialect,
    /// `CLOCK_MONOTONIC` at the agent's time 0.
    start: u64,
    methods: Arc<Told>,
    exceptions: Arc<Told>,
    delegates: Arc<Delegates>,
    told_methods: Vec<bool>,
    told_exceptions: Vec<bool>,
    told_lines: Vec<bool>,
    /// All threads but the one whose events come.
    threads: HashMap<u64, Thread>,
    current: Option<(u64, Thread)>,
    /// With so many of them it is looked who can be forgotten.
    many: usize,
    next_wire: u32,
    /// Versions 1 to 4: ids of threads that are gone.
    free: Vec<u32>,
    /// Missing events of virtual threads; those of which it is not known whose they are; and until when there were such events
    /// before, with their number if that is not told elsewhere.
    lost: BTreeMap<u64, Vec<losses::Pending>>,
    lost_of_any: Vec<losses::Pending>,
    lost_before: Option<(u64, u64)>,
    /// Versions 1 to 4: the number of the next event.
    sequence: u32,
    /// Versions 1 to 4: numbers of events before which others are missing.
    breaks: Vec<u32>,
    batch: f1::Batch,
    out: Vec<Vec<u8>>,
    snapshot: u32,
}

/// Names that can be told.
pub(crate) type Told = Names;

impl Stream {
    pub(crate) fn new(
        dialect: Dialect,
        start: u64,
        connections: usize,
        methods: Arc<Told>,
        exceptions: Arc<Told>,
        delegates: Arc<Delegates>,
    ) -> Self {
        Self {
            dialect,
            start,
            methods,
            exceptions,
            delegates,
            told_methods: Vec::new(),
            told_exceptions: Vec::new(),
            told_lines: Vec::new(),
            threads: HashMap::new(),
            current: None,
            many: MOST_THREADS,
            next_wire: 0,
            free: Vec::new(),
            lost: BTreeMap::new(),
            lost_of_any: Vec::new(),
            lost_before: None,
            sequence: 0,
            breaks: Vec::new(),
            batch: f1::Batch::default(),
            out: vec![Vec::new(); connections.max(1)],
            snapshot: 0,
        }
    }

    fn is_f1(&self) -> bool {
        self.dialect == Dialect::F1
    }

    /// The time on the wire of a time of the clock.
    pub(crate) fn since_start(&self, clock: u64) -> u64 {
        clock.saturating_sub(self.start)
    }

    /// What can be sent, by connection.
    pub(crate) fn buffers(&mut self) -> &mut [Vec<u8>] {
        self.end_batch();
        &mut self.out
    }

    /// Versions 1 to 4: events are missing before the next one. HQ is told so on the control connection. F1 has drops instead.
    pub(crate) fn break_here(&mut self) {
        if !self.is_f1() && self.breaks.last() != Some(&self.sequence) {
            self.breaks.push(self.sequence);
        }
    }

    /// The breaks since the last call.
    pub(crate) fn take_breaks(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.breaks)
    }

    fn say(&mut self, connection: usize, message: &Message<'_>) {
        if let Some(buffer) = self.out.get_mut(connection) {
            // Nothing is said that the dialect does not have; texts are cut before.
            let _ = encode(message, self.dialect, buffer);
        }
    }

    /// A message that may go anywhere: the first connection.
    fn say_first(&mut self, message: &Message<'_>) {
        self.say(0, message);
    }

    fn tell_method(&mut self, method: u32) {
        let at = method as usize;
        if self.told_methods.get(at) == Some(&true) {
            return;
        }
        if self.told_methods.len() <= at {
            self.told_methods.resize(at + 1, false);
        }
        if let Some(told) = self.told_methods.get_mut(at) {
            *told = true;
        }
        if let Some(name) = self.methods.name(method) {
            let signature = text(&name);
            self.say_first(&Message::MapMethod { method, signature });
        }
    }

    fn tell_exception(&mut self, exception: u32) {
        let at = exception as usize;
        if exception == u32::MAX || self.told_exceptions.get(at) == Some(&true) {
            return;
        }
        if self.told_exceptions.len() <= at {
            self.told_exceptions.resize(at + 1, false);
        }
        if let Some(told) = self.told_exceptions.get_mut(at) {
            *told = true;
        }
        if let Some(name) = self.exceptions.name(exception) {
            let name = text(&name);
            self.say_first(&Message::MapException { exception, name });
        }
    }

    /// Makes a thread the one whose events come. `false`: there is no id left for it.
    fn select(&mut self, tid: u64, name: Option<&[u8]>, time: u64) -> bool {
        if self.current.as_ref().is_some_and(|(current, _)| *current == tid) {
            return true;
        }
        self.end_batch();
        if let Some((before, thread)) = self.current.take() {
            self.threads.insert(before, thread);
        }
        self.current = match self.threads.remove(&tid) {
            Some(thread) => Some((tid, thread)),
            None => self.meet(name, time).map(|thread| (tid, thread)),
        };
        self.current.is_some()
    }

    /// A thread that is seen for the first time; a virtual one has no name.
    fn meet(&mut self, name: Option<&[u8]>, time: u64) -> Option<Thread> {
        if self.threads.len() >= self.many {
            self.forget_idle(time);
            // Where most have open calls, not with each new one.
            self.many = MOST_THREADS.max(2 * self.threads.len());
        }
        let wire = match self.free.pop() {
            Some(wire) => wire,
            None if !self.is_f1() && u16::try_from(self.next_wire).is_err() => return None,
            None => {
                self.next_wire = self.next_wire.wrapping_add(1);
                self.next_wire.wrapping_sub(1)
            }
        };
        let connection = wire as usize % self.out.len();
        if let Some(name) = name
            && matches!(self.dialect, Dialect::V1 | Dialect::V1CodePulse | Dialect::F1)
        {
            let time = self.wire_time(time);
            self.say(connection, &Message::MapThreadName { thread: wire, time, name: text(name) });
        }
        Some(Thread {
            wire,
            connection,
            sequence: 0,
            stack: Vec::new(),
            constructors: constructors::Constructors::default(),
            is_virtual: name.is_none(),
            missing: 0,
            missing_since: 0,
            lossy: false,
            last: 0,
        })
    }

    /// Time in the dialect's units.
    fn wire_time(&self, time: u64) -> u64 {
        if self.is_f1() { time } else { (time / 1_000_000) & u64::from(u32::MAX) }
    }

    /// Forgets virtual threads without open calls: nobody says when they end.
    fn forget_idle(&mut self, time: u64) {
        let idle = self.threads.iter().filter(|(_, thread)| thread.is_virtual && thread.stack.is_empty());
        let mut idle: Vec<u64> = idle.map(|(tid, _)| *tid).collect();
        idle.sort_unstable();
        for tid in idle {
            self.end_thread(tid, time);
        }
    }

    /// An event of a thread. The name is that of a thread that is seen for the first time.
    pub(crate) fn event(&mut self, tid: u64, name: Option<&[u8]>, event: &Event) {
        if !self.select(tid, name, event.time) {
            return;
        }
        self.tell_losses(event);
        self.end_delegates(event);
        match event.kind {
            Kind::Called => return self.called(event),
            Kind::Constructed => return self.constructed(event),
            _ => {}
        }
        if !self.belongs(event) {
            return;
        }
        self.tell_method(event.method);
        self.tell_missing();
        match event.kind {
            Kind::Entry => {
                if let Some((_, thread)) = &mut self.current {
                    thread.stack.push(event.method);
                }
            }
            Kind::Exit | Kind::Bubble => self.close(event),
            _ => {}
        }
        if matches!(event.kind, Kind::Throw | Kind::Bubble) {
            self.tell_exception(event.exception);
        }
        self.put(event);
        if event.kind == Kind::Bubble {
            self.expect_delegates(event);
        }
    }

    fn put(&mut self, event: &Event) {
        if let Some((_, thread)) = &mut self.current {
            thread.constructors.is_last = false;
        }
        if self.is_f1() { self.event_f1(event) } else { self.event_old(event) }
    }

    /// A call ends: so have those that it has made. That an exception has ended one is not said where the probe, too, had no
    /// stack left; it follows from the end of its caller.
    fn close(&mut self, event: &Event) {
        let Some((_, thread)) = &mut self.current else { return };
        if thread.stack.last() != Some(&event.method) {
            let Some(place) = thread.stack.iter().rposition(|method| *method == event.method) else { return };
            let ended = thread.stack.split_off(place + 1);
            self.ended_silently(ended, event);
        }
        self.end_pending(event);
        if let Some((_, thread)) = &mut self.current {
            thread.stack.pop();
        }
    }

    /// So many calls of a method are on the stack of a thread, and the topmost is about to end: all above it have ended, and
    /// could not say so. Calls from before the trace may be among them; then nothing follows.
    pub(crate) fn settle(&mut self, tid: u64, name: Option<&[u8]>, time: u64, method: u32, standing: u64) {
        if !self.select(tid, name, time) {
            return;
        }
        let Some((_, thread)) = &mut self.current else { return };
        let Some(above) = usize::try_from(standing).ok().and_then(|standing| standing.checked_sub(1)) else {
            return;
        };
        let mut calls = thread.stack.iter().enumerate().filter(|(_, open)| **open == method);
        let Some((place, _)) = calls.nth(above) else { return };
        let ended = thread.stack.split_off(place + 1);
        if !ended.is_empty() {
            thread.constructors.forget_end();
        }
        self.overflowed(ended, time);
    }

    /// Calls that were ended by an exception when the stack was full.
    fn overflowed(&mut self, ended: Vec<u32>, time: u64) {
        if ended.is_empty() {
            return;
        }
        let exception = self.exceptions.id(OVERFLOW, u32::MAX).unwrap_or(u32::MAX);
        self.tell_exception(exception);
        for method in ended.into_iter().rev() {
            self.put(&Event { kind: Kind::Bubble, time, method, line: 0, exception });
        }
    }

    /// A thread is gone.
    pub(crate) fn end_thread(&mut self, tid: u64, time: u64) {
        self.end_all_pending(tid, time);
        if self.threads.get(&tid).is_some_and(|thread| thread.missing > 0) {
            self.select(tid, None, time);
        }
        if self.current.as_ref().is_some_and(|(current, _)| *current == tid) {
            self.tell_missing();
        }
        self.end_batch();
        let current = self.current.take_if(|(current, _)| *current == tid).map(|(_, thread)| thread);
        let Some(thread) = current.or_else(|| self.threads.remove(&tid)) else { return };
        if self.is_f1() {
            self.say(thread.connection, &Message::ThreadEnd { thread: thread.wire, time });
        } else {
            // Who has the ID next is not called by what this one has left open.
            if !thread.stack.is_empty() {
                self.break_here();
            }
            self.free.push(thread.wire);
        }
    }
}

/// A text as long as the wire allows, cut between characters.
pub(crate) fn text(bytes: &[u8]) -> JavaStr<'_> {
    let mut end = bytes.len().min(MOST_TEXT);
    // A byte of the form 10xxxxxx goes on a character.
    while end > 0 && end < bytes.len() && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    JavaStr::from_bytes(bytes.get(..end).unwrap_or_default())
}
