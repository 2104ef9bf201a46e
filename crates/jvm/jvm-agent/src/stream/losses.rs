//! Missing events, and the consequences for other events.
//!
//! Owns: the reports of events that were dropped, discarded while recording was suspended, or made before the trace.

use runtap_bytefrog_proto::f1::DropReason;

use super::{Event, Stream};
use crate::losses::Loss;
use crate::ring::EventKind;

/// Missing events of virtual threads that were not reported yet, or not to all affected threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    loss: Loss,
    /// Whether the loss was found in this round, so that events from before it may still be unread.
    is_new: bool,
}

impl Stream {
    /// Returns whether an event belongs to this trace. The end of a call that did not start in this trace, on a
    /// thread without losses, belongs to a class that got its probes in an earlier trace.
    pub(super) fn belongs(&self, event: &Event) -> bool {
        let Some((_, thread)) = &self.current else { return false };
        matches!(event.kind, EventKind::Entry | EventKind::Called)
            || thread.lossy
            || thread.stack.iter().rev().any(|open| *open == event.method)
    }

    /// Notes that events are missing of one virtual thread, or of an unknown one.
    pub(crate) fn lose(&mut self, tid: Option<u64>, loss: Loss) {
        let pending = Pending { loss, is_new: true };
        match tid {
            Some(tid) => self.lost.entry(tid).or_default().push(pending),
            None => self.lost_of_any.push(pending),
        }
    }

    /// Reports that events of a virtual thread are, or may be, missing between its last event and this one. An
    /// unattributed loss is not reported for a thread without open calls that starts a call, since nothing could be
    /// wrong there.
    pub(super) fn report_losses(&mut self, event: &Event) {
        let Some((tid, thread)) = &mut self.current else { return };
        if !thread.is_virtual {
            return;
        }
        let (last, now) = (std::mem::replace(&mut thread.last, event.time), event.time);
        let lies_between = |loss: &Loss| loss.first <= now && last <= loss.last;
        let may_begin = thread.stack.is_empty() && matches!(event.kind, EventKind::Entry | EventKind::Called);
        let mut count = None;
        if !may_begin {
            let of_any = self.lost_of_any.iter().filter(|pending| lies_between(&pending.loss));
            let earlier = self.lost_before.filter(|(before, _)| last <= *before).map(|(_, count)| count);
            count = of_any.map(|pending| pending.loss.count).chain(earlier).max();
        }
        if let Some(lost) = self.lost.get_mut(tid) {
            lost.retain_mut(|pending| {
                if lies_between(&pending.loss) {
                    let more = std::mem::take(&mut pending.loss.count);
                    count = Some(count.unwrap_or(0).saturating_add(more));
                }
                // Within this period, more events may be missing before each event.
                now <= pending.loss.last
            });
            if lost.is_empty() {
                self.lost.remove(tid);
            }
        }
        if let Some(count) = count {
            self.report_missing();
            self.drop_current(now, count, DropReason::FULL);
            self.break_here();
        }
    }

    /// Ends a round of reading. Losses from before the round are reported for threads without a later event, since all
    /// their earlier events have been read by now. `all` reports every loss, at the end of a trace.
    pub(crate) fn end_round(&mut self, all: bool) {
        let (mut before, mut count) = self.lost_before.unwrap_or_default();
        let known = self.lost_of_any.len();
        self.lost_of_any.retain_mut(|pending| {
            let is_new = std::mem::take(&mut pending.is_new) && !all;
            if !is_new {
                before = before.max(pending.loss.last);
                count = count.max(pending.loss.count);
            }
            is_new
        });
        if self.lost_of_any.len() != known {
            self.lost_before = Some((before, count));
        }
        let mut losses = Vec::new();
        for (tid, lost) in &mut self.lost {
            lost.retain_mut(|pending| {
                let is_new = std::mem::take(&mut pending.is_new) && !all;
                if !is_new {
                    losses.push((*tid, pending.loss));
                }
                is_new
            });
        }
        self.lost.retain(|_, lost| !lost.is_empty());
        if let (true, Some((before, count))) = (all, self.lost_before) {
            let open = self.open_since(before).into_iter();
            losses.extend(open.map(|(tid, last)| (tid, Loss { first: last, last, count })));
        }
        for (tid, loss) in losses {
            if self.is_f1() || self.knows(tid) {
                let time = if loss.count == 0 { loss.last } else { loss.first };
                self.drop_events(tid, None, time, loss.count, DropReason::FULL);
            } else {
                // Not worth one of the few thread ids.
                self.break_here();
            }
        }
    }

    fn knows(&self, tid: u64) -> bool {
        self.threads.contains_key(&tid) || self.current.as_ref().is_some_and(|(current, _)| *current == tid)
    }

    /// Returns the virtual threads with open calls but without events after a time, with the times of their last events.
    fn open_since(&self, time: u64) -> Vec<(u64, u64)> {
        let current = self.current.iter().map(|(tid, thread)| (tid, thread));
        let all = self.threads.iter().chain(current);
        let open =
            all.filter(|(_, thread)| thread.is_virtual && !thread.stack.is_empty() && thread.last <= time);
        let mut open: Vec<(u64, u64)> = open.map(|(tid, thread)| (*tid, thread.last)).collect();
        open.sort_unstable();
        open
    }

    /// Reports that events of the current thread are missing.
    fn drop_current(&mut self, time: u64, count: u64, reason: DropReason) {
        if let Some((_, thread)) = &mut self.current {
            thread.forget_open();
        }
        self.drop_f1(time, count, reason);
    }

    /// Notes events of a thread that were discarded because recording is suspended.
    pub(crate) fn discard(&mut self, tid: u64, name: Option<&[u8]>, time: u64, count: u64) {
        if !self.select(tid, name, time) {
            return;
        }
        if let Some((_, thread)) = &mut self.current {
            if thread.missing == 0 {
                thread.missing_since = time;
            }
            thread.missing += count;
            thread.forget_open();
        }
    }

    /// Reports the discarded events of the current thread.
    pub(super) fn report_missing(&mut self) {
        let Some((_, thread)) = &mut self.current else { return };
        if thread.missing > 0 {
            let (count, since) = (std::mem::take(&mut thread.missing), thread.missing_since);
            self.drop_current(since, count, DropReason::SUSPENDED);
        }
    }

    /// Reports that events of a thread are missing.
    pub(crate) fn drop_events(
        &mut self,
        tid: u64,
        name: Option<&[u8]>,
        time: u64,
        count: u64,
        reason: DropReason,
    ) {
        if self.select(tid, name, time) {
            self.report_missing();
            self.drop_current(time, count, reason);
            self.break_here();
        }
    }

    /// Reports the discarded events of all threads, which have no further events.
    pub(crate) fn report_all_missing(&mut self) {
        let missing = self.threads.iter().filter(|(_, thread)| thread.missing > 0);
        let mut missing: Vec<u64> = missing.map(|(tid, _)| *tid).collect();
        missing.sort_unstable();
        self.report_missing();
        for tid in missing {
            if self.select(tid, None, 0) {
                self.report_missing();
            }
        }
    }
}
