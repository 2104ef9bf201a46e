//! EventCounters: values that a provider reports at the interval that a session asks for (`EventCounterIntervalSec`), in the
//! four kinds of .NET. Owns the counters of a provider and when they are reported; one thread does that for all providers, and
//! sleeps while nobody asks.
//!
//! Sessions of different intervals at the same time: .NET reports at the shortest one to all of them, and tools drop values of
//! an interval that is not theirs, so that they show nothing. Here each interval has its own values (`Series` tells
//! which); every session still gets all of them, as tools expect.

mod kinds;
mod process;
mod report;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use runtap_diag_server::{DefineError, EventPipe, ProviderRequest};

pub use self::kinds::{EventCounter, IncrementingEventCounter};
use self::kinds::{Kind, Slot};
pub use self::process::process_counters;
use self::report::Reports;
use crate::arguments::argument;
use crate::timer::{self, Periodic};

/// The shortest interval that is kept to, in milliseconds, and the longest.
const INTERVALS: std::ops::RangeInclusive<u64> = 10..=86_400_000;

/// What a counter is called, and in what it counts.
#[derive(Debug, Clone, Default)]
pub struct CounterSpec {
    name: String,
    display_name: Option<String>,
    units: String,
    rate_scale: Option<Duration>,
    metadata: String,
}

impl CounterSpec {
    /// A counter of this name, which tools also show unless there is another one to show.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The name that tools show.
    #[must_use]
    pub fn display_name(mut self, name: impl Into<String>) -> Self {
        self.display_name = Some(name.into());
        self
    }

    /// What it counts in, such as `ms` or `MB`.
    #[must_use]
    pub fn units(mut self, units: impl Into<String>) -> Self {
        self.units = units.into();
        self
    }

    /// The time that a rate is shown for, of the two kinds that increment.
    #[must_use]
    pub fn rate_scale(mut self, scale: Duration) -> Self {
        self.rate_scale = Some(scale);
        self
    }

    /// One more key and value that belong to the counter.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        let separator = if self.metadata.is_empty() { "" } else { "," };
        self.metadata = format!("{}{separator}{key}:{value}", self.metadata);
        self
    }
}

/// The counters of one provider. Clones are the same. Counters remain when it is dropped.
#[derive(Debug, Clone)]
pub struct EventCounters(Arc<Shared>);

struct Shared {
    me: Weak<Self>,
    reports: Reports,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    slots: Vec<Arc<Slot>>,
    series: Vec<Series>,
    /// Intervals have begun, and the program is still to be asked where: on the timer's thread.
    unmarked: bool,
}

/// One interval that sessions ask for.
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
    /// Counters of the provider `name`, none yet.
    ///
    /// # Errors
    /// A NUL in the name.
    pub fn new(pipe: &EventPipe, name: &str) -> Result<Self, DefineError> {
        let reports = Reports::new(pipe, name)?;
        let shared = Arc::new_cyclic(|me| Shared { me: me.clone(), reports, state: Mutex::default() });
        timer::add(shared.task());
        let watching = Arc::clone(&shared);
        pipe.watch(name, move |requests| watching.update(requests));
        Ok(Self(shared))
    }

    /// A counter that reports the mean of the values that were recorded in an interval, their deviation and extremes.
    pub fn event_counter(&self, spec: CounterSpec) -> EventCounter {
        EventCounter::new(self.0.add(spec, Kind::mean()))
    }

    /// A counter that reports by how much it was incremented in an interval.
    pub fn incrementing(&self, spec: CounterSpec) -> IncrementingEventCounter {
        IncrementingEventCounter::new(self.0.add(spec, Kind::sum()))
    }

    /// A counter that reports what `read` returns then. It is called on a thread of this crate; where it panics, nothing
    /// is reported.
    pub fn polling(&self, spec: CounterSpec, read: impl Fn() -> f64 + Send + Sync + 'static) {
        self.0.add(spec, Kind::Polled(Box::new(read)));
    }

    /// A counter that reports by how much the value that `read` returns has grown in an interval. It is called as that of
    /// [`polling`](Self::polling), for the first time soon after a session has begun: what the value grows by from then on
    /// is reported.
    pub fn incrementing_polling(&self, spec: CounterSpec, read: impl Fn() -> f64 + Send + Sync + 'static) {
        self.0.add(spec, Kind::polled_sum(read));
    }
}

impl Shared {
    fn task(&self) -> Weak<dyn Periodic> {
        Weak::clone(&self.me) as _
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, spec: CounterSpec, kind: Kind) -> Arc<Slot> {
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

    /// Has the timer's thread ask the program: its code may take locks that those hold who wait for this thread.
    fn have_marked(&self, state: &mut State, unmarked: bool) {
        if unmarked {
            state.unmarked = true;
            timer::wake(&self.task(), Instant::now());
        }
    }

    /// Has a series for each interval that is asked for.
    fn update(&self, requests: &[ProviderRequest]) {
        let mut asked: Vec<u64> = requests.iter().filter_map(interval).collect();
        asked.sort_unstable();
        asked.dedup();
        let now = Instant::now();
        let mut state = self.state();
        let mut unmarked = false;
        let State { slots, series, .. } = &mut *state;
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

/// The interval that a session asks for.
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
        // Without the lock: what is read is the program's own code, which may add counters.
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
