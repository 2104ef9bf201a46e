//! Metrics: meters and their instruments, as `System.Diagnostics.Metrics` of .NET has them, for the tools that read those. Owns
//! which collection runs and when it reports; series and their limits are in the files beside this one.
//!
//! One collection runs at a time, as in .NET: sessions with the id `SHARED` and the same settings share it, others are told that
//! they can't be served (events 15 and 17). Values count from its beginning. While none runs, a measurement costs one load.

mod handles;
mod histogram;
mod instrument;
mod layout;
mod session;
mod spec;
mod tags;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Instant, SystemTime};

use runtap_diag_server::{DefineError, EventPipe, ProviderRequest, SessionId};

pub use self::handles::{
    BoundCounter, BoundGauge, BoundHistogram, BoundUpDownCounter, Counter, Gauge, Histogram, Measure,
    Observer, UpDownCounter,
};
use self::instrument::{Callback, Instrument, Kind, MeterInfo, Parts};
use self::layout::Events;
use self::session::{Budget, Collection, Verdict, Wish};
pub use self::spec::{InstrumentSpec, MeterSpec};
pub use self::tags::{Tag, TagValue};
use crate::timer::{self, Periodic};

/// The metrics of a program. Clones are the same. Meters and instruments remain when it is dropped.
///
/// A session says how many series of measurements it has room for (`MaxTimeSeries`, 1,000 unless it says so), and how many of
/// them may be histograms (`MaxHistograms`, 20); more than 100,000 and 1,000 it does not get.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    me: Weak<Self>,
    events: Events,
    budget: Budget,
    state: Mutex<State>,
    /// Held by threads of the program while they tell of instruments that come and go, so that what is told of one is in
    /// order. Not for the server's thread: who tells may have to wait for a session.
    telling: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of their numbers.
    instruments: Vec<Arc<Instrument>>,
    last_id: i32,
    collection: Option<Collection>,
    /// Sessions that were told that they can't be served.
    refused: Vec<SessionId>,
}

impl Metrics {
    /// The metrics that go to the sessions of `pipe`. A program has one.
    ///
    /// # Errors
    /// None in fact: the names are good ones.
    pub fn new(pipe: &EventPipe) -> Result<Self, DefineError> {
        let events = Events::new(pipe)?;
        let shared = Arc::new_cyclic(|me| Shared {
            me: me.clone(),
            events,
            budget: Budget::default(),
            state: Mutex::default(),
            telling: Mutex::default(),
        });
        timer::add(shared.task());
        let watching = Arc::clone(&shared);
        pipe.watch(layout::PROVIDER, move |requests| watching.update(requests));
        Ok(Self(shared))
    }

    /// A meter: a group of instruments, which tools ask for by its name.
    pub fn meter(&self, spec: MeterSpec) -> Meter {
        let MeterSpec { name, version, tags, schema_url } = spec;
        Meter { info: Arc::new(MeterInfo { name, version, tags, schema_url }), shared: Arc::clone(&self.0) }
    }
}

/// A group of instruments. Clones are the same meter. Instruments remain when it is dropped; [`dispose`](Self::dispose)
/// takes them away.
#[derive(Debug, Clone)]
pub struct Meter {
    info: Arc<MeterInfo>,
    shared: Arc<Shared>,
}

impl Meter {
    /// Counts what only grows.
    pub fn counter(&self, spec: impl Into<InstrumentSpec>) -> Counter {
        Counter(self.instrument(Kind::Counter, spec.into(), None))
    }

    /// Counts what grows and shrinks.
    pub fn up_down_counter(&self, spec: impl Into<InstrumentSpec>) -> UpDownCounter {
        UpDownCounter(self.instrument(Kind::UpDownCounter, spec.into(), None))
    }

    /// A value of which the last one counts.
    pub fn gauge(&self, spec: impl Into<InstrumentSpec>) -> Gauge {
        Gauge(self.instrument(Kind::Gauge, spec.into(), None))
    }

    /// How values are distributed.
    pub fn histogram(&self, spec: impl Into<InstrumentSpec>) -> Histogram {
        Histogram(self.instrument(Kind::Histogram, spec.into(), None))
    }

    /// A count that the program has anyway: `read` tells it when a collection asks. It is called on a thread of this crate;
    /// where it panics, the session is told so.
    pub fn observable_counter(
        &self,
        spec: impl Into<InstrumentSpec>,
        read: impl Fn(&mut Observer<'_>) + Send + Sync + 'static,
    ) {
        self.instrument(Kind::ObservableCounter, spec.into(), Some(Box::new(read)));
    }

    /// The same for a count that also shrinks.
    pub fn observable_up_down_counter(
        &self,
        spec: impl Into<InstrumentSpec>,
        read: impl Fn(&mut Observer<'_>) + Send + Sync + 'static,
    ) {
        self.instrument(Kind::ObservableUpDownCounter, spec.into(), Some(Box::new(read)));
    }

    /// The same for a value.
    pub fn observable_gauge(
        &self,
        spec: impl Into<InstrumentSpec>,
        read: impl Fn(&mut Observer<'_>) + Send + Sync + 'static,
    ) {
        self.instrument(Kind::ObservableGauge, spec.into(), Some(Box::new(read)));
    }

    /// Takes all its instruments away. Measurements go nowhere then.
    pub fn dispose(self) {
        let telling = self.shared.telling();
        let (gone, session) = {
            let mut state = self.shared.state();
            let is_own = |instrument: &mut Arc<Instrument>| Arc::ptr_eq(&instrument.meter, &self.info);
            let gone: Vec<_> = state.instruments.extract_if(.., is_own).collect();
            (gone, state.collection.as_ref().map(|collection| collection.id.clone()))
        };
        for instrument in gone.iter().filter(|instrument| instrument.is_listening()) {
            instrument.end();
            if let Some(session) = &session {
                self.shared.events.end(session, instrument);
            }
        }
        drop(telling);
        // Without any lock: the program's own values, which may dispose other meters.
        drop(gone);
    }

    fn instrument(&self, kind: Kind, spec: InstrumentSpec, callback: Option<Callback>) -> Arc<Instrument> {
        let InstrumentSpec { name, unit, description, tags } = spec;
        let _telling = self.shared.telling();
        let mut state = self.shared.state();
        state.last_id = state.last_id.wrapping_add(1);
        let instrument = Arc::new(Instrument::new(Parts {
            meter: Arc::clone(&self.info),
            kind,
            name,
            unit,
            description,
            tags,
            id: state.last_id,
            callback,
            owner: Weak::clone(&self.shared.me),
        }));
        state.instruments.push(Arc::clone(&instrument));
        let told = state.collection.as_ref().map(|running| (running.id.clone(), running.wants(&instrument)));
        drop(state);
        if let Some((session, is_wanted)) = told {
            self.shared.tell(&session, &instrument, is_wanted);
        }
        instrument
    }
}

impl Shared {
    fn task(&self) -> Weak<dyn Periodic> {
        Weak::clone(&self.me) as _
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the session of a new instrument, without the lock of the state: a thread of the program may have to wait until
    /// there is room in the session. Values come after that.
    fn tell(&self, session: &str, instrument: &Instrument, is_wanted: bool) {
        self.events.published(session, instrument);
        if is_wanted {
            self.events.begin(session, instrument);
            let state = self.state();
            // A collection that began meanwhile knows the instrument.
            let is_still_wanted = state.collection.as_ref().is_some_and(|running| running.wants(instrument));
            if is_still_wanted && !instrument.is_listening() {
                instrument.begin();
            }
        }
    }

    /// For the server's thread, which never waits for a session: tells it of an instrument, and begins to listen to it if its values are wanted.
    fn publish(&self, collection: &Collection, instrument: &Instrument) {
        self.events.published(&collection.id, instrument);
        if collection.wants(instrument) {
            if !instrument.is_listening() {
                instrument.begin();
            }
            self.events.begin(&collection.id, instrument);
        }
    }

    /// Takes what all sessions ask for now.
    fn update(&self, requests: &[ProviderRequest]) {
        let mut state = self.state();
        let runs = |session: &SessionId| requests.iter().any(|request| request.session == *session);
        state.refused.retain(runs);
        if let Some(collection) = &mut state.collection {
            collection.members.retain(|member| runs(&member.session));
            if collection.members.is_empty() {
                state.collection = None;
                state.instruments.iter().for_each(|instrument| instrument.end());
            }
        }
        for wish in requests.iter().filter_map(Wish::of) {
            self.serve(&mut state, wish);
        }
    }

    fn serve(&self, state: &mut State, wish: Wish) {
        let is_member =
            |collection: &Collection| collection.members.iter().any(|member| member.session == wish.session);
        if state.refused.contains(&wish.session) || state.collection.as_ref().is_some_and(is_member) {
            return;
        }
        self.events.version();
        let collection = match state.collection.take() {
            None => {
                let collection = Collection::new(wish, Instant::now());
                self.events.message(format_args!("New session started: {}", collection.id));
                self.budget.begin(&collection.id, &collection.settings);
                timer::wake(&self.task(), collection.due);
                collection
            }
            Some(mut running) => {
                match running.judge(&wish) {
                    Verdict::Joins => running.members.push(wish),
                    verdict => {
                        state.refused.push(wish.session);
                        if verdict == Verdict::Refused {
                            self.events.other_session(&running.id);
                        } else {
                            self.events.other_settings(&wish.client, &running.settings, &wish.settings);
                        }
                        state.collection = Some(running);
                        return;
                    }
                }
                running
            }
        };
        // For those who join, too: they have not seen them yet.
        for instrument in &state.instruments {
            self.publish(&collection, instrument);
        }
        self.events.enumerated(&collection.id);
        state.collection = Some(collection);
    }

    /// What is to be reported now: the session, the interval, the instruments.
    fn due(&self, now: Instant) -> Option<(String, [SystemTime; 2], Vec<Arc<Instrument>>)> {
        let mut state = self.state();
        let State { collection, instruments, .. } = &mut *state;
        let collection = collection.as_mut().filter(|collection| collection.due <= now)?;
        let from = std::mem::replace(&mut collection.from, SystemTime::now());
        collection.due = timer::next_after(collection.due, collection.settings.interval, now);
        let listening = instruments.iter().filter(|instrument| instrument.is_listening()).cloned();
        Some((collection.id.clone(), [from, collection.from], listening.collect()))
    }
}

impl Periodic for Shared {
    fn run(&self, now: Instant) -> Option<Instant> {
        // Without the lock: what is observed is the program's own code, which may make instruments.
        if let Some((session, [from, to], instruments)) = self.due(now) {
            self.events.collection(&session, true, from, to);
            for instrument in &instruments {
                instrument.observe(&session, &self.events);
            }
            for instrument in &instruments {
                instrument.report(&session, &self.events);
            }
            self.events.collection(&session, false, from, to);
        }
        self.state().collection.as_ref().map(|collection| collection.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Disposes another meter when it is dropped.
    struct Owner(Option<Meter>);

    impl Drop for Owner {
        fn drop(&mut self) {
            self.0.take().into_iter().for_each(Meter::dispose);
        }
    }

    #[test]
    fn what_a_callback_owns_may_dispose_other_meters() {
        let metrics = Metrics::new(&EventPipe::new()).unwrap();
        let inner = metrics.meter(MeterSpec::new("Inner"));
        inner.observable_gauge("value", |_| {});
        let owner = Owner(Some(inner));
        let outer = metrics.meter(MeterSpec::new("Outer"));
        outer.observable_gauge("value", move |_| {
            let _owned = &owner;
        });
        assert_eq!(metrics.0.state().instruments.len(), 2);
        outer.dispose();
        assert_eq!(metrics.0.state().instruments.len(), 0);
    }
}
