//! Answers that are made of stacks: where the time went, what was allocated and where, where threads waited.

use runtap_ingest::report::LocksReport;
use runtap_model::{FrameHandle, FrameTotals, StackHandle, StackWeights, Trace, View};
use serde::Serialize;

use super::Answer;
use super::table::{Table, at, dash, ns};
use crate::output::Clean;
use crate::units::{Bytes, Count, Things};

/// `runtap.report.cpu/1`
#[derive(Serialize)]
pub(super) struct CpuReport {
    view: String,
    samples: u64,
    unit: &'static str,
    total: u64,
    threads_count: usize,
    frames: Vec<FrameRow>,
    threads: Vec<ThreadRow>,
}

#[derive(Serialize)]
struct FrameRow {
    name: String,
    module: Option<String>,
    #[serde(rename = "self")]
    own: u64,
    total: u64,
    /// As people see it.
    #[serde(skip)]
    label: String,
}

#[derive(Serialize)]
struct ThreadRow {
    thread: u64,
    name: Option<String>,
    samples: u64,
    total: u64,
    /// With its process, where there are several.
    #[serde(skip)]
    label: String,
}

impl CpuReport {
    pub(super) fn new(trace: &Trace, view: View, inclusive: bool) -> Self {
        let (tables, totals) = FrameTotals::by_name(trace, view);
        let mut frames: Vec<FrameRow> = tables
            .all_frames()
            .map(|(handle, frame)| FrameRow {
                name: frame.name.to_owned(),
                module: frame.module.map(str::to_owned).filter(|module| !module.is_empty()),
                own: totals.self_ns(handle),
                total: totals.total_ns(handle),
                label: frame.to_string(),
            })
            .filter(|row| row.total > 0)
            .collect();
        frames.sort_by_key(|row| {
            std::cmp::Reverse(if inclusive { (row.total, row.own) } else { (row.own, row.total) })
        });
        let mut threads: Vec<ThreadRow> = trace
            .threads()
            .map(|(_, thread)| ThreadRow {
                thread: thread.tid(),
                name: thread.name().map(str::to_owned),
                samples: thread.ticks(view),
                total: thread.weight_ns(view),
                label: thread.label(),
            })
            .filter(|row| row.samples > 0)
            .collect();
        threads.sort_by_key(|row| std::cmp::Reverse(row.total));
        Self {
            view: view.to_string(),
            samples: totals.ticks(),
            unit: match view.unit() {
                runtap_model::Unit::Bytes => "bytes",
                runtap_model::Unit::Count => "count",
                _ => "nanoseconds",
            },
            total: totals.sum_ns(),
            threads_count: threads.len(),
            frames,
            threads,
        }
    }
}

impl Answer for CpuReport {
    fn limit(&mut self, n: usize) {
        self.frames.truncate(n);
        self.threads.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.samples == 0
    }

    fn text(&self) -> String {
        let amount = |n: u64| match self.unit {
            "bytes" => Bytes(n).to_string(),
            "count" => Count(n).to_string(),
            _ => ns(n),
        };
        let mut table = Table::new(format_args!(
            "{}, {} in {} (view {})",
            Things(self.samples, "sample"),
            amount(self.total),
            Things(self.threads_count as u64, "thread"),
            self.view
        ));
        table.heading(format_args!("{:>12} {:>6}  {:>12} {:>6}  FRAME", "SELF", "%", "TOTAL", "%"));
        let share = |part: u64| percent(part, self.total);
        for FrameRow { own, total, label, .. } in &self.frames {
            table.row(format_args!(
                "{:>12} {:>6}  {:>12} {:>6}  {}",
                amount(*own),
                share(*own),
                amount(*total),
                share(*total),
                Clean(label)
            ));
        }
        table.heading(format_args!("\n{:>12} {:>6}  {:>12}  THREAD", "TOTAL", "%", "SAMPLES"));
        for ThreadRow { samples, total, label, .. } in &self.threads {
            table.row(format_args!(
                "{:>12} {:>6}  {:>12}  {}",
                amount(*total),
                share(*total),
                Count(*samples),
                Clean(label)
            ));
        }
        table.text()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share with one digit")]
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { dash() } else { format!("{:.1}", part as f64 * 100.0 / whole as f64) }
}

/// A place in the code, and what happened there.
struct Place {
    name: String,
    module: Option<String>,
    count: u64,
    weight: u64,
    label: String,
}

/// Which frame of a stack is the place where something happened.
#[derive(Clone, Copy)]
enum Which {
    Innermost,
    Caller,
    /// The innermost one that is not a lock's own code.
    Locker,
}

impl Which {
    fn of(self, trace: &Trace, handle: StackHandle) -> Option<FrameHandle> {
        let mut frames = trace.stacks().frames(handle);
        match self {
            Self::Innermost => frames.next(),
            Self::Caller => frames.nth(1),
            Self::Locker => {
                let of_lock = |frame: &FrameHandle| {
                    let name = trace.frame(*frame).name;
                    ["System.Threading.Monitor.", "System.Threading.Lock."]
                        .iter()
                        .any(|of| name.starts_with(of))
                };
                frames.find(|frame| !of_lock(frame)).or_else(|| trace.stacks().frames(handle).next())
            }
        }
    }
}

fn places(trace: &Trace, view: View, which: Which) -> Vec<Place> {
    let weights = StackWeights::new(trace, view, None);
    let mut sums: Vec<(u64, u64)> = vec![(0, 0); trace.frames().len()];
    for (handle, _) in trace.stacks().iter() {
        let (count, weight) = (weights.self_ticks(handle), weights.self_ns(handle));
        if count == 0 {
            continue;
        }
        if let Some(sum) = which.of(trace, handle).and_then(|frame| sums.get_mut(frame.index())) {
            *sum = (sum.0 + count, sum.1.saturating_add(weight));
        }
    }
    let mut places: Vec<Place> = trace
        .all_frames()
        .zip(sums)
        .filter(|(_, (count, _))| *count > 0)
        .map(|((_, frame), (count, weight))| Place {
            name: frame.name.to_owned(),
            module: frame.module.map(str::to_owned).filter(|module| !module.is_empty()),
            count,
            weight,
            label: frame.to_string(),
        })
        .collect();
    places.sort_by_key(|place| std::cmp::Reverse((place.weight, place.count)));
    places
}

/// `runtap.report.alloc/1`
#[derive(Serialize)]
pub(super) struct AllocReport {
    /// An estimate, from samples.
    allocated_bytes: u64,
    samples_count: u64,
    types: Vec<AllocType>,
    sites: Vec<AllocSite>,
}

#[derive(Serialize)]
struct AllocType {
    #[serde(rename = "type")]
    name: String,
    allocated_bytes: u64,
    samples_count: u64,
}

#[derive(Serialize)]
struct AllocSite {
    name: String,
    module: Option<String>,
    allocated_bytes: u64,
    samples_count: u64,
    #[serde(skip)]
    label: String,
}

impl AllocReport {
    pub(super) fn new(trace: &Trace) -> Self {
        let types = places(trace, View::Alloc, Which::Innermost).into_iter();
        let sites = places(trace, View::Alloc, Which::Caller).into_iter();
        let totals = FrameTotals::new(trace, View::Alloc, None);
        Self {
            allocated_bytes: totals.sum_ns(),
            samples_count: totals.ticks(),
            types: types
                .map(|place| AllocType {
                    name: place.name,
                    allocated_bytes: place.weight,
                    samples_count: place.count,
                })
                .collect(),
            sites: sites
                .map(|place| AllocSite {
                    name: place.name,
                    module: place.module,
                    allocated_bytes: place.weight,
                    samples_count: place.count,
                    label: place.label,
                })
                .collect(),
        }
    }
}

impl Answer for AllocReport {
    fn limit(&mut self, n: usize) {
        self.types.truncate(n);
        self.sites.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.samples_count == 0
    }

    fn text(&self) -> String {
        let mut table = Table::new(format_args!(
            "about {} allocated, from {}",
            Bytes(self.allocated_bytes),
            Things(self.samples_count, "sample")
        ));
        table.heading(format_args!("{:>12} {:>6}  {:>8}  TYPE", "BYTES", "%", "SAMPLES"));
        for AllocType { name, allocated_bytes, samples_count } in &self.types {
            let share = percent(*allocated_bytes, self.allocated_bytes);
            let (bytes, samples) = (Bytes(*allocated_bytes).to_string(), Count(*samples_count));
            table.row(format_args!("{bytes:>12} {share:>6}  {samples:>8}  {}", Clean(name)));
        }
        table.heading(format_args!("\n{:>12} {:>6}  {:>8}  ALLOCATED BY", "BYTES", "%", "SAMPLES"));
        for AllocSite { allocated_bytes, samples_count, label, .. } in &self.sites {
            let share = percent(*allocated_bytes, self.allocated_bytes);
            let (bytes, samples) = (Bytes(*allocated_bytes).to_string(), Count(*samples_count));
            table.row(format_args!("{bytes:>12} {share:>6}  {samples:>8}  {}", Clean(label)));
        }
        table.text()
    }
}

/// `runtap.report.contention/1`
#[derive(Serialize)]
pub(super) struct ContentionReport {
    #[serde(flatten)]
    locks: LocksReport,
    sites: Vec<WaitSite>,
}

#[derive(Serialize)]
struct WaitSite {
    name: String,
    module: Option<String>,
    contentions_count: u64,
    wait_ns: u64,
    #[serde(skip)]
    label: String,
}

impl ContentionReport {
    pub(super) fn new(locks: LocksReport, trace: &Trace) -> Self {
        let sites = places(trace, View::Contention, Which::Locker).into_iter().map(|place| WaitSite {
            name: place.name,
            module: place.module,
            contentions_count: place.count,
            wait_ns: place.weight,
            label: place.label,
        });
        Self { locks, sites: sites.collect() }
    }
}

impl Answer for ContentionReport {
    fn limit(&mut self, n: usize) {
        self.locks.contentions.truncate(n);
        self.locks.handle_waits.truncate(n);
        self.sites.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.locks.contentions_count + self.locks.handle_waits_count == 0
    }

    fn text(&self) -> String {
        let LocksReport { contentions_count, unfinished_count, waits, contentions, .. } = &self.locks;
        let LocksReport { handle_waits_count, handle_wait_times, handle_waits, .. } = &self.locks;
        let others = if *handle_waits_count == 0 {
            String::new()
        } else {
            format!(
                "\n{} for something else, {} in all, the longest {}; {} did not end",
                Things(*handle_waits_count, "wait"),
                ns(handle_wait_times.total_ns),
                ns(handle_wait_times.max_ns),
                Count(self.locks.handle_waits_unfinished_count)
            )
        };
        let mut table = Table::new(format_args!(
            "{} for locks, {} in all, the longest {}; {} did not end{others}",
            Things(*contentions_count, "wait"),
            ns(waits.total_ns),
            ns(waits.max_ns),
            Count(*unfinished_count)
        ));
        table.heading(format_args!("{:>12}  {:>8}  WAITED IN", "TIME", "WAITS"));
        for WaitSite { contentions_count, wait_ns, label, .. } in &self.sites {
            table.row(format_args!(
                "{:>12}  {:>8}  {}",
                ns(*wait_ns),
                Count(*contentions_count),
                Clean(label)
            ));
        }
        table.heading(format_args!("\n{:>14} {:>12} {:>8} {:>8}  LOCK", "AT", "WAITED", "THREAD", "OWNER"));
        for wait in contentions {
            table.row(format_args!(
                "{:>14} {:>12} {:>8} {:>8}  {}",
                at(wait.start_ns),
                wait.wait_ns.map_or_else(dash, ns),
                wait.thread,
                wait.owner_thread.map_or_else(dash, |thread| thread.to_string()),
                wait.lock.as_deref().unwrap_or("-")
            ));
        }
        if !handle_waits.is_empty() {
            table.heading(format_args!("\n{:>14} {:>12} {:>8}  SOURCE", "AT", "WAITED", "THREAD"));
            for wait in handle_waits {
                table.row(format_args!(
                    "{:>14} {:>12} {:>8}  {}",
                    at(wait.start_ns),
                    wait.wait_ns.map_or_else(dash, ns),
                    wait.thread,
                    Clean(&wait.source)
                ));
            }
        }
        table.text()
    }
}
