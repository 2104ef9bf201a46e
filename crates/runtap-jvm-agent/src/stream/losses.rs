//! Events that are missing, and which others follow from that.
//!
//! Owns: what is told of events that were dropped, thrown away while recording was suspended, or made before the trace.

use runtap_bytefrog_proto::f1::{Drop as DropMessage, DropReason};

use super::{Event, Stream};
use crate::ring::Kind;

impl Stream {
    /// Whether an event is of this trace. What ends a call that has not begun in it, of a thread that has lost nothing, is of a
    /// class that had its probes in an earlier one.
    pub(super) fn belongs(&self, event: &Event) -> bool {
        let Some((_, thread)) = &self.current else { return false };
        event.kind == Kind::Entry
            || thread.lossy
            || thread.stack.iter().rev().any(|open| *open == event.method)
    }

    /// Events of virtual threads are missing, and nobody knows of which.
    pub(crate) fn lose_of_virtual(&mut self) {
        self.losses += 1;
    }

    /// Tells that events of a virtual thread may be missing. One without open calls that begins one has nothing that could be
    /// wrong.
    pub(super) fn tell_losses(&mut self, event: &Event) {
        let losses = self.losses;
        let Some((_, thread)) = &mut self.current else { return };
        if !thread.is_virtual || std::mem::replace(&mut thread.losses, losses) == losses {
            return;
        }
        if !thread.stack.is_empty() || event.kind != Kind::Entry {
            self.lose(event.time, DropMessage::UNKNOWN, DropReason::FULL);
            self.break_here();
        }
    }

    /// Tells that events of the thread are missing.
    fn lose(&mut self, time: u64, count: u64, reason: DropReason) {
        if let Some((_, thread)) = &mut self.current {
            thread.lossy = true;
            thread.stack.clear();
        }
        self.drop_f1(time, count, reason);
    }

    /// Events of a thread were thrown away here, because recording is suspended.
    pub(crate) fn discard(&mut self, tid: u64, name: Option<&[u8]>, time: u64, count: u64) {
        if !self.select(tid, name, time) {
            return;
        }
        if let Some((_, thread)) = &mut self.current {
            if thread.missing == 0 {
                thread.missing_since = time;
            }
            thread.missing += count;
            thread.lossy = true;
            thread.stack.clear();
        }
    }

    /// Tells what was thrown away of the thread.
    pub(super) fn tell_missing(&mut self) {
        let Some((_, thread)) = &mut self.current else { return };
        if thread.missing > 0 {
            let (count, since) = (std::mem::take(&mut thread.missing), thread.missing_since);
            self.lose(since, count, DropReason::SUSPENDED);
        }
    }

    /// Events of a thread are missing.
    pub(crate) fn drop_events(
        &mut self,
        tid: u64,
        name: Option<&[u8]>,
        time: u64,
        count: u64,
        reason: DropReason,
    ) {
        if self.select(tid, name, time) {
            self.tell_missing();
            self.lose(time, count, reason);
            self.break_here();
        }
    }

    /// Tells what was thrown away of all threads: nothing of them comes any more.
    pub(crate) fn tell_all_missing(&mut self) {
        let missing = self.threads.iter().filter(|(_, thread)| thread.missing > 0);
        let mut missing: Vec<u64> = missing.map(|(tid, _)| *tid).collect();
        missing.sort_unstable();
        self.tell_missing();
        for tid in missing {
            if self.select(tid, None, 0) {
                self.tell_missing();
            }
        }
    }
}
