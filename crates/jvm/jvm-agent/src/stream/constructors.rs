//! Constructors that an exception of the constructor that they call has ended.
//!
//! No handler can be of `super(…)` and `this(…)`, so nothing tells of such an end. It follows from what the thread does next.
//! Owns: [`Constructors`], and the events that are put in the place of those that are missing.

use super::{Event, Stream, Thread};
use crate::ring::Kind;

/// More than a thread has open at a time, unless they have ended.
const MOST_PENDING: usize = 256;

/// What is known of constructors of a thread.
#[derive(Debug, Default)]
pub(super) struct Constructors {
    /// Calls that were told, while it is not known whether the constructor of the superclass, which has no probes, returns.
    pending: Vec<Called>,
    /// Nothing was told of the thread since the last of them.
    pub(super) is_last: bool,
    /// The constructor on top of the stack was ended by this, unless the next event says otherwise.
    ended_by: Option<Event>,
}

/// A call of a constructor, with how many calls are open below it.
#[derive(Debug)]
struct Called {
    method: u32,
    depth: usize,
    time: u64,
}

impl Constructors {
    /// The stack has another top.
    pub(super) fn forget_end(&mut self) {
        self.ended_by = None;
    }
}

impl Thread {
    /// Forgets what is open, because events are missing.
    pub(super) fn forget_open(&mut self) {
        self.lossy = true;
        self.stack.clear();
        self.constructors = Constructors::default();
    }
}

impl Stream {
    /// An exception has ended a call. If its caller is a constructor that has called it as `super(…)` or `this(…)`, that one
    /// has ended too.
    pub(super) fn expect_delegates(&mut self, bubble: &Event) {
        let Some((_, thread)) = &self.current else { return };
        let Some(caller) = thread.stack.last().copied() else { return };
        let is_delegate =
            self.methods.name(bubble.method).is_some_and(|name| self.delegates.calls(caller, &name));
        if let Some((_, thread)) = &mut self.current {
            thread.constructors.ended_by = is_delegate.then_some(*bubble);
        }
    }

    /// Ends the constructors that were waiting for this event, but for one that the event is of: it ends by itself.
    pub(super) fn end_delegates(&mut self, event: &Event) {
        loop {
            let Some((_, thread)) = &mut self.current else { return };
            let Some(by) = thread.constructors.ended_by.take() else { return };
            let Some(method) = thread.stack.last().copied() else { return };
            let is_own =
                matches!(event.kind, Kind::Exit | Kind::Throw | Kind::Bubble) && event.method == method;
            if is_own {
                return;
            }
            thread.stack.pop();
            let ended = Event { kind: Kind::Bubble, method, ..by };
            self.put(&ended);
            self.expect_delegates(&ended);
        }
    }

    /// Calls that have ended without a word, the lowest first: by the exception that ends their caller; if none does, by a full
    /// stack, unless the lowest is a constructor.
    pub(super) fn ended_silently(&mut self, ended: Vec<u32>, event: &Event) {
        if event.kind != Kind::Bubble {
            let is_constructor = |method: &u32| {
                self.methods.name(*method).is_some_and(|name| name.windows(8).any(|part| part == b".<init>;"))
            };
            if !ended.first().is_some_and(is_constructor) {
                return self.overflowed(ended, event.time);
            }
        }
        let exception = if event.kind == Kind::Bubble { event.exception } else { u32::MAX };
        self.tell_exception(exception);
        for method in ended.into_iter().rev() {
            self.put(&Event { kind: Kind::Bubble, method, exception, line: 0, time: event.time });
        }
    }

    /// A constructor is called.
    pub(super) fn called(&mut self, event: &Event) {
        self.tell_missing();
        let Some((_, thread)) = &mut self.current else { return };
        let call = Called { method: event.method, depth: thread.stack.len(), time: event.time };
        let oldest = (thread.constructors.pending.len() >= MOST_PENDING)
            .then(|| thread.constructors.pending.remove(0).method);
        thread.constructors.pending.push(call);
        if let Some(method) = oldest {
            self.failed(method, &Event { kind: Kind::Exit, ..*event });
        }
        if let Some((_, thread)) = &mut self.current {
            thread.constructors.is_last = true;
        }
    }

    /// The constructor of the superclass has returned, or an exception ends the one that has called it, which is told next.
    /// The call has begun when it was told, or now, if other events have come in between: those were told as its siblings.
    pub(super) fn constructed(&mut self, event: &Event) {
        let Some((_, thread)) = &mut self.current else { return };
        let pending = &mut thread.constructors.pending;
        let Some(place) = pending.iter().rposition(|call| call.method == event.method) else { return };
        let failed = pending.split_off(place + 1);
        let Some(call) = pending.pop() else { return };
        let time = if thread.constructors.is_last && failed.is_empty() { call.time } else { event.time };
        let above = thread.stack.split_off(call.depth.min(thread.stack.len()));
        let silently = Event { kind: Kind::Exit, ..*event };
        if !above.is_empty() {
            self.ended_silently(above, &silently);
        }
        for call in failed {
            self.failed(call.method, &silently);
        }
        self.begin(event.method, time);
    }

    fn begin(&mut self, method: u32, time: u64) {
        self.tell_method(method);
        if let Some((_, thread)) = &mut self.current {
            thread.stack.push(method);
        }
        self.put(&Event { kind: Kind::Entry, method, time, line: 0, exception: 0 });
    }

    /// Tells of a constructor that the one of its superclass has ended.
    fn failed(&mut self, method: u32, event: &Event) {
        self.begin(method, event.time);
        let exception = if event.kind == Kind::Bubble { event.exception } else { u32::MAX };
        self.tell_exception(exception);
        if let Some((_, thread)) = &mut self.current {
            thread.stack.pop();
        }
        self.put(&Event { kind: Kind::Bubble, method, exception, line: 0, time: event.time });
    }

    /// The call on top of the stack ends: so have the constructors that it has called.
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

    /// A thread has ended, and all of its calls.
    pub(super) fn end_all_pending(&mut self, tid: u64, time: u64) {
        if !self.has_pending(tid) || !self.select(tid, None, time) {
            return;
        }
        let event = Event { kind: Kind::Exit, time, method: 0, line: 0, exception: 0 };
        self.end_delegates(&Event { kind: Kind::Entry, ..event });
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

    /// At the end of a trace: calls of constructors that have begun. Whether they have ended is not known.
    pub(crate) fn tell_all_pending(&mut self, now: u64) {
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
