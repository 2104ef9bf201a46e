//! The four kinds of counters, and what each keeps for each interval that is asked for.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CounterSpec;
use crate::number::AtomicF64;

type Read = Box<dyn Fn() -> f64 + Send + Sync>;

/// A counter.
pub(super) struct Slot {
    pub(super) spec: CounterSpec,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Mean(Means),
    Sum { total: AtomicF64, marks: Marks },
    Polled(Read),
    PolledSum { read: Read, marks: Marks },
}

/// What one report says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reading {
    Mean { mean: f64, deviation: f64, count: i32, min: f64, max: f64 },
    Increment(f64),
}

impl Kind {
    pub(super) fn mean() -> Self {
        Self::Mean(Means::default())
    }

    pub(super) fn sum() -> Self {
        Self::Sum { total: AtomicF64::new(0.0), marks: Marks::default() }
    }

    pub(super) fn polled_sum(read: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self::PolledSum { read: Box::new(read), marks: Marks::default() }
    }
}

impl Slot {
    /// Begins to keep what there is to report for an interval.
    pub(super) fn begin(&self, interval: u64) {
        match &self.kind {
            Kind::Mean(means) => means.begin(interval),
            Kind::Sum { total, marks } => marks.begin(interval, total.load()),
            Kind::Polled(_) => {}
            Kind::PolledSum { read, marks } => marks.begin(interval, called(read).unwrap_or(0.0)),
        }
    }

    pub(super) fn end(&self, interval: u64) {
        match &self.kind {
            Kind::Mean(means) => means.end(interval),
            Kind::Sum { marks, .. } | Kind::PolledSum { marks, .. } => marks.end(interval),
            Kind::Polled(_) => {}
        }
    }

    /// What there is to report for an interval since the last time. `None`: nothing.
    pub(super) fn read(&self, interval: u64) -> Option<Reading> {
        match &self.kind {
            Kind::Mean(means) => Some(means.take(interval)?.reading()),
            Kind::Sum { total, marks } => marks.advance(interval, total.load()).map(Reading::Increment),
            Kind::Polled(read) => {
                let value = called(read)?;
                Some(Reading::Mean { mean: value, deviation: 0.0, count: 1, min: value, max: value })
            }
            Kind::PolledSum { read, marks } => marks.advance(interval, called(read)?).map(Reading::Increment),
        }
    }
}

/// What the program's code returns, unless it panics.
fn called(read: &Read) -> Option<f64> {
    catch_unwind(AssertUnwindSafe(read)).ok()
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("spec", &self.spec).finish_non_exhaustive()
    }
}

/// Values since the last report, for each interval.
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

/// Mean and deviation by Welford's method, which is exact for values far from zero too.
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

    /// Without values everything is 0.
    fn reading(&self) -> Reading {
        if self.count == 0 {
            return Reading::Mean { mean: 0.0, deviation: 0.0, count: 0, min: 0.0, max: 0.0 };
        }
        let deviation = (self.squares / f64::from(self.count)).sqrt();
        let count = i32::try_from(self.count).unwrap_or(i32::MAX);
        Reading::Mean { mean: self.mean, deviation, count, min: self.min, max: self.max }
    }
}

/// The total at the last report, for each interval.
#[derive(Debug, Default)]
pub(super) struct Marks(Mutex<Vec<(u64, f64)>>);

impl Marks {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, f64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, interval: u64, total: f64) {
        self.lock().push((interval, total));
    }

    fn end(&self, interval: u64) {
        self.lock().retain(|(other, _)| *other != interval);
    }

    fn advance(&self, interval: u64, total: f64) -> Option<f64> {
        let mut marks = self.lock();
        let (_, mark) = marks.iter_mut().find(|(other, _)| *other == interval)?;
        Some(total - std::mem::replace(mark, total))
    }
}

/// A counter of values. See [`EventCounters::event_counter`](super::EventCounters::event_counter).
#[derive(Debug, Clone)]
pub struct EventCounter {
    slot: Arc<Slot>,
}

impl EventCounter {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        Self { slot }
    }

    /// Records a value. One load if no session asks for counters.
    #[inline]
    pub fn record(&self, value: f64) {
        if let Kind::Mean(means) = &self.slot.kind
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

    /// Adds to it, whether a session asks or not.
    #[inline]
    pub fn increment(&self, by: f64) {
        if let Kind::Sum { total, .. } = &self.slot.kind {
            total.add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(kind: Kind) -> Slot {
        Slot { spec: CounterSpec::new("c"), kind }
    }

    #[test]
    fn each_interval_has_its_own_values() {
        let slot = slot(Kind::mean());
        let record = |value| match &slot.kind {
            Kind::Mean(means) => means.record(value),
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
        // What .NET reports for the same values.
        assert!((mean - 20.0).abs() < 1e-12 && (deviation - 8.164_965_809_277_26).abs() < 1e-12);
        let nothing = Reading::Mean { mean: 0.0, deviation: 0.0, count: 0, min: 0.0, max: 0.0 };
        assert_eq!(slot.read(1000), Some(nothing));
        let one = Reading::Mean { mean: 30.0, deviation: 0.0, count: 1, min: 30.0, max: 30.0 };
        assert_eq!(slot.read(5000), Some(one));
        slot.end(5000);
        assert_eq!(slot.read(5000), None);
    }

    #[test]
    fn increments_count_from_the_beginning_of_an_interval() {
        let slot = slot(Kind::sum());
        let Kind::Sum { total, .. } = &slot.kind else { unreachable!() };
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
        let broken = slot(Kind::Polled(Box::new(|| panic!("no value"))));
        assert_eq!(broken.read(1), None);
        let polled = slot(Kind::polled_sum(|| 7.0));
        polled.begin(1);
        assert_eq!(polled.read(1), Some(Reading::Increment(0.0)));
    }
}
