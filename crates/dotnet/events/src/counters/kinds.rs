//! The kinds of counters, and their values for each requested interval. Calls the program's own code only in
//! [`Slot::read`] and [`Slot::mark`], on the timer's thread, without any lock.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CounterSpec;
use super::process::Cpu;
use crate::number::AtomicF64;

type Read = Box<dyn Fn() -> f64 + Send + Sync>;

/// A counter with its specification.
pub(super) struct Slot {
    pub(super) spec: CounterSpec,
    pub(super) kind: CounterKind,
}

pub(super) enum CounterKind {
    Mean(Means),
    Sum {
        total: AtomicF64,
        marks: Marks<f64>,
    },
    Polled(Read),
    PolledSum {
        read: Read,
        marks: Marks<f64>,
    },
    /// The processor time of the process at the last report.
    CpuUsage {
        now: Box<dyn Fn() -> Cpu + Send + Sync>,
        marks: Marks<Cpu>,
    },
}

/// The values of a report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reading {
    Mean { mean: f64, deviation: f64, count: i32, min: f64, max: f64 },
    Increment(f64),
}

impl CounterKind {
    pub(super) fn mean() -> Self {
        Self::Mean(Means::default())
    }

    pub(super) fn sum() -> Self {
        Self::Sum { total: AtomicF64::new(0.0), marks: Marks::default() }
    }

    pub(super) fn polled_sum(read: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self::PolledSum { read: Box::new(read), marks: Marks::default() }
    }

    pub(super) fn cpu_usage(now: impl Fn() -> Cpu + Send + Sync + 'static) -> Self {
        Self::CpuUsage { now: Box::new(now), marks: Marks::default() }
    }
}

impl Slot {
    /// Starts gathering values for an interval. Returns whether [`mark`](Self::mark) must be called.
    pub(super) fn begin(&self, interval: u64) -> bool {
        match &self.kind {
            CounterKind::Mean(means) => means.begin(interval),
            CounterKind::Sum { total, marks } => marks.begin(interval, Some(total.load())),
            CounterKind::Polled(_) => {}
            CounterKind::PolledSum { marks, .. } => {
                marks.begin(interval, None);
                return true;
            }
            CounterKind::CpuUsage { now, marks } => marks.begin(interval, Some(now())),
        }
        false
    }

    /// Reads the start values of the intervals that have started since the last call.
    pub(super) fn mark(&self) {
        if let CounterKind::PolledSum { read, marks } = &self.kind
            && marks.is_any_missing()
            && let Some(total) = called(read)
        {
            marks.set_missing(total);
        }
    }

    pub(super) fn end(&self, interval: u64) {
        match &self.kind {
            CounterKind::Mean(means) => means.end(interval),
            CounterKind::Sum { marks, .. } | CounterKind::PolledSum { marks, .. } => marks.end(interval),
            CounterKind::CpuUsage { marks, .. } => marks.end(interval),
            CounterKind::Polled(_) => {}
        }
    }

    /// Returns the values for an interval since the last report. `None` if there are none.
    pub(super) fn read(&self, interval: u64) -> Option<Reading> {
        match &self.kind {
            CounterKind::Mean(means) => Some(means.take(interval)?.reading()),
            CounterKind::Sum { total, marks } => increment(marks, interval, total.load()),
            CounterKind::Polled(read) => Some(Reading::one(called(read)?)),
            CounterKind::PolledSum { read, marks } => increment(marks, interval, called(read)?),
            CounterKind::CpuUsage { now, marks } => {
                let now = now();
                Some(Reading::one(now.since(&marks.advance(interval, now)?)))
            }
        }
    }
}

impl Reading {
    fn one(value: f64) -> Self {
        Self::Mean { mean: value, deviation: 0.0, count: 1, min: value, max: value }
    }
}

fn increment(marks: &Marks<f64>, interval: u64, total: f64) -> Option<Reading> {
    marks.advance(interval, total).map(|mark| Reading::Increment(total - mark))
}

/// Calls the program's code. `None` if it panics.
fn called(read: &Read) -> Option<f64> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// The values since the last report, for each interval.
#[derive(Debug, Default)]
pub(super) struct Means {
    active: AtomicBool,
    of_intervals: Mutex<Vec<(u64, Values)>>,
}

impl Means {
    fn of_intervals(&self) -> MutexGuard<'_, Vec<(u64, Values)>> {
        self.of_intervals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, interval: u64) {
        self.of_intervals().push((interval, Values::default()));
        self.active.store(true, Ordering::Relaxed);
    }

    fn end(&self, interval: u64) {
        let mut of_intervals = self.of_intervals();
        of_intervals.retain(|(other, _)| *other != interval);
        self.active.store(!of_intervals.is_empty(), Ordering::Relaxed);
    }

    fn take(&self, interval: u64) -> Option<Values> {
        let mut of_intervals = self.of_intervals();
        let (_, values) = of_intervals.iter_mut().find(|(other, _)| *other == interval)?;
        Some(std::mem::take(values))
    }

    fn record(&self, value: f64) {
        for (_, values) in self.of_intervals().iter_mut() {
            values.add(value);
        }
    }
}

/// Mean and deviation by Welford's method, which is accurate for values far from zero, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    count: u32,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Default for Values {
    fn default() -> Self {
        Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Values {
    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        let from_old = value - self.mean;
        self.mean += from_old / f64::from(self.count);
        self.squares += from_old * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Returns the values for a report; all 0 if none was recorded.
    fn reading(&self) -> Reading {
        if self.count == 0 {
            return Reading::Mean { mean: 0.0, deviation: 0.0, count: 0, min: 0.0, max: 0.0 };
        }
        let deviation = (self.squares / f64::from(self.count)).sqrt();
        let count = i32::try_from(self.count).unwrap_or(i32::MAX);
        Reading::Mean { mean: self.mean, deviation, count, min: self.min, max: self.max }
    }
}

/// The value at the last report, for each interval. `None` before the first.
#[derive(Debug)]
pub(super) struct Marks<T>(Mutex<Vec<(u64, Option<T>)>>);

impl<T> Default for Marks<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy> Marks<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Option<T>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, interval: u64, mark: Option<T>) {
        self.lock().push((interval, mark));
    }

    fn end(&self, interval: u64) {
        self.lock().retain(|(other, _)| *other != interval);
    }

    fn is_any_missing(&self) -> bool {
        self.lock().iter().any(|(_, mark)| mark.is_none())
    }

    fn set_missing(&self, value: T) {
        self.lock().iter_mut().for_each(|(_, mark)| *mark = mark.or(Some(value)));
    }

    /// Stores the current value and returns the previous one.
    fn advance(&self, interval: u64, now: T) -> Option<T> {
        let mut marks = self.lock();
        let (_, mark) = marks.iter_mut().find(|(other, _)| *other == interval)?;
        mark.replace(now)
    }
}

/// A counter of recorded values. See [`EventCounters::event_counter`](super::EventCounters::event_counter).
#[derive(Debug, Clone)]
pub struct EventCounter {
    slot: Arc<Slot>,
}

impl EventCounter {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        Self { slot }
    }

    /// Records a value. A single load if no session requests counters.
    #[inline]
    pub fn record(&self, value: f64) {
        if let CounterKind::Mean(means) = &self.slot.kind
            && means.active.load(Ordering::Relaxed)
        {
            means.record(value);
        }
    }
}

/// A counter of increments. See [`EventCounters::incrementing`](super::EventCounters::incrementing).
#[derive(Debug, Clone)]
pub struct IncrementingEventCounter {
    slot: Arc<Slot>,
}

impl IncrementingEventCounter {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        Self { slot }
    }

    /// Adds to the counter, whether a session requests it or not.
    #[inline]
    pub fn increment(&self, by: f64) {
        if let CounterKind::Sum { total, .. } = &self.slot.kind {
            total.add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::time::{Duration, Instant};

    use super::*;

    fn slot(kind: CounterKind) -> Slot {
        Slot { spec: CounterSpec::new("c"), kind }
    }

    #[test]
    fn each_interval_has_its_own_values() {
        let slot = slot(CounterKind::mean());
        let record = |value| match &slot.kind {
            CounterKind::Mean(means) => means.record(value),
            _ => unreachable!(),
        };
        slot.begin(1000);
        record(10.0);
        record(20.0);
        slot.begin(5000);
        record(30.0);
        let Some(Reading::Mean { mean, deviation, count: 3, min: 10.0, max: 30.0 }) = slot.read(1000) else {
            panic!("three values")
        };
        // The values that .NET reports.
        assert!((mean - 20.0).abs() < 1e-12 && (deviation - 8.164_965_809_277_26).abs() < 1e-12);
        let nothing = Reading::Mean { mean: 0.0, deviation: 0.0, count: 0, min: 0.0, max: 0.0 };
        assert_eq!(slot.read(1000), Some(nothing));
        let one = Reading::Mean { mean: 30.0, deviation: 0.0, count: 1, min: 30.0, max: 30.0 };
        assert_eq!(slot.read(5000), Some(one));
        slot.end(5000);
        assert_eq!(slot.read(5000), None);
    }

    #[test]
    fn increments_count_from_the_start_of_an_interval() {
        let slot = slot(CounterKind::sum());
        let CounterKind::Sum { total, .. } = &slot.kind else { unreachable!() };
        total.add(100.0);
        slot.begin(1000);
        total.add(2.0);
        slot.begin(500);
        total.add(3.0);
        assert_eq!(slot.read(1000), Some(Reading::Increment(5.0)));
        assert_eq!(slot.read(500), Some(Reading::Increment(3.0)));
        assert_eq!(slot.read(500), Some(Reading::Increment(0.0)));
    }

    #[test]
    fn code_that_panics_reports_nothing() {
        let broken = slot(CounterKind::Polled(Box::new(|| panic!("no value"))));
        assert_eq!(broken.read(1), None);
        let broken = slot(CounterKind::polled_sum(|| panic!("no value")));
        assert!(broken.begin(1));
        broken.mark();
        assert_eq!(broken.read(1), None);
    }

    #[test]
    fn the_program_is_called_when_intervals_are_marked_and_read() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let polled =
            slot(CounterKind::polled_sum(move || f64::from(counted.fetch_add(1, Ordering::Relaxed))));
        assert!(polled.begin(1000) && polled.begin(500));
        assert_eq!(calls.load(Ordering::Relaxed), 0, "any thread may start an interval");
        polled.mark();
        polled.mark();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(polled.read(500), Some(Reading::Increment(1.0)));
        assert_eq!(polled.read(1000), Some(Reading::Increment(2.0)));
    }

    #[test]
    fn processor_time_is_measured_for_each_interval_of_its_own() {
        let start = Instant::now();
        let seconds = Duration::from_secs;
        let clocks = Arc::new(Mutex::new((seconds(0), seconds(0))));
        let read = Arc::clone(&clocks);
        let slot = slot(CounterKind::cpu_usage(move || {
            let (used, elapsed) = *read.lock().unwrap();
            Cpu { used, at: start + elapsed }
        }));
        let usage = |interval| match slot.read(interval) {
            Some(Reading::Mean { mean, .. }) => mean,
            other => panic!("{other:?}"),
        };
        assert!(!slot.begin(1000) && !slot.begin(5000));
        *clocks.lock().unwrap() = (seconds(1), seconds(1));
        let all = usage(1000);
        *clocks.lock().unwrap() = (seconds(1), seconds(5));
        assert!(all > 0.0 && usage(1000) == 0.0);
        assert!((usage(5000) - all / 5.0).abs() < 1e-9, "the other interval does not affect it");
        slot.end(5000);
        assert_eq!(slot.read(5000), None);
    }
}
