//! Ends of constructors whose called constructor was ended by an exception.
//!
//! No handler can cover `super(…)` and `this(…)`, so no probe reports such an end; it follows from the thread's next event.
//! Owns: [`Constructors`], and the events that replace the missing ones.

use super::{Event, Stream, Thread};
use crate::ring::EventKind;

/// The maximum number of pending calls, more than a thread has open unless earlier ones have ended.
const MAX_PENDING: usize = 256;

/// The state of a thread's constructor calls.
#[derive(Debug, Default)]
pub(super) struct Constructors {
    /// Reported calls for which it is unknown whether the superclass's constructor, which has no probes, returns.
    pending: Vec<PendingCall>,
    /// Whether no event of the thread was reported since the last pending call.
    pub(super) is_last: bool,
    /// The event that ended the constructor on top of the stack, unless the next event contradicts that.
    ended_by: Option<Event>,
}

/// A constructor call, with the number of open calls below it.
#[derive(Debug)]
struct PendingCall {
    method: u32,
    depth: usize,
    time: u64,
}

impl Constructors {
    /// Handles a change of the top of the stack.
    pub(super) fn forget_end(&mut self) {
        self.ended_by = None;
    }
}

impl Thread {
    /// Discards pending calls, because events are missing.
    pub(super) fn forget_open(&mut self) {
        self.lossy = true;
        self.stack.clear();
        self.constructors = Constructors::default();
    }
}

impl Stream {
    /// Handles an exception that ended a call. If the caller is a constructor that made the call as `super(…)` or
    /// `this(…)`, the
    /// caller has ended too.
    pub(super) fn expect_delegates(&mut self, bubble: &Event) {
        let Some((_, thread)) = &self.current else { return };
        let Some(caller) = thread.stack.last().copied() else { return };
        let is_delegate =
            self.methods.name(bubble.method).is_some_and(|name| self.delegates.calls(caller, &name));
        if let Some((_, thread)) = &mut self.current {
            thread.constructors.ended_by = is_delegate.then_some(*bubble);
        }
    }

    /// Ends the constructors that waited for this event, except one to which the event belongs: that one ends by itself.
    pub(super) fn end_delegates(&mut self, event: &Event) {
        loop {
            let Some((_, thread)) = &mut self.current else { return };
            let Some(by) = thread.constructors.ended_by.take() else { return };
            let Some(method) = thread.stack.last().copied() else { return };
            let is_own = matches!(event.kind, EventKind::Exit | EventKind::Throw | EventKind::Bubble)
                && event.method == method;
            if is_own {
                return;
            }
            thread.stack.pop();
            let ended = Event { kind: EventKind::Bubble, method, ..by };
            self.put(&ended);
            self.expect_delegates(&ended);
        }
    }

    /// Ends calls that ended without an event, the lowest first: by the exception that ends their caller, otherwise
    /// by a stack overflow unless the lowest call is a constructor.
    pub(super) fn ended_silently(&mut self, ended: Vec<u32>, event: &Event) {
        if event.kind != EventKind::Bubble {
            let is_constructor = |method: &u32| {
                self.methods.name(*method).is_some_and(|name| name.windows(8).any(|part| part == b".<init>;"))
            };
            if !ended.first().is_some_and(is_constructor) {
                return self.overflowed(ended, event.time);
            }
        }
        let exception = if event.kind == EventKind::Bubble { event.exception } else { u32::MAX };
        self.send_exception_name(exception);
        for method in ended.into_iter().rev() {
            self.put(&Event { kind: EventKind::Bubble, method, exception, line: 0, time: event.time });
        }
    }

    /// Handles the call of a constructor.
    pub(super) fn called(&mut self, event: &Event) {
        self.report_missing();
        let Some((_, thread)) = &mut self.current else { return };
        let call = PendingCall { method: event.method, depth: thread.stack.len(), time: event.time };
        let oldest = (thread.constructors.pending.len() >= MAX_PENDING)
            .then(|| thread.constructors.pending.remove(0).method);
        thread.constructors.pending.push(call);
        if let Some(method) = oldest {
            self.failed(method, &Event { kind: EventKind::Exit, ..*event });
        }
        if let Some((_, thread)) = &mut self.current {
            thread.constructors.is_last = true;
        }
    }

    /// Handles the return of the superclass's constructor, or an exception that ends its caller, which is reported next. The
    /// call started when it was reported; or now, if other events came in between, which were reported as its siblings.
    pub(super) fn constructed(&mut self, event: &Event) {
        let Some((_, thread)) = &mut self.current else { return };
        let pending = &mut thread.constructors.pending;
        let Some(place) = pending.iter().rposition(|call| call.method == event.method) else { return };
        let failed = pending.split_off(place + 1);
        let Some(call) = pending.pop() else { return };
        let time = if thread.constructors.is_last && failed.is_empty() { call.time } else { event.time };
        let above = thread.stack.split_off(call.depth.min(thread.stack.len()));
        let silently = Event { kind: EventKind::Exit, ..*event };
        if !above.is_empty() {
            self.ended_silently(above, &silently);
        }
        for call in failed {
            self.failed(call.method, &silently);
        }
        self.begin(event.method, time);
    }

    fn begin(&mut self, method: u32, time: u64) {
        self.send_method_name(method);
        if let Some((_, thread)) = &mut self.current {
            thread.stack.push(method);
        }
        self.put(&Event { kind: EventKind::Entry, method, time, line: 0, exception: 0 });
    }

    /// Reports a constructor that was ended by an exception of the superclass's constructor.
    fn failed(&mut self, method: u32, event: &Event) {
        self.begin(method, event.time);
        let exception = if event.kind == EventKind::Bubble { event.exception } else { u32::MAX };
        self.send_exception_name(exception);
        if let Some((_, thread)) = &mut self.current {
            thread.stack.pop();
        }
        self.put(&Event { kind: EventKind::Bubble, method, exception, line: 0, time: event.time });
    }

    /// Ends the constructor calls made by the call on top of the stack, which ends.
    pub(super) fn end_pending(&mut self, event: &Event) {
        let Some((_, thread)) = &mut self.current else { return };
        let depth = thread.stack.len();
        let pending = &mut thread.constructors.pending;
        if pending.last().is_none_or(|call| call.depth < depth) {
            return;
        }
        let first = pending.iter().position(|call| call.depth >= depth).unwrap_or(pending.len());
        for call in pending.split_off(first) {
            self.failed(call.method, event);
        }
    }

    /// Ends all pending calls of a thread that has ended.
    pub(super) fn end_all_pending(&mut self, tid: u64, time: u64) {
        if !self.has_pending(tid) || !self.select(tid, None, time) {
            return;
        }
        let event = Event { kind: EventKind::Exit, time, method: 0, line: 0, exception: 0 };
        self.end_delegates(&Event { kind: EventKind::Entry, ..event });
        let Some((_, thread)) = &mut self.current else { return };
        for call in std::mem::take(&mut thread.constructors.pending) {
            self.failed(call.method, &event);
        }
    }

    fn has_pending(&self, tid: u64) -> bool {
        let current = self.current.iter().filter(|(current, _)| *current == tid).map(|(_, thread)| thread);
        let mut found = self.threads.get(&tid).into_iter().chain(current);
        found.any(|thread| !thread.constructors.pending.is_empty() || thread.constructors.ended_by.is_some())
    }

    /// Reports, at the end of a trace, constructor calls that have started. Whether they have ended is unknown.
    pub(crate) fn report_all_pending(&mut self, now: u64) {
        let current = self.current.iter().map(|(tid, _)| tid);
        let mut all: Vec<u64> = self.threads.keys().chain(current).copied().collect();
        all.retain(|tid| self.has_pending(*tid));
        all.sort_unstable();
        for tid in all {
            if !self.select(tid, None, 0) {
                continue;
            }
            let Some((_, thread)) = &mut self.current else { continue };
            let (pending, is_last) =
                (std::mem::take(&mut thread.constructors.pending), thread.constructors.is_last);
            let is_only = is_last && pending.len() == 1;
            for call in pending {
                self.begin(call.method, if is_only { call.time } else { now });
            }
        }
    }
}
