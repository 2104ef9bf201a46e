//! Reports methods compiled at run time.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use runtap_model::order;
use serde::Serialize;

use super::collector::{Collected, CollectedEvent, Collector, small, text};
use super::{Collect, Durations, Observe, Payload, Report, StreamItem};
use crate::clr;
use crate::nested::Nested;

/// The compilations in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct JitReport {
    /// The number of compiled methods.
    pub compiled_count: u64,
    /// The number of methods that used precompiled code. `None` if no such events were recorded.
    pub precompiled_count: Option<u64>,
    /// The number of compiled methods without an assembly file.
    pub dynamic_count: u64,
    /// The size of the compiled machine code in bytes.
    pub code_bytes: u64,
    /// The durations of compilations whose start was recorded.
    pub compile_times: Durations,
    /// The compiled code by tier. Includes precompiled code only if the runtime reports it with the same event.
    pub tiers: Vec<TierCount>,
    /// The compiled methods in order of time.
    pub methods: Vec<CompiledMethod>,
}

/// The code of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierCount {
    /// The name of the tier.
    pub tier: &'static str,
    /// The number of methods.
    pub methods_count: u64,
    /// The size of their code in bytes.
    pub code_bytes: u64,
}

/// A compiled method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompiledMethod {
    /// The end of the compilation in nanoseconds since the start of the session.
    pub ts_ns: i64,
    /// The thread that compiled it.
    pub thread: u64,
    /// `Namespace.Type.Method(args)`.
    pub name: String,
    /// The optimization tier.
    pub tier: &'static str,
    /// The number of this version of the method if profilers replaced it. 0 for the original.
    pub rejit_id: u64,
    /// Whether the method has no assembly file.
    pub dynamic: bool,
    /// The size of the machine code in bytes.
    pub code_bytes: u32,
    /// The duration of the compilation in nanoseconds, without nested compilations on the same thread. `None` if unknown.
    pub compile_ns: Option<u64>,
}

#[derive(Debug, Clone)]
enum EventData {
    Begins {
        method: u64,
    },
    Loaded {
        method: u64,
        flags: u32,
        size: u32,
        start: u64,
        name: String,
        rejit_id: u64,
    },
    /// The runtime looked up precompiled code of a method; `entry_point` is 0 if there was none.
    LookedUp {
        method: u64,
        entry_point: u64,
    },
}

const DYNAMIC: u32 = 1;
const JITTED: u32 = 8;

/// `Method/R2RGetEntryPoint`.
const R2R_ENTRY_POINT: u32 = 159;

/// Collects a [`JitReport`].
#[derive(Debug)]
pub struct Jit(Collector<EventData>);

impl Default for Jit {
    fn default() -> Self {
        Self(Collector::new(|metadata| {
            metadata.provider == clr::RUNTIME
                && matches!(metadata.event_id, 141 | 143 | 145 | R2R_ENTRY_POINT)
        }))
    }
}

impl Report for JitReport {
    fn limit(&mut self, n: usize) {
        // The slowest methods matter most.
        if n < self.methods.len() {
            order::sort_by_key(&mut self.methods, |method| std::cmp::Reverse(method.compile_ns));
            self.methods.truncate(n);
        }
    }

    fn is_empty(&self) -> bool {
        self.compiled_count + self.precompiled_count.unwrap_or(0) == 0
    }
}

impl Collect for Jit {
    type Report = JitReport;

    fn finish(self) -> JitReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> JitReport {
        report(self.0.so_far())
    }
}

fn report((kept, clock): Collected<EventData>) -> JitReport {
    let mut report = JitReport::default();
    let mut tiers: std::collections::BTreeMap<&'static str, (u64, u64)> = std::collections::BTreeMap::new();
    let mut times = Vec::new();
    // Runtimes look up some methods twice and may send both events for one.
    let mut precompiled: HashSet<(u64, u64), RandomState> = HashSet::default();
    let mut precompiled_is_known = false;
    // The nested compilations of each thread: start, and time of inner compilations.
    let mut running: HashMap<u64, Nested<(u64, u64)>, RandomState> = HashMap::default();
    for CollectedEvent { timestamp, thread, what } in kept {
        let running = running.entry(thread).or_default();
        let (method, flags, size, start, name, rejit_id) = match what {
            EventData::Begins { method } => {
                running.begin(method, (timestamp, 0));
                continue;
            }
            EventData::LookedUp { method, entry_point } => {
                precompiled_is_known = true;
                if entry_point != 0 {
                    precompiled.insert((method, entry_point));
                }
                continue;
            }
            EventData::Loaded { method, flags, size, start, name, rejit_id } => {
                (method, flags, size, start, name, rejit_id)
            }
        };
        let tier = tiers.entry(clr::tier_name(flags)).or_default();
        *tier = (tier.0 + 1, tier.1 + u64::from(size));
        if flags & JITTED == 0 {
            precompiled_is_known = true;
            precompiled.insert((method, start));
            continue;
        }
        let compile_ns = running.end(method).map(|(since, within)| {
            let ns = clock.ns(since, timestamp);
            if let Some((_, outer)) = running.innermost() {
                *outer = outer.saturating_add(ns);
            }
            ns.saturating_sub(within)
        });
        times.extend(compile_ns);
        report.compiled_count += 1;
        report.dynamic_count += u64::from(flags & DYNAMIC != 0);
        report.code_bytes += u64::from(size);
        report.methods.push(CompiledMethod {
            ts_ns: clock.at(timestamp),
            thread,
            name,
            tier: clr::tier_name(flags),
            rejit_id,
            dynamic: flags & DYNAMIC != 0,
            code_bytes: size,
            compile_ns,
        });
    }
    report.precompiled_count = precompiled_is_known.then_some(precompiled.len() as u64);
    report.compile_times = Durations::of(times);
    report.tiers = tiers
        .into_iter()
        .map(|(tier, (methods_count, code_bytes))| TierCount { tier, methods_count, code_bytes })
        .collect();
    order::sort_by_key(&mut report.tiers, |tier| std::cmp::Reverse(tier.methods_count));
    report
}

impl Observe for Jit {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, _, payload| decode_event(metadata.event_id, payload));
    }
}

fn decode_event(id: u32, payload: Payload<'_>) -> Option<EventData> {
    let method = payload.u64("MethodID")?;
    if id == 145 {
        return Some(EventData::Begins { method });
    }
    if id == R2R_ENTRY_POINT {
        return Some(EventData::LookedUp { method, entry_point: payload.u64("EntryPoint")? });
    }
    let flags = small(payload, "MethodFlags")?;
    let (space, short) = (text(payload, "MethodNamespace"), text(payload, "MethodName"));
    let signature = text(payload, "MethodSignature");
    let arguments = signature.find('(').and_then(|at| signature.get(at..)).unwrap_or_default();
    let dot = if space.is_empty() { "" } else { "." };
    let start = payload.u64("MethodStartAddress").unwrap_or(0);
    let name = match short.as_str() {
        "" => format!("{start:#x}"),
        _ => format!("{space}{dot}{short}{arguments}"),
    };
    let rejit_id = payload.u64("ReJITID").unwrap_or(0);
    Some(EventData::Loaded { method, flags, size: small(payload, "MethodSize")?, start, name, rejit_id })
}
