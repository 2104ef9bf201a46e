//! The methods and threads of a live profile, the hottest first.

use std::cmp::Reverse;

use runtap_model::{FrameTotals, ThreadHandle, Ticks, Trace, View, order};

use super::TopData;

/// The order of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// By the time in the method itself.
    #[default]
    Own,
    /// By the time in the method and everything that it calls.
    Total,
    #[cfg(all(unix, feature = "tui"))]
    Name,
}

/// A method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MethodRow {
    pub(crate) name: String,
    /// The module, if known.
    pub(crate) module: Option<String>,
    /// The method with its module.
    pub(crate) label: String,
    pub(crate) own: u64,
    pub(crate) total: u64,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadRow {
    pub(crate) tid: u64,
    pub(crate) name: Option<String>,
    /// The weight of the samples in the view.
    pub(crate) weight: u64,
    /// The weight of all its samples, running or waiting.
    pub(crate) all: u64,
    /// The weight of the samples in which it ran.
    pub(crate) running: u64,
}

/// Returns the methods with samples in one thread, or in all threads, and the weight of all samples of the view.
pub(crate) fn methods(
    trace: &Trace,
    view: View,
    thread: Option<ThreadHandle>,
    by: Order,
) -> (Vec<MethodRow>, u64) {
    let (tables, totals) = FrameTotals::by_name_in(trace, view, thread);
    let mut rows: Vec<MethodRow> = tables
        .all_frames()
        .map(|(handle, frame)| MethodRow {
            name: frame.name.to_owned(),
            module: frame.module.map(str::to_owned).filter(|module| !module.is_empty()),
            label: frame.to_string(),
            own: totals.self_weight(handle),
            total: totals.total_weight(handle),
        })
        .filter(|row| row.total > 0)
        .collect();
    order::sort_by(&mut rows, |a, b| {
        let (first, second) = match by {
            Order::Own => ((b.own, b.total), (a.own, a.total)),
            Order::Total => ((b.total, b.own), (a.total, a.own)),
            #[cfg(all(unix, feature = "tui"))]
            Order::Name => ((0, 0), (0, 0)),
        };
        first.cmp(&second).then_with(|| a.label.cmp(&b.label))
    });
    (rows, totals.sum())
}

/// Returns the threads with samples, the one with the most samples in the view first.
pub(crate) fn threads(trace: &Trace, view: View) -> Vec<ThreadRow> {
    let mut rows: Vec<ThreadRow> = trace
        .threads()
        .map(|(_, thread)| ThreadRow {
            tid: thread.tid(),
            name: thread.name().map(str::to_owned),
            weight: thread.weight(view),
            all: thread.weight(View::ThreadTime),
            running: thread.weight(View::Cpu),
        })
        .filter(|row| row.all > 0)
        .collect();
    order::sort_by_key(&mut rows, |row| (Reverse((row.weight, row.all)), row.tid));
    rows
}

/// Returns a remark if the view leaves out most samples although the runtime does not mark all running threads as such.
pub(crate) fn remark(data: &TopData, view: View) -> Option<&'static str> {
    let sum = |view| data.trace.threads().map(|(_, thread)| thread.weight(view)).fold(0, u64::saturating_add);
    let is_doubtful = view == View::Cpu && !data.has_exact_states && sum(view) < sum(View::ThreadTime) / 2;
    is_doubtful.then_some("This runtime marks running threads as waiting, too: view thread-time counts all")
}

/// Returns the number of samples with this weight.
pub(crate) fn samples(weight: u64) -> u64 {
    weight / Ticks::DEFAULT_PERIOD_NS
}

/// Returns a part of a sum as a percentage. `None` if the sum is 0.
#[expect(clippy::cast_precision_loss, reason = "shown rounded")]
pub(crate) fn percent(part: u64, sum: u64) -> Option<f64> {
    (sum > 0).then(|| part as f64 / sum as f64 * 100.0)
}
