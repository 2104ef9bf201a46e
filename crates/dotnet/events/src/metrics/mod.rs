//! Metrics: meters and their instruments, like `System.Diagnostics.Metrics` of .NET, for the tools that read those. Decides
//! which collection runs and when it reports; the other files have series and their limits.
//!
//! One collection runs at a time, as in .NET: sessions with the id `SHARED` and equal settings share it, others are
//! rejected (events 15 and 17). Values count from its start. While none runs, a measurement costs a single load.

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
use self::instrument::{Callback, Instrument, InstrumentArgs, InstrumentKind, MeterInfo};
use self::layout::Events;
use self::session::{Budget, Collection, SessionRequest, Verdict};
pub use self::spec::{InstrumentSpec, MeterSpec};
pub use self::tags::{Tag, TagValue};
use crate::timer::{self, Periodic};

/// The metrics of a program. Clones refer to one set of metrics. Meters and instruments remain when it is dropped.
///
/// A session limits its number of series of measurements (`MaxTimeSeries`, 1,000 by default, at most 100,000), and the
/// number of histograms among them (`MaxHistograms`, 20 by default, at most 1,000).
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    me: Weak<Self>,
    events: Events,
    budget: Budget,
    state: Mutex<MetricsState>,
    /// Held by the program's threads while they report new and removed instruments, so that the reports about one are in
    /// order. Not for the server's thread: the reporting thread may have to wait for a session.
    telling: Mutex<()>,
}

#[derive(Debug, Default)]
struct MetricsState {
    /// In the order of their numbers.
    instruments: Vec<Arc<Instrument>>,
    last_id: i32,
    collection: Option<Collection>,
    /// Sessions that were rejected.
    refused: Vec<SessionId>,
}

impl Metrics {
    /// Creates the metrics for the sessions of `pipe`. Create one per program.
    ///
    /// # Errors
    /// Never: the names are valid.
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

    /// Creates a meter: a group of instruments, which tools request by its name.
    pub fn meter(&self, spec: MeterSpec) -> Meter {
        let MeterSpec { name, version, tags, schema_url } = spec;
        Meter { info: Arc::new(MeterInfo { name, version, tags, schema_url }), shared: Arc::clone(&self.0) }
    }
}

/// A group of instruments. Clones refer to one meter. Instruments remain when it is dropped; [`dispose`](Self::dispose)
/// removes them.
#[derive(Debug, Clone)]
pub struct Meter {
    info: Arc<MeterInfo>,
    shared: Arc<Shared>,
}

impl Meter {
    /// Creates a count that only grows.
    pub fn counter(&self, spec: impl Into<InstrumentSpec>) -> Counter {
        Counter(self.instrument(InstrumentKind::Counter, spec.into(), None))
    }

    /// Creates a count that grows and shrinks.
    pub fn up_down_counter(&self, spec: impl Into<InstrumentSpec>) -> UpDownCounter {
        UpDownCounter(self.instrument(InstrumentKind::UpDownCounter, spec.into(), None))
    }

    /// Creates a value, of which tools show the last one.
    pub fn gauge(&self, spec: impl Into<InstrumentSpec>) -> Gauge {
        Gauge(self.instrument(InstrumentKind::Gauge, spec.into(), None))
    }

    /// Creates a distribution of values.
    pub fn histogram(&self, spec: impl Into<InstrumentSpec>) -> Histogram {
        Histogram(self.instrument(InstrumentKind::Histogram, spec.into(), None))
    }

    /// Creates a count that the program already has: `read` reports it when a collection requests it. It is called on a thread
    /// of this crate; if it panics, the session gets an error event.
    pub fn observable_counter(
        &self,
        spec: impl Into<InstrumentSpec>,
        read: impl Fn(&mut Observer<'_>) + Send + Sync + 'static,
    ) {
        self.instrument(InstrumentKind::ObservableCounter, spec.into(), Some(Box::new(read)));
    }

    /// Creates an observable count that also shrinks; see [`observable_counter`](Self::observable_counter).
    pub fn observable_up_down_counter(
        &self,
        spec: impl Into<InstrumentSpec>,
        read: impl Fn(&mut Observer<'_>) + Send + Sync + 'static,
    ) {
        self.instrument(InstrumentKind::ObservableUpDownCounter, spec.into(), Some(Box::new(read)));
    }

    /// Creates an observable value; see [`observable_counter`](Self::observable_counter).
    pub fn observable_gauge(
        &self,
        spec: impl Into<InstrumentSpec>,
        read: impl Fn(&mut Observer<'_>) + Send + Sync + 'static,
    ) {
        self.instrument(InstrumentKind::ObservableGauge, spec.into(), Some(Box::new(read)));
    }

    /// Removes all its instruments. Later measurements have no effect.
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
        // Without any lock: this drops the program's own values, which may dispose other meters.
        drop(gone);
    }

    fn instrument(
        &self,
        kind: InstrumentKind,
        spec: InstrumentSpec,
        callback: Option<Callback>,
    ) -> Arc<Instrument> {
        let InstrumentSpec { name, unit, description, tags } = spec;
        let _telling = self.shared.telling();
        let mut state = self.shared.state();
        state.last_id = state.last_id.wrapping_add(1);
        let instrument = Arc::new(Instrument::new(InstrumentArgs {
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
            self.shared.report_instrument(&session, &instrument, is_wanted);
        }
        instrument
    }
}

impl Shared {
    fn task(&self) -> Weak<dyn Periodic> {
        Weak::clone(&self.me) as _
    }

    fn state(&self) -> MutexGuard<'_, MetricsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn telling(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a new instrument to the session, without the lock of the state: a thread of the program may have to wait for
    /// space in the session. Values come after that.
    fn report_instrument(&self, session: &str, instrument: &Instrument, is_wanted: bool) {
        self.events.published(session, instrument);
        if is_wanted {
            self.events.begin(session, instrument);
            let state = self.state();
            // A collection that started meanwhile has reported the instrument.
            let is_still_wanted = state.collection.as_ref().is_some_and(|running| running.wants(instrument));
            if is_still_wanted && !instrument.is_listening() {
                instrument.begin();
            }
        }
    }

    /// Reports an instrument on the server's thread, which never waits for a session, and starts recording it if requested.
    fn publish(&self, collection: &Collection, instrument: &Instrument) {
        self.events.published(&collection.id, instrument);
        if collection.wants(instrument) {
            if !instrument.is_listening() {
                instrument.begin();
            }
            self.events.begin(&collection.id, instrument);
        }
    }

    /// Updates the collection to the requests of all sessions.
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
        for request in requests.iter().filter_map(SessionRequest::of) {
            self.serve(&mut state, request);
        }
    }

    fn serve(&self, state: &mut MetricsState, request: SessionRequest) {
        let is_member = |collection: &Collection| {
            collection.members.iter().any(|member| member.session == request.session)
        };
        if state.refused.contains(&request.session) || state.collection.as_ref().is_some_and(is_member) {
            return;
        }
        self.events.version();
        let collection = match state.collection.take() {
            None => {
                let collection = Collection::new(request, Instant::now());
                self.events.message(format_args!("New session started: {}", collection.id));
                self.budget.begin(&collection.id, &collection.settings);
                timer::wake(&self.task(), collection.due);
                collection
            }
            Some(mut running) => {
                match running.judge(&request) {
                    Verdict::Joins => running.members.push(request),
                    verdict => {
                        state.refused.push(request.session);
                        if verdict == Verdict::Refused {
                            self.events.other_session(&running.id);
                        } else {
                            self.events.other_settings(&request.client, &running.settings, &request.settings);
                        }
                        state.collection = Some(running);
                        return;
                    }
                }
                running
            }
        };
        // Also for sessions that join, which have not received the instruments yet.
        for instrument in &state.instruments {
            self.publish(&collection, instrument);
        }
        self.events.enumerated(&collection.id);
        state.collection = Some(collection);
    }

    /// Returns the session, the interval and the instruments to report now.
    fn due(&self, now: Instant) -> Option<(String, [SystemTime; 2], Vec<Arc<Instrument>>)> {
        let mut state = self.state();
        let MetricsState { collection, instruments, .. } = &mut *state;
        let collection = collection.as_mut().filter(|collection| collection.due <= now)?;
        let from = std::mem::replace(&mut collection.from, SystemTime::now());
        collection.due = timer::next_after(collection.due, collection.settings.interval, now);
        let listening = instruments.iter().filter(|instrument| instrument.is_listening()).cloned();
        Some((collection.id.clone(), [from, collection.from], listening.collect()))
    }
}

impl Periodic for Shared {
    fn run(&self, now: Instant) -> Option<Instant> {
        // Without the lock: observing calls the program's own code, which may create instruments.
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
    fn values_owned_by_a_callback_may_dispose_other_meters() {
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
