//! How a [`Report`] is made of a trace: ids become signatures, and what the ids of several class loaders have with one signature
//! is added up.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use runtap_bytefrog_proto::{Dialect, Location, Rule};

use super::Model;
use super::apply::{Core, UNNAMED};
use super::call_tree::inclusive;
use super::exceptions::Place;
use super::findings::Finding;
use super::report::{
    ExceptionReport, LONGEST_PATH, Line, MethodReport, Report, SegmentReport, SlowCall, ThreadReport, loses,
};
use super::tree::NONE;

impl Core {
    /// Events of threads and methods, and places, that had no room.
    fn beyond(&self) -> u64 {
        self.calls.beyond + self.flow.beyond + self.segments.beyond
    }
}

impl Model {
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.dialect.nanoseconds())
    }

    pub(super) fn signature(&self, id: u32) -> String {
        match self.core.names.methods.get(&id) {
            Some(name) => name.to_string(),
            None => format!("(method {id})"),
        }
    }

    /// The signatures, sorted, and which one each method has.
    pub(super) fn signatures(&self) -> (Vec<String>, Vec<usize>) {
        let each: Vec<String> =
            self.core.calls.methods.iter().map(|method| self.signature(method.id)).collect();
        let mut sorted = each.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let which = each.iter().map(|signature| sorted.binary_search(signature).unwrap_or(0)).collect();
        (sorted, which)
    }

    /// What the trace has come to so far.
    pub fn report(&self) -> Report {
        let core = &self.core;
        let tree = self.call_tree(None);
        let (signatures, which) = self.signatures();
        let mut methods: Vec<MethodReport> = signatures
            .iter()
            .map(|signature| MethodReport { signature: signature.clone(), ..MethodReport::default() })
            .collect();
        let mut unnamed = 0;
        for ((index, method), at) in (0u32..).zip(&core.calls.methods).zip(&which) {
            let Some(report) = methods.get_mut(*at) else { continue };
            report.entries += method.entries;
            report.exits += method.exits;
            report.bubbles += method.bubbles;
            report.throws += method.throws;
            report.own = report.own.saturating_add(self.nanoseconds(method.own));
            report.has_run |= method.covered || method.entries > 0;
            if let Some(counted) = core.counted.get(&index) {
                let total = counted.total();
                let (calls, thrown, time) = report.counted.unwrap_or_default();
                report.counted = Some((
                    calls.saturating_add(total.calls),
                    thrown.saturating_add(total.thrown),
                    time.saturating_add(total.nanoseconds),
                ));
                report.has_run |= total.calls > 0;
            }
            unnamed += u64::from(!core.names.methods.contains_key(&method.id));
        }
        inclusive(&tree, &mut methods);
        let shared: Vec<Arc<str>> = signatures.into_iter().map(Arc::from).collect();
        let thread = |thread: usize| core.calls.threads.get(thread).map_or(0, |thread| thread.id);
        let threads = core.calls.threads.iter().map(|thread| ThreadReport {
            id: thread.id,
            name: core.names.threads.get(&thread.id).map(ToString::to_string),
            entries: thread.entries,
            ended: thread.ended,
        });
        // Names are compared by their ranks: two of them may have 64 KiB each, and there are hundreds of thousands of rows.
        let rank = |method: u32| which.get(method as usize).copied().unwrap_or(0);
        let named = |rank: usize| shared.get(rank).map_or_else(|| Arc::from(""), Arc::clone);
        let signature = |method: u32| named(rank(method));
        let places = core.flow.places();
        let (classes, class_ranks, nameless) = self.exception_names(places.iter().map(|(place, _)| place));
        let mut places: Vec<_> = places
            .into_iter()
            .map(|(place, count)| {
                let class = class_ranks.get(&place.exception).copied().unwrap_or(0);
                ((class, rank(place.method), place.line, place.fate), count)
            })
            .collect();
        places.sort_unstable();
        // Ids of several class loaders.
        places.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let exceptions = places.into_iter().map(|((class, method, line, fate), count)| ExceptionReport {
            exception: classes.get(class).map_or_else(|| Arc::from(""), Arc::clone),
            signature: named(method),
            line,
            fate,
            count,
        });
        let scale = i64::try_from(self.dialect.nanoseconds()).unwrap_or(1);
        let segments = core.segments.all(&core.entries()).into_iter().map(|mut segment| {
            segment.start = segment.start.saturating_mul(scale);
            segment.end = segment.end.map(|end| end.saturating_mul(scale));
            let calls = segment.calls.iter().map(|(method, calls)| (rank(*method), *calls)).collect();
            let calls = merged(calls).into_iter().map(|(method, calls)| (named(method), calls)).collect();
            SegmentReport { segment, calls }
        });
        let slow_calls = core.calls.slow.calls().into_iter().map(|call| {
            let (path, depth) = self.path(call.node, call.method, &signature);
            SlowCall {
                took: self.nanoseconds(call.took),
                start: call.entered.saturating_mul(scale),
                thread: thread(call.thread),
                path,
                depth,
            }
        });
        let mut lines: Vec<(usize, Option<Location>, u64)> = core
            .visited
            .iter()
            .map(|((method, location), count)| (rank(*method), core.locations.get(location).copied(), *count))
            .collect();
        lines.sort_by_key(|(method, location, count)| {
            let place = location.map(|place| (place.start_line, place.end_line, place.location));
            (*method, place, *count)
        });
        let lines = lines.into_iter().map(|(method, location, count)| Line {
            signature: named(method),
            location,
            count,
        });
        let mut findings = core.findings.all();
        let mut add = |rule: Rule, count: u64, what: &str| {
            if count > 0 {
                findings.push(Finding { rule, count, first: vec![format!("{count} {what}")] });
            }
        };
        add(Rule::UnknownMethod, unnamed, "methods");
        add(Rule::UnknownException, nameless, "exceptions");
        add(Rule::ClockBackwards, core.calls.backwards, "events");
        let exhausted = self.dialect != Dialect::F1 && core.calls.threads.len() > usize::from(u16::MAX);
        add(Rule::ThreadsExhausted, exhausted.into(), "time");
        findings.sort_by_key(|finding| finding.rule);
        Report {
            dialect: self.dialect,
            counters: core.counters,
            sequences: self.sequences(),
            signatures: core.names.signatures(),
            methods,
            threads: threads.collect(),
            exceptions: exceptions.collect(),
            segments: segments.collect(),
            slow_calls: slow_calls.collect(),
            lines: lines.collect(),
            findings,
            untold: core.calls.tree.untold,
            beyond: core.beyond(),
            too_deep: core.calls.too_deep,
            unsent: false,
        }
    }

    /// The names of the exceptions at these places, sorted, which of them each exception has, and how many have none.
    fn exception_names<'p>(
        &self,
        places: impl Iterator<Item = &'p Place>,
    ) -> (Vec<Arc<str>>, HashMap<u32, usize>, u64) {
        let mut nameless = 0;
        let ids: HashSet<u32> = places.map(|place| place.exception).collect();
        let each: Vec<(u32, Arc<str>)> = ids
            .into_iter()
            .map(|id| {
                let name = match self.core.names.exceptions.get(&id) {
                    Some(name) => name.to_string(),
                    None if id == UNNAMED => "(any)".to_owned(),
                    None => {
                        nameless += 1;
                        format!("(exception {id})")
                    }
                };
                (id, name.into())
            })
            .collect();
        let mut sorted: Vec<Arc<str>> = each.iter().map(|(_, name)| Arc::clone(name)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let ranks = each.into_iter().map(|(id, name)| (id, sorted.binary_search(&name).unwrap_or(0)));
        let ranks = ranks.collect();
        (sorted, ranks, nameless)
    }

    /// [`Report::has_losses`] without a report, which is much work.
    pub fn has_losses(&self) -> bool {
        let core = &self.core;
        let without_room = [core.calls.tree.untold, core.beyond(), core.calls.too_deep];
        loses(&core.counters, without_room, core.findings.each())
    }

    fn sequences(&self) -> Option<(u64, u64)> {
        let last = self.window.next().checked_sub(1)?;
        (self.dialect != Dialect::F1 && self.core.events() > 0).then(|| (self.core.first.unwrap_or(0), last))
    }

    /// The callers of a call, outermost first, and itself, as far as they are kept; and how many there are.
    fn path(
        &self,
        mut node: u32,
        method: u32,
        signature: &dyn Fn(u32) -> Arc<str>,
    ) -> (Vec<Arc<str>>, usize) {
        let nodes = self.core.calls.tree.nodes();
        let (mut path, mut depth) = (Vec::new(), 0);
        while let Some(at) = nodes.get(node as usize).filter(|at| at.parent != NONE) {
            if path.len() < LONGEST_PATH {
                path.push(signature(at.method));
            }
            depth += 1;
            node = at.parent;
        }
        if path.is_empty() {
            path.push(signature(method));
        }
        path.reverse();
        let depth = depth.max(path.len());
        (path, depth)
    }
}

/// Sorted by the ranks of signatures, with the calls of equal ones added up.
fn merged(mut calls: Vec<(usize, u64)>) -> Vec<(usize, u64)> {
    calls.sort_unstable();
    calls.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    calls
}
