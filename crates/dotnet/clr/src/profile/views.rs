//! Converts the events of a view to weighted samples.

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use runtap_model::{FrameHandle, View, order};
use runtap_nettrace::TraceHeader;

use super::collect::{Collector, Raw, RawKind, Sampling, Type};
use super::namer::Namer;
use crate::frame;
use crate::gc;
use crate::names::Names;
use crate::nested::Nested;
use crate::suspensions::{Suspensions, Why};

/// Adds all samples of the view to the builder. `end` is the time of the stream's last event.
pub(super) fn add(
    view: View,
    mut collector: Collector,
    header: &TraceHeader,
    end: u64,
    names: &Names,
    namer: &mut Namer<'_>,
) {
    // The stream groups events by thread; a stable sort merges these runs.
    order::sort_by_number(&mut collector.raw, |raw| raw.timestamp);
    let mut add = Adder { header, namer };
    let raw = std::mem::take(&mut collector.raw);
    match view {
        View::Alloc => allocations(&raw, &collector, &mut add),
        View::Exceptions => exceptions(&raw, &collector, &mut add),
        View::Contention => contention(&raw, end, &mut add),
        View::Gc => pauses(&raw, end, &mut add),
        View::Jit => compilations(&raw, &collector, names, &mut add),
        View::Async => super::tasks::add(&raw, &collector, header, end, namer),
        _ => {}
    }
}

struct Adder<'a, 'b> {
    header: &'a TraceHeader,
    namer: &'a mut Namer<'b>,
}

impl Adder<'_, '_> {
    /// Adds a sample: a stack, and a frame that shows what happened.
    fn add(&mut self, raw: &Raw, weight: u64, leaf: Option<FrameHandle>) {
        let Some(thread) = self.namer.builder.thread_for_sample(raw.thread) else { return };
        let mut stack = self.namer.stack(raw.stack, raw.timestamp);
        let builder = &mut self.namer.builder;
        if let Some(frame) = leaf {
            stack = Some(builder.stack(stack, frame));
        }
        builder.add_event(thread, super::since_start(self.header, raw.timestamp), weight, stack);
    }

    fn label(&mut self, text: &str) -> Option<FrameHandle> {
        (!text.is_empty()).then(|| self.namer.builder.label(text))
    }

    fn ns(&self, from: u64, to: u64) -> u64 {
        u64::try_from(self.header.ticks_to_ns(i128::from(to) - i128::from(from))).unwrap_or(0)
    }
}

/// The runtime may report allocations in several ways; only the most exact one counts.
fn allocations(raw: &[Raw], collector: &Collector, add: &mut Adder<'_, '_>) {
    let sampling = |raw: &Raw| match raw.kind {
        RawKind::Allocated { by, .. } => Some(by),
        _ => None,
    };
    let best: Option<Sampling> = raw.iter().filter_map(sampling).max();
    for raw in raw.iter().filter(|raw| sampling(raw) == best) {
        let RawKind::Allocated { bytes, of, .. } = raw.kind else { continue };
        let label = match of {
            Type::Named(text) => add.label(collector.texts.get(text)),
            Type::Id(id) => match collector.types.get(&id) {
                Some(text) => add.label(collector.texts.get(*text)),
                None => add.label(&format!("type {id:#x}")),
            },
        };
        add.add(raw, bytes, label);
    }
}

fn exceptions(raw: &[Raw], collector: &Collector, add: &mut Adder<'_, '_>) {
    for raw in raw {
        if let RawKind::Thrown { of } = raw.kind {
            let label = add.label(collector.texts.get(of));
            add.add(raw, 1, label);
        }
    }
}

/// A wait counts where and when it began. A wait without an end lasts until the end of the recording, as in a deadlock.
fn contention(raw: &[Raw], end: u64, add: &mut Adder<'_, '_>) {
    let mut waiting: HashMap<u64, Raw, RandomState> = HashMap::default();
    let mut waits: Vec<(Raw, u64)> = Vec::new();
    for raw in raw {
        match raw.kind {
            RawKind::LockWanted => {
                waiting.insert(raw.thread, *raw);
            }
            RawKind::LockTaken { ns } => {
                if let Some(start) = waiting.remove(&raw.thread) {
                    waits.push((start, ns.unwrap_or_else(|| add.ns(start.timestamp, raw.timestamp))));
                }
            }
            _ => {}
        }
    }
    waits.extend(waiting.into_values().map(|start| (start, add.ns(start.timestamp, end))));
    order::sort_by_key(&mut waits, |(start, _)| (start.timestamp, start.thread));
    for (start, ns) in waits {
        add.add(&start, ns, None);
    }
}

/// A pause lasts from the request to stop all threads until they run again. Its stack is that of the code that caused the
/// collection, which is reported inside the pause or, by other runtimes, before it.
fn pauses(raw: &[Raw], end: u64, add: &mut Adder<'_, '_>) {
    let mut suspensions = Suspensions::default();
    let mut pause: Option<(Raw, Option<String>)> = None;
    let mut trigger: Option<Raw> = None;
    let mut close = |pause: Option<(Raw, Option<String>)>, at: u64| {
        if let Some((start, label)) = pause {
            let ns = add.ns(start.timestamp, at);
            let label = add.label(label.as_deref().unwrap_or("GC (suspension only)"));
            add.add(&start, ns, label);
        }
    };
    for raw in raw {
        match raw.kind {
            RawKind::Suspending { why } => {
                suspensions.begin(raw.thread, raw.timestamp, why);
                if why != Why::Other {
                    let stack = trigger.take().map_or(raw.stack, |trigger| trigger.stack);
                    pause = Some((Raw { stack, ..*raw }, None));
                }
            }
            RawKind::Triggered => match &mut pause {
                Some((start, _)) => start.stack = raw.stack,
                None => trigger = Some(*raw),
            },
            RawKind::Collecting { generation, reason, kind } => {
                if let Some((_, label)) = &mut pause {
                    let background = if kind == 1 { ", background" } else { "" };
                    label.get_or_insert_with(|| {
                        format!("GC gen {generation} ({}{background})", gc::reason_name(reason))
                    });
                }
            }
            RawKind::Resumed if suspensions.end(raw.thread).is_some() => close(pause.take(), raw.timestamp),
            _ => {}
        }
    }
    close(pause, end);
}

/// Adds the compilation times of methods, without nested compilations on the same thread.
fn compilations(raw: &[Raw], collector: &Collector, names: &Names, add: &mut Adder<'_, '_>) {
    let mut running: HashMap<u64, Nested<(Raw, u64)>, RandomState> = HashMap::default();
    let mut done: Vec<(Raw, u64)> = Vec::new();
    for raw in raw {
        let running = running.entry(raw.thread).or_default();
        match raw.kind {
            RawKind::Compiling { method, .. } => running.begin(method, (*raw, 0)),
            RawKind::Compiled { method } => {
                // The method was loaded without being compiled.
                let Some((start, within)) = running.end(method) else { continue };
                let ns = add.ns(start.timestamp, raw.timestamp);
                done.push((start, ns.saturating_sub(within)));
                if let Some((_, outer)) = running.innermost() {
                    *outer = outer.saturating_add(ns);
                }
            }
            _ => {}
        }
    }
    order::sort_by_key(&mut done, |(start, _)| (start.timestamp, start.thread));
    for (start, ns) in done {
        let RawKind::Compiling { module, name, .. } = start.kind else { continue };
        let module = names.code().module_name(module, start.timestamp);
        let frame = add.namer.builder.add_frame(&frame::clr(module, collector.texts.get(name)));
        add.add(&start, ns, Some(frame));
    }
}
