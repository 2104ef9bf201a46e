//! The conversion of events from rings to messages for HQ.
//!
//! Owns: threads with their wire ids and sequence numbers, the names that were sent, and the buffer of each data connection.
//! `f1` and `numbered` implement the two kinds of messages. Does not open sockets or read clocks.

mod constructors;
mod f1;
mod losses;
mod numbered;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use runtap_bytefrog_proto::{Dialect, JavaStr, Message, encode};

use crate::delegates::Delegates;
use crate::names::Names;
use crate::ring::EventKind;

/// The maximum length of thread names and other texts on the wire.
const MAX_TEXT: usize = 65_535;

/// The exception reported for a call whose probe could not report its end.
const OVERFLOW: &[u8] = b"java.lang.StackOverflowError";

/// The number of threads to remember. Beyond it, virtual threads without an open call are forgotten.
const MAX_THREADS: usize = 65_536;

/// A Java thread as reported to HQ.
#[derive(Debug)]
struct Thread {
    wire: u32,
    /// The thread's data connection.
    connection: usize,
    /// F1: the sequence number of the thread's next event.
    sequence: u64,
    /// The methods of the thread's open calls.
    stack: Vec<u32>,
    constructors: constructors::Constructors,
    is_virtual: bool,
    /// The number of discarded events since the last report, and the time of the first.
    missing: u64,
    missing_since: u64,
    /// Whether events of the thread are missing: the start of a call that ends may be one of them.
    lossy: bool,
    /// For a virtual thread, the time of its last event.
    last: u64,
}

/// An event, with its time since the agent's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: EventKind,
    pub(crate) time: u64,
    pub(crate) method: u32,
    pub(crate) line: u16,
    pub(crate) exception: u32,
}

/// Converts events to messages and buffers them.
#[derive(Debug)]
pub(crate) struct Stream {
    dialect: Dialect,
    /// The value of `CLOCK_MONOTONIC` at the agent's start.
    start: u64,
    methods: Arc<Names>,
    exceptions: Arc<Names>,
    delegates: Arc<Delegates>,
    sent_methods: Vec<bool>,
    sent_exceptions: Vec<bool>,
    sent_lines: Vec<bool>,
    /// All threads except the current one.
    threads: HashMap<u64, Thread>,
    current: Option<(u64, Thread)>,
    /// The number of threads at which idle threads are forgotten.
    many: usize,
    next_wire: u32,
    /// Versions 1 to 4: unused ids of threads that have ended.
    free: Vec<u32>,
    /// Missing events by virtual thread; missing events of unknown threads; and until when such events were missing before,
    /// with their number if it is not reported elsewhere.
    lost: BTreeMap<u64, Vec<losses::Pending>>,
    lost_of_any: Vec<losses::Pending>,
    lost_before: Option<(u64, u64)>,
    /// Versions 1 to 4: the sequence number of the next event.
    sequence: u32,
    /// Versions 1 to 4: sequence numbers of events before which other events are missing.
    breaks: Vec<u32>,
    batch: f1::Batch,
    out: Vec<Vec<u8>>,
    snapshot: u32,
}

impl Stream {
    pub(crate) fn new(
        dialect: Dialect,
        start: u64,
        connections: usize,
        methods: Arc<Names>,
        exceptions: Arc<Names>,
        delegates: Arc<Delegates>,
    ) -> Self {
        Self {
            dialect,
            start,
            methods,
            exceptions,
            delegates,
            sent_methods: Vec::new(),
            sent_exceptions: Vec::new(),
            sent_lines: Vec::new(),
            threads: HashMap::new(),
            current: None,
            many: MAX_THREADS,
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

    /// Returns a clock value as a time since the agent's start.
    pub(crate) fn since_start(&self, clock: u64) -> u64 {
        clock.saturating_sub(self.start)
    }

    /// Returns the bytes to send, by connection.
    pub(crate) fn buffers(&mut self) -> &mut [Vec<u8>] {
        self.end_batch();
        &mut self.out
    }

    /// Versions 1 to 4: reports on the control connection that events are missing before the next one. F1 has drops instead.
    pub(crate) fn break_here(&mut self) {
        if !self.is_f1() && self.breaks.last() != Some(&self.sequence) {
            self.breaks.push(self.sequence);
        }
    }

    /// Returns the breaks since the last call.
    pub(crate) fn take_breaks(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.breaks)
    }

    fn write(&mut self, connection: usize, message: &Message<'_>) {
        if let Some(buffer) = self.out.get_mut(connection) {
            // Encoding cannot fail: messages are chosen by dialect, and texts are truncated before.
            let _ = encode(message, self.dialect, buffer);
        }
    }

    /// Buffers a message that is not bound to a connection, for the first connection.
    fn write_to_first(&mut self, message: &Message<'_>) {
        self.write(0, message);
    }

    fn send_method_name(&mut self, method: u32) {
        let at = method as usize;
        if self.sent_methods.get(at) == Some(&true) {
            return;
        }
        if self.sent_methods.len() <= at {
            self.sent_methods.resize(at + 1, false);
        }
        if let Some(is_sent) = self.sent_methods.get_mut(at) {
            *is_sent = true;
        }
        if let Some(name) = self.methods.name(method) {
            let signature = text(&name);
            self.write_to_first(&Message::MapMethod { method, signature });
        }
    }

    fn send_exception_name(&mut self, exception: u32) {
        let at = exception as usize;
        if exception == u32::MAX || self.sent_exceptions.get(at) == Some(&true) {
            return;
        }
        if self.sent_exceptions.len() <= at {
            self.sent_exceptions.resize(at + 1, false);
        }
        if let Some(is_sent) = self.sent_exceptions.get_mut(at) {
            *is_sent = true;
        }
        if let Some(name) = self.exceptions.name(exception) {
            let name = text(&name);
            self.write_to_first(&Message::MapException { exception, name });
        }
    }

    /// Makes a thread the current one. Returns `false` if no id is left for it.
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

    /// Adds a thread that is seen for the first time; virtual threads have no name.
    fn meet(&mut self, name: Option<&[u8]>, time: u64) -> Option<Thread> {
        if self.threads.len() >= self.many {
            self.forget_idle(time);
            // Doubled, so that the search does not run for each new thread if most threads have open calls.
            self.many = MAX_THREADS.max(2 * self.threads.len());
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
            self.write(connection, &Message::MapThreadName { thread: wire, time, name: text(name) });
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

    /// Returns a time in the dialect's units.
    fn wire_time(&self, time: u64) -> u64 {
        if self.is_f1() { time } else { (time / 1_000_000) & u64::from(u32::MAX) }
    }

    /// Forgets virtual threads without open calls, because their ends are not reported.
    fn forget_idle(&mut self, time: u64) {
        let idle = self.threads.iter().filter(|(_, thread)| thread.is_virtual && thread.stack.is_empty());
        let mut idle: Vec<u64> = idle.map(|(tid, _)| *tid).collect();
        idle.sort_unstable();
        for tid in idle {
            self.end_thread(tid, time);
        }
    }

    /// Handles an event of a thread. `name` is used if the thread is seen for the first time.
    pub(crate) fn event(&mut self, tid: u64, name: Option<&[u8]>, event: &Event) {
        if !self.select(tid, name, event.time) {
            return;
        }
        self.report_losses(event);
        self.end_delegates(event);
        match event.kind {
            EventKind::Called => return self.called(event),
            EventKind::Constructed => return self.constructed(event),
            _ => {}
        }
        if !self.belongs(event) {
            return;
        }
        self.send_method_name(event.method);
        self.report_missing();
        match event.kind {
            EventKind::Entry => {
                if let Some((_, thread)) = &mut self.current {
                    thread.stack.push(event.method);
                }
            }
            EventKind::Exit | EventKind::Bubble => self.close(event),
            _ => {}
        }
        if matches!(event.kind, EventKind::Throw | EventKind::Bubble) {
            self.send_exception_name(event.exception);
        }
        self.put(event);
        if event.kind == EventKind::Bubble {
            self.expect_delegates(event);
        }
    }

    fn put(&mut self, event: &Event) {
        if let Some((_, thread)) = &mut self.current {
            thread.constructors.is_last = false;
        }
        if self.is_f1() { self.event_f1(event) } else { self.event_numbered(event) }
    }

    /// Handles the end of a call, which also ends the calls that it made. If a probe had no stack left to report that
    /// an exception ended a call, this follows from the end of the caller.
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

    /// Ends all calls above the topmost of the `standing` calls of a method on a thread's stack: they have ended but
    /// could not report it. If calls from before the trace may be among them, nothing follows.
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

    /// Ends calls that ended by an exception while the stack was full.
    fn overflowed(&mut self, ended: Vec<u32>, time: u64) {
        if ended.is_empty() {
            return;
        }
        let exception = self.exceptions.id(OVERFLOW, u32::MAX).unwrap_or(u32::MAX);
        self.send_exception_name(exception);
        for method in ended.into_iter().rev() {
            self.put(&Event { kind: EventKind::Bubble, time, method, line: 0, exception });
        }
    }

    /// Handles the end of a thread.
    pub(crate) fn end_thread(&mut self, tid: u64, time: u64) {
        self.end_all_pending(tid, time);
        if self.threads.get(&tid).is_some_and(|thread| thread.missing > 0) {
            self.select(tid, None, time);
        }
        if self.current.as_ref().is_some_and(|(current, _)| *current == tid) {
            self.report_missing();
        }
        self.end_batch();
        let current = self.current.take_if(|(current, _)| *current == tid).map(|(_, thread)| thread);
        let Some(thread) = current.or_else(|| self.threads.remove(&tid)) else { return };
        if self.is_f1() {
            self.write(thread.connection, &Message::ThreadEnd { thread: thread.wire, time });
        } else {
            // The next thread with the id must not inherit the open calls of this thread.
            if !thread.stack.is_empty() {
                self.break_here();
            }
            self.free.push(thread.wire);
        }
    }
}

/// Returns a text truncated between characters to the length that the wire format allows.
pub(crate) fn text(bytes: &[u8]) -> JavaStr<'_> {
    let mut end = bytes.len().min(MAX_TEXT);
    // A byte of the form 10xxxxxx continues a character.
    while end > 0 && end < bytes.len() && bytes.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    JavaStr::from_bytes(bytes.get(..end).unwrap_or_default())
}
