//! Instruments and the series of their measurements. `mod.rs` decides when series are reported.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use hashbrown::HashMap;

use super::Shared;
use super::handles::Observer;
use super::histogram::Histogram as Buckets;
use super::layout::Events;
use super::tags::{Key, OwnedKey, Tag, sorted, text};
use crate::number::AtomicF64;

/// The kind of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstrumentKind {
    Counter,
    UpDownCounter,
    Gauge,
    Histogram,
    ObservableCounter,
    ObservableUpDownCounter,
    ObservableGauge,
}

impl InstrumentKind {
    /// Returns the name of .NET's type.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "Counter`1",
            Self::UpDownCounter => "UpDownCounter`1",
            Self::Gauge => "Gauge`1",
            Self::Histogram => "Histogram`1",
            Self::ObservableCounter => "ObservableCounter`1",
            Self::ObservableUpDownCounter => "ObservableUpDownCounter`1",
            Self::ObservableGauge => "ObservableGauge`1",
        }
    }
}

/// The shared properties of a meter's instruments.
#[derive(Debug)]
pub(super) struct MeterInfo {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) tags: String,
    pub(super) schema_url: String,
}

pub(super) type Callback = Box<dyn Fn(&mut Observer<'_>) + Send + Sync>;

/// An instrument.
pub(super) struct Instrument {
    pub(super) meter: Arc<MeterInfo>,
    pub(super) kind: InstrumentKind,
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) description: String,
    pub(super) tags: String,
    pub(super) id: i32,
    pub(super) callback: Option<Callback>,
    pub(super) owner: Weak<Shared>,
    /// Whether a session records its values.
    listening: AtomicBool,
    table: RwLock<Table>,
}

/// The arguments for creating an instrument.
pub(super) struct InstrumentArgs {
    pub(super) meter: Arc<MeterInfo>,
    pub(super) kind: InstrumentKind,
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) description: String,
    pub(super) tags: String,
    pub(super) id: i32,
    pub(super) callback: Option<Callback>,
    pub(super) owner: Weak<Shared>,
}

#[derive(Debug, Default)]
struct Table {
    by_tags: HashMap<OwnedKey, Arc<Series>, foldhash::fast::RandomState>,
    /// In the order of their first measurements.
    list: Vec<Weak<Series>>,
    /// The number of series at which unused ones are removed.
    sweep_at: usize,
}

/// Tables below this length keep unused series.
const MIN_SWEEP: usize = 64;

/// States of a series: whether it is within the session's limit on series.
const UNKNOWN: u8 = 0;
const ADMITTED: u8 = 1;
const REJECTED: u8 = 2;

/// The measurements with equal tags.
#[derive(Debug)]
pub(super) struct Series {
    tags: String,
    state: AtomicU8,
    /// A sum since the session started, or the last value.
    total: AtomicF64,
    /// The total at the last report; NaN before the first.
    previous: AtomicF64,
    observed: AtomicBool,
    histogram: Option<Mutex<Buckets>>,
}

impl Instrument {
    pub(super) fn new(parts: InstrumentArgs) -> Self {
        let InstrumentArgs { meter, kind, name, unit, description, tags, id, callback, owner } = parts;
        let (listening, table) = (AtomicBool::new(false), RwLock::default());
        Self { meter, kind, name, unit, description, tags, id, callback, owner, listening, table }
    }

    #[inline]
    pub(super) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Relaxed)
    }

    /// Starts recording for a session.
    pub(super) fn begin(&self) {
        self.reset();
        self.listening.store(true, Ordering::Relaxed);
    }

    /// Stops recording when no session records the instrument any more.
    pub(super) fn end(&self) {
        self.listening.store(false, Ordering::Relaxed);
        self.reset();
    }

    fn reset(&self) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.retain(is_held);
        table.by_tags.values().for_each(|series| series.reset());
    }

    #[inline]
    pub(super) fn measure(&self, value: f64, tags: &[Tag<'_>]) {
        if self.is_listening() {
            sorted(tags, |tags| self.measure_sorted(value, tags));
        }
    }

    fn measure_sorted(&self, value: f64, tags: &[Tag<'_>]) {
        let known = {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            match table.by_tags.get(&Key(tags)) {
                Some(series) if series.state.load(Ordering::Relaxed) == UNKNOWN => Some(Arc::clone(series)),
                Some(series) => return self.measure_in(series, value),
                None => None,
            }
        };
        let has_room = || self.owner.upgrade().is_some_and(|owner| owner.budget.has_room(self.kind));
        // Without the lock: if the limit is reached, an event may be written, which may wait for its session.
        if let Some(series) = known.or_else(|| has_room().then(|| self.series(tags))) {
            self.measure_in(&series, value);
        }
    }

    #[inline]
    pub(super) fn measure_in(&self, series: &Series, value: f64) {
        let state = series.state.load(Ordering::Relaxed);
        if self.is_listening() && (state == ADMITTED || state == UNKNOWN && self.admit(series)) {
            series.take(self.kind, value);
        }
    }

    /// Returns whether the series is within the session's limit.
    #[cold]
    fn admit(&self, series: &Series) -> bool {
        let Some(owner) = self.owner.upgrade() else { return false };
        let admitted = owner.budget.admit(series, self.kind, &owner.events);
        if !admitted {
            series.state.store(REJECTED, Ordering::Relaxed);
        }
        admitted
    }

    /// Returns the series of these tags, in the order of their names.
    pub(super) fn series(&self, tags: &[Tag<'_>]) -> Arc<Series> {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = table.by_tags.get(&Key(tags)) {
            return Arc::clone(series);
        }
        if table.list.len() >= table.sweep_at.max(MIN_SWEEP) {
            table.retain(|series| is_held(series) || series.state.load(Ordering::Relaxed) == ADMITTED);
            table.sweep_at = table.list.len().saturating_mul(2);
        }
        let series = Arc::new(Series::new(text(tags), self.kind));
        table.list.push(Arc::downgrade(&series));
        table.by_tags.insert(Key(tags).to_owned(), Arc::clone(&series));
        series
    }

    /// Calls the program to report the values of an observable instrument.
    pub(super) fn observe(&self, session: &str, events: &Events) {
        if let Some(callback) = &self.callback {
            let called = catch_unwind(AssertUnwindSafe(|| callback(&mut Observer { instrument: self })));
            if let Err(panic) = called {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                let text = text.unwrap_or_else(|| "no message".to_owned());
                events.callback_error(session, format_args!("{}: the callback panicked: {text}", self.name));
            }
        }
    }

    /// Writes the measurements of the series since the last report.
    pub(super) fn report(&self, session: &str, events: &Events) {
        let list: Vec<Arc<Series>> = {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            table.list.iter().filter_map(Weak::upgrade).collect()
        };
        for series in list.iter().filter(|series| series.state.load(Ordering::Relaxed) == ADMITTED) {
            series.report(session, self, events);
        }
    }
}

impl Table {
    fn retain(&mut self, is_needed: impl Fn(&Arc<Series>) -> bool) {
        self.by_tags.retain(|_, series| is_needed(series));
        self.list.retain(|series| series.strong_count() > 0);
    }
}

/// Returns whether a series is in use outside of the table: by a handle with its tags, or by a measurement or report in
/// progress. Called under the table's lock, without which no new use can start.
fn is_held(series: &Arc<Series>) -> bool {
    let held = Arc::strong_count(series) > 1;
    // Makes measurements visible that a handle made before it was dropped.
    fence(Ordering::Acquire);
    held
}

impl fmt::Debug for Instrument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, .. } = self;
        f.debug_struct("Instrument").field("name", name).field("kind", kind).finish_non_exhaustive()
    }
}

impl Series {
    fn new(tags: String, kind: InstrumentKind) -> Self {
        Self {
            tags,
            state: AtomicU8::new(UNKNOWN),
            total: AtomicF64::new(0.0),
            previous: AtomicF64::new(f64::NAN),
            observed: AtomicBool::new(false),
            histogram: (kind == InstrumentKind::Histogram).then(Mutex::default),
        }
    }

    fn reset(&self) {
        self.state.store(UNKNOWN, Ordering::Relaxed);
        self.total.store(0.0);
        self.previous.store(f64::NAN);
        self.observed.store(false, Ordering::Relaxed);
        if let Some(histogram) = &self.histogram {
            histogram.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// Returns whether the series is new in this session, and marks it as known.
    pub(super) fn enter(&self) -> bool {
        self.state.compare_exchange(UNKNOWN, ADMITTED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn take(&self, kind: InstrumentKind, value: f64) {
        match kind {
            InstrumentKind::Counter | InstrumentKind::UpDownCounter => self.total.add(value),
            InstrumentKind::Histogram => {
                if let Some(histogram) = &self.histogram {
                    histogram.lock().unwrap_or_else(PoisonError::into_inner).add(value);
                }
            }
            InstrumentKind::Gauge => self.total.store(value),
            InstrumentKind::ObservableCounter
            | InstrumentKind::ObservableUpDownCounter
            | InstrumentKind::ObservableGauge => {
                self.total.store(value);
                self.observed.store(true, Ordering::Relaxed);
            }
        }
    }

    fn report(&self, session: &str, of: &Instrument, events: &Events) {
        let total = self.total.load();
        let previous = Some(self.previous.load()).filter(|previous| !previous.is_nan());
        let write = |rate, value| events.number(session, of, &self.tags, rate, value);
        match of.kind {
            InstrumentKind::Counter | InstrumentKind::UpDownCounter => {
                write(Some(total - previous.unwrap_or(0.0)), Some(total));
            }
            // The first value covers the whole life of the program.
            InstrumentKind::ObservableCounter | InstrumentKind::ObservableUpDownCounter => {
                write(previous.map(|previous| total - previous), Some(total));
            }
            InstrumentKind::Gauge => write(None, Some(total)),
            InstrumentKind::ObservableGauge => {
                if self.observed.swap(false, Ordering::Relaxed) {
                    write(None, Some(total));
                } else if previous.is_some() {
                    // Reported once: afterwards there is no value any more.
                    write(None, None);
                    self.previous.store(f64::NAN);
                    return;
                }
            }
            InstrumentKind::Histogram => {
                if let Some(histogram) = &self.histogram {
                    let summary = histogram.lock().unwrap_or_else(PoisonError::into_inner).take();
                    events.summary(session, of, &self.tags, &summary);
                }
            }
        }
        self.previous.store(total);
    }
}

#[cfg(test)]
mod tests {
    use runtap_diag_server::EventPipe;

    use super::super::{Counter, MeterSpec, Metrics};
    use super::*;

    fn entries(counter: &Counter) -> [usize; 2] {
        let table = counter.0.table.read().unwrap();
        [table.by_tags.len(), table.list.len()]
    }

    #[test]
    fn series_without_handles_and_values_are_forgotten() {
        let metrics = Metrics::new(&EventPipe::new()).unwrap();
        let counter = metrics.meter(MeterSpec::new("M")).counter("c");
        let kept: Vec<_> = (0..100).map(|n| counter.with(&[("kept", n.into())])).collect();
        let bound = |n: i32| counter.with(&[("n", n.into())]);
        (0..10_000).for_each(|n| drop(bound(n)));
        assert!(entries(&counter).iter().all(|entries| (100..=300).contains(entries)), "{counter:?}");
        let again = counter.with(&[("kept", 7.into())]);
        assert!(
            kept.iter().any(|kept| Arc::ptr_eq(&kept.series, &again.series)),
            "series with handles are kept"
        );
        drop((kept, again));

        // As during a session: measurements are kept until they are reported.
        counter.0.begin();
        assert_eq!(entries(&counter), [0, 0]);
        let measured = bound(-1);
        assert!(measured.series.enter());
        measured.add(1);
        drop(measured);
        (0..10_000).for_each(|n| drop(bound(n)));
        let series = sorted(&[("n", (-1).into())], |tags| counter.0.series(tags));
        assert_eq!(series.total.load().to_bits(), 1f64.to_bits());
        counter.0.end();
        assert_eq!(entries(&counter), [1, 1], "the series with a handle");
    }
}
