//! The conversion of a trace to a [`Report`]: IDs become signatures, and methods of several class loaders with the
//! same signature are combined.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use runtap_bytefrog_proto::{Dialect, Location, Rule};
use runtap_model::order;

use super::Model;
use super::apply::{TraceState, UNNAMED};
use super::call_tree::inclusive;
use super::exceptions::ExceptionSite;
use super::findings::Finding;
use super::report::{
    ExceptionReport, Line, MAX_PATH_LENGTH, MethodReport, Report, SegmentReport, SlowCall, ThreadReport,
    is_incomplete,
};
use super::tree::NONE;

impl TraceState {
    /// Returns the number of events of threads, methods and sites that exceeded a limit.
    fn beyond(&self) -> u64 {
        self.calls.beyond + self.exceptions.beyond + self.segments.beyond
    }
}

impl Model {
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.dialect.nanoseconds())
    }

    pub(super) fn signature(&self, id: u32) -> String {
        match self.state.names.methods.get(&id) {
            Some(name) => name.to_string(),
            None => format!("(method {id})"),
        }
    }

    /// Returns the sorted signatures, and the index of each method's signature.
    pub(super) fn signatures(&self) -> (Vec<String>, Vec<usize>) {
        let each: Vec<String> =
            self.state.calls.methods.iter().map(|method| self.signature(method.id)).collect();
        let mut sorted = each.clone();
        order::sort(&mut sorted);
        sorted.dedup();
        let which = each.iter().map(|signature| sorted.binary_search(signature).unwrap_or(0)).collect();
        (sorted, which)
    }

    /// Returns the report on the trace so far.
    pub fn report(&self) -> Report {
        let state = &self.state;
        let tree = self.call_tree(None);
        let (signatures, which) = self.signatures();
        let mut methods: Vec<MethodReport> = signatures
            .iter()
            .map(|signature| MethodReport { signature: signature.clone(), ..MethodReport::default() })
            .collect();
        let mut unnamed = 0;
        for ((index, method), at) in (0u32..).zip(&state.calls.methods).zip(&which) {
            let Some(report) = methods.get_mut(*at) else { continue };
            report.entries += method.entries;
            report.exits += method.exits;
            report.bubbles += method.bubbles;
            report.throws += method.throws;
            report.own = report.own.saturating_add(self.nanoseconds(method.own));
            report.has_run |= method.covered || method.entries > 0;
            if let Some(counted) = state.counted.get(&index) {
                let total = counted.total();
                let (calls, thrown, time) = report.counted.unwrap_or_default();
                report.counted = Some((
                    calls.saturating_add(total.calls),
                    thrown.saturating_add(total.thrown),
                    time.saturating_add(total.nanoseconds),
                ));
                report.has_run |= total.calls > 0;
            }
            unnamed += u64::from(!state.names.methods.contains_key(&method.id));
        }
        inclusive(&tree, &mut methods);
        let shared: Vec<Arc<str>> = signatures.into_iter().map(Arc::from).collect();
        let thread = |thread: usize| state.calls.threads.get(thread).map_or(0, |thread| thread.id);
        let threads = state.calls.threads.iter().map(|thread| ThreadReport {
            id: thread.id,
            name: state.names.threads.get(&thread.id).map(ToString::to_string),
            entries: thread.entries,
            ended: thread.ended,
        });
        // Names are compared by their ranks: names may have 64 KiB each, and there are hundreds of thousands of rows.
        let rank = |method: u32| which.get(method as usize).copied().unwrap_or(0);
        let named = |rank: usize| shared.get(rank).map_or_else(|| Arc::from(""), Arc::clone);
        let signature = |method: u32| named(rank(method));
        let sites = state.exceptions.sorted();
        let (classes, class_ranks, nameless) = self.exception_names(sites.iter().map(|(site, _)| site));
        let mut sites: Vec<_> = sites
            .into_iter()
            .map(|(site, count)| {
                let class = class_ranks.get(&site.exception).copied().unwrap_or(0);
                ((class, rank(site.method), site.line, site.fate), count)
            })
            .collect();
        order::sort(&mut sites);
        // Combine the IDs of several class loaders.
        sites.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        let exceptions = sites.into_iter().map(|((class, method, line, fate), count)| ExceptionReport {
            exception: classes.get(class).map_or_else(|| Arc::from(""), Arc::clone),
            signature: named(method),
            line,
            fate,
            count,
        });
        let scale = i64::try_from(self.dialect.nanoseconds()).unwrap_or(1);
        let segments = state.segments.all(&state.entries()).into_iter().map(|mut segment| {
            segment.start = segment.start.saturating_mul(scale);
            segment.end = segment.end.map(|end| end.saturating_mul(scale));
            let calls = segment.calls.iter().map(|(method, calls)| (rank(*method), *calls)).collect();
            let calls = merged(calls).into_iter().map(|(method, calls)| (named(method), calls)).collect();
            SegmentReport { segment, calls }
        });
        let slow_calls = state.calls.slow.calls().into_iter().map(|call| {
            let (path, depth) = self.path(call.node, call.method, &signature);
            SlowCall {
                took: self.nanoseconds(call.took),
                start: call.entered.saturating_mul(scale),
                thread: thread(call.thread),
                path,
                depth,
            }
        });
        let mut lines: Vec<(usize, Option<Location>, u64)> = state
            .visited
            .iter()
            .map(|((method, location), count)| {
                (rank(*method), state.locations.get(location).copied(), *count)
            })
            .collect();
        order::sort_by_key(&mut lines, |(method, location, count)| {
            let place = location.map(|place| (place.start_line, place.end_line, place.location));
            (*method, place, *count)
        });
        let lines = lines.into_iter().map(|(method, location, count)| Line {
            signature: named(method),
            location,
            count,
        });
        let mut findings = state.findings.all();
        let mut add = |rule: Rule, count: u64, what: &str| {
            if count > 0 {
                findings.push(Finding { rule, count, first: vec![format!("{count} {what}")] });
            }
        };
        add(Rule::UnknownMethod, unnamed, "methods");
        add(Rule::UnknownException, nameless, "exceptions");
        add(Rule::ClockBackwards, state.calls.backwards, "events");
        let exhausted = self.dialect != Dialect::F1 && state.calls.threads.len() > usize::from(u16::MAX);
        add(Rule::ThreadsExhausted, exhausted.into(), "time");
        order::sort_by_key(&mut findings, |finding| finding.rule);
        Report {
            dialect: self.dialect,
            counters: state.counters,
            sequences: self.sequences(),
            signatures: state.names.signatures(),
            methods,
            threads: threads.collect(),
            exceptions: exceptions.collect(),
            segments: segments.collect(),
            slow_calls: slow_calls.collect(),
            lines: lines.collect(),
            findings,
            without_node: state.calls.tree.without_node,
            beyond: state.beyond(),
            too_deep: state.calls.too_deep,
            unsent: false,
        }
    }

    /// Returns the sorted names of the exceptions at these sites, the index of each exception's name, and the
    /// number of exceptions without a name.
    fn exception_names<'s>(
        &self,
        sites: impl Iterator<Item = &'s ExceptionSite>,
    ) -> (Vec<Arc<str>>, HashMap<u32, usize>, u64) {
        let mut nameless = 0;
        let ids: HashSet<u32> = sites.map(|site| site.exception).collect();
        let each: Vec<(u32, Arc<str>)> = ids
            .into_iter()
            .map(|id| {
                let name = match self.state.names.exceptions.get(&id) {
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
        order::sort(&mut sorted);
        sorted.dedup();
        let ranks = each.into_iter().map(|(id, name)| (id, sorted.binary_search(&name).unwrap_or(0)));
        let ranks = ranks.collect();
        (sorted, ranks, nameless)
    }

    /// Returns [`Report::has_losses`] without creating a report, which is expensive.
    pub fn has_losses(&self) -> bool {
        let state = &self.state;
        let over_limit = [state.calls.tree.without_node, state.beyond(), state.calls.too_deep];
        is_incomplete(&state.counters, over_limit, state.findings.each())
    }

    fn sequences(&self) -> Option<(u64, u64)> {
        let last = self.window.next().checked_sub(1)?;
        (self.dialect != Dialect::F1 && self.state.events() > 0)
            .then(|| (self.state.first.unwrap_or(0), last))
    }

    /// Returns the methods of a call's stack as far as they are kept, outermost first and ending with the call, and
    /// the depth of the stack.
    fn path(
        &self,
        mut node: u32,
        method: u32,
        signature: &dyn Fn(u32) -> Arc<str>,
    ) -> (Vec<Arc<str>>, usize) {
        let nodes = self.state.calls.tree.nodes();
        let (mut path, mut depth) = (Vec::new(), 0);
        while let Some(at) = nodes.get(node as usize).filter(|at| at.parent != NONE) {
            if path.len() < MAX_PATH_LENGTH {
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

/// Sorts by the ranks of signatures, and adds up the calls of equal ones.
fn merged(mut calls: Vec<(usize, u64)>) -> Vec<(usize, u64)> {
    order::sort(&mut calls);
    calls.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    calls
}
