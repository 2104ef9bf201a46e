//! EventCounters: values that a provider reports at the interval that a session requests (`EventCounterIntervalSec`), in
//! the four kinds of .NET. One thread reports the counters of all providers, and sleeps while no session requests them.
//!
//! If concurrent sessions have different intervals, .NET reports at the shortest one to all of them, and tools drop values
//! of another interval than theirs, so that they show nothing. Here each interval has its own values (identified by
//! `Series`); every session still gets all of them, as tools expect.

mod kinds;
mod process;
mod report;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use runtap_diag_server::{DefineError, EventPipe, ProviderRequest};

use self::kinds::{CounterKind, Slot};
pub use self::kinds::{EventCounter, IncrementingEventCounter};
pub use self::process::process_counters;
use self::report::Reports;
use crate::arguments::argument;
use crate::timer::{self, Periodic};

/// The shortest and the longest interval that is supported, in milliseconds.
const INTERVALS: std::ops::RangeInclusive<u64> = 10..=86_400_000;

/// The name and the unit of a counter.
#[derive(Debug, Clone, Default)]
pub struct CounterSpec {
    name: String,
    display_name: Option<String>,
    units: String,
    rate_scale: Option<Duration>,
    metadata: String,
}

impl CounterSpec {
    /// Creates a counter with this name, which tools show unless there is a display name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the name that tools show.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }

    /// Sets the unit, such as `ms` or `MB`.
    #[must_use]
    pub fn units(mut self, units: impl Into<String>) -> Self {
        self.units = units.into();
        self
    }

    /// Sets the time unit of a rate, for the two incrementing kinds.
    #[must_use]
    pub fn rate_scale(mut self, scale: Duration) -> Self {
        self.rate_scale = Some(scale);
        self
    }

    /// Adds a key and a value to the metadata of the counter.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        let separator = if self.metadata.is_empty() { "" } else { "," };
        self.metadata = format!("{}{separator}{key}:{value}", self.metadata);
        self
    }
}

/// The counters of one provider. Clones refer to one set of counters, which remains when they are dropped.
#[derive(Debug, Clone)]
pub struct EventCounters(Arc<Shared>);

struct Shared {
    me: Weak<Self>,
    reports: Reports,
    state: Mutex<CounterState>,
}

#[derive(Default)]
struct CounterState {
    slots: Vec<Arc<Slot>>,
    series: Vec<Series>,
    /// Whether intervals have started whose start values must still be read from the program, on the timer's thread.
    unmarked: bool,
}

/// An interval that sessions request.
#[derive(Debug, Clone, Copy)]
struct Series {
    milliseconds: u64,
    last: Instant,
    due: Instant,
}

impl Series {
    fn interval(&self) -> Duration {
        Duration::from_millis(self.milliseconds)
    }
}

impl EventCounters {
    /// Creates an empty set of counters of the provider `name`.
    ///
    /// # Errors
    /// If the name contains a NUL.
    pub fn new(pipe: &EventPipe, name: &str) -> Result<Self, DefineError> {
        let reports = Reports::new(pipe, name)?;
        let shared = Arc::new_cyclic(|me| Shared { me: me.clone(), reports, state: Mutex::default() });
        timer::add(shared.task());
        let watching = Arc::clone(&shared);
        pipe.watch(name, move |requests| watching.update(requests));
        Ok(Self(shared))
    }

    /// Adds a counter that reports mean, deviation and extremes of the values recorded in an interval.
    pub fn event_counter(&self, spec: CounterSpec) -> EventCounter {
        EventCounter::new(self.0.add(spec, CounterKind::mean()))
    }

    /// Adds a counter that reports its increments in an interval.
    pub fn incrementing(&self, spec: CounterSpec) -> IncrementingEventCounter {
        IncrementingEventCounter::new(self.0.add(spec, CounterKind::sum()))
    }

    /// Adds a counter that reports the current return value of `read`. It is called on a thread of this crate; if it panics,
    /// nothing is reported.
    pub fn polling(&self, spec: CounterSpec, read: impl Fn() -> f64 + Send + Sync + 'static) {
        self.0.add(spec, CounterKind::Polled(Box::new(read)));
    }

    /// Adds a counter that reports the growth of the return value of `read` in an interval. It is called like that of
    /// [`polling`](Self::polling), for the first time soon after a session has started: growth from then on
    /// is reported.
    pub fn incrementing_polling(&self, spec: CounterSpec, read: impl Fn() -> f64 + Send + Sync + 'static) {
        self.0.add(spec, CounterKind::polled_sum(read));
    }
}

impl Shared {
    fn task(&self) -> Weak<dyn Periodic> {
        Weak::clone(&self.me) as _
    }

    fn state(&self) -> MutexGuard<'_, CounterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, spec: CounterSpec, kind: CounterKind) -> Arc<Slot> {
        let slot = Arc::new(Slot { spec, kind });
        let mut state = self.state();
        let mut unmarked = false;
        for series in &state.series {
            unmarked |= slot.begin(series.milliseconds);
        }
        state.slots.push(Arc::clone(&slot));
        self.have_marked(&mut state, unmarked);
        slot
    }

    /// Makes the timer's thread call the program: its code may take locks of threads that wait for this thread.
    fn have_marked(&self, state: &mut CounterState, unmarked: bool) {
        if unmarked {
            state.unmarked = true;
            timer::wake(&self.task(), Instant::now());
        }
    }

    /// Updates the series to the requested intervals.
    fn update(&self, requests: &[ProviderRequest]) {
        let mut asked: Vec<u64> = requests.iter().filter_map(interval).collect();
        asked.sort_unstable();
        asked.dedup();
        let now = Instant::now();
        let mut state = self.state();
        let mut unmarked = false;
        let CounterState { slots, series, .. } = &mut *state;
        series.retain(|series| {
            let stays = asked.contains(&series.milliseconds);
            if !stays {
                for slot in &*slots {
                    slot.end(series.milliseconds);
                }
            }
            stays
        });
        for milliseconds in asked {
            if !series.iter().any(|series| series.milliseconds == milliseconds) {
                for slot in &*slots {
                    unmarked |= slot.begin(milliseconds);
                }
                let due = now + Duration::from_millis(milliseconds);
                series.push(Series { milliseconds, last: now, due });
                timer::wake(&self.task(), due);
            }
        }
        self.have_marked(&mut state, unmarked);
    }
}

/// Returns the interval that a session requests.
fn interval(request: &ProviderRequest) -> Option<u64> {
    let seconds: f64 = argument(&request.arguments, "EventCounterIntervalSec")?.trim().parse().ok()?;
    let interval = Duration::try_from_secs_f64(seconds).ok().filter(|interval| !interval.is_zero())?;
    let milliseconds = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    Some(milliseconds.clamp(*INTERVALS.start(), *INTERVALS.end()))
}

impl Periodic for Shared {
    fn run(&self, now: Instant) -> Option<Instant> {
        let (due, unmarked, slots) = {
            let mut state = self.state();
            let mut due = Vec::new();
            for series in state.series.iter_mut().filter(|series| series.due <= now) {
                due.push((series.milliseconds, now.saturating_duration_since(series.last)));
                series.last = now;
                series.due = timer::next_after(series.due, series.interval(), now);
            }
            (due, std::mem::take(&mut state.unmarked), state.slots.clone())
        };
        // Without the lock: the program's own code is called, which may add counters.
        if unmarked {
            for slot in &slots {
                slot.mark();
            }
        }
        for (milliseconds, elapsed) in due {
            for slot in &slots {
                self.reports.write(slot, milliseconds, elapsed);
            }
        }
        self.state().series.iter().map(|series| series.due).min()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("provider", &self.reports.provider()).finish_non_exhaustive()
    }
}
