//! Matches the ends of requests to their starts.
//!
//! Requests with one id, or without one, that are open at the same time can't be distinguished. A *run* lasts from the start of the
//! first of them until all have stopped. A run of one request is fully known. For a longer run, the requests and the ends are known,
//! but not which belong together; this counts as unknown unless it makes no difference.

use std::collections::BTreeMap;

use super::http::EndpointKey;

/// The status that a client reports without a response.
const NO_ANSWER: i64 = -1;

/// The totals of the requests of one kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) requests: u64,
    /// The number of requests that could not be distinguished from others.
    pub(super) overlapping: u64,
    pub(super) failed: MaybeKnown,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) unknown_statuses: u64,
    pub(super) unfinished: MaybeKnown,
    pub(super) times: Vec<u64>,
}

/// A number that may be partly unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MaybeKnown {
    number: u64,
    unknown: bool,
}

impl Sums {
    fn join(&mut self, other: Self) {
        self.requests += other.requests;
        self.overlapping += other.overlapping;
        self.failed.add(other.failed.known());
        for (status, n) in other.statuses {
            *self.statuses.entry(status).or_default() += n;
        }
        self.unknown_statuses += other.unknown_statuses;
        self.unfinished.add(other.unfinished.known());
        self.times.extend(other.times);
    }
}

impl MaybeKnown {
    fn add(&mut self, number: Option<u64>) {
        self.number += number.unwrap_or(0);
        self.unknown |= number.is_none();
    }

    pub(super) fn known(self) -> Option<u64> {
        (!self.unknown).then_some(self.number)
    }
}

pub(super) type ByKey = BTreeMap<EndpointKey, Sums>;

/// Indistinguishable requests, from the start of the first until all have stopped.
#[derive(Debug, Default)]
struct Run {
    /// The number of requests by kind, and of those whose start is missing.
    requests: BTreeMap<EndpointKey, u64>,
    unseen: u64,
    /// The number of all these requests.
    started: u64,
    /// The number of ends by status, and of all ends.
    stops: BTreeMap<Option<i64>, u64>,
    stopped: u64,
    failures: u64,
    began: u64,
    took: u64,
}

impl Run {
    fn start(&mut self, key: EndpointKey) {
        *self.requests.entry(key).or_default() += 1;
        self.started += 1;
    }

    fn stop(&mut self, status: Option<i64>) {
        *self.stops.entry(status).or_default() += 1;
        self.stopped += 1;
    }

    /// Returns the number of failed requests. A failed request has a failure event, and a status at its end that indicates failure.
    fn failures(&self) -> u64 {
        let unanswered = self.stops.get(&Some(NO_ANSWER)).copied().unwrap_or(0);
        self.failures.max(unanswered).min(self.started)
    }

    fn join(&mut self, other: &Self) {
        for (key, n) in &other.requests {
            *self.requests.entry(key.clone()).or_default() += n;
        }
        for (status, n) in &other.stops {
            *self.stops.entry(*status).or_default() += n;
        }
        self.unseen += other.unseen;
        self.started += other.started;
        self.stopped += other.stopped;
        self.failures += other.failures;
    }

    /// Adds what is certain to the totals.
    fn add_to(&self, sums: &mut ByKey) {
        let (started, stopped, failures) = (self.started, self.stopped, self.failures());
        let unfinished = started.saturating_sub(stopped);
        let of_one_kind = self.requests.len() == 1 && self.unseen == 0;
        for (key, n) in &self.requests {
            let of = sums.entry(key.clone()).or_default();
            of.requests += n;
            // If all requests of the run agree, the result is certain for each.
            let share = |of_all: u64| match of_all {
                0 => Some(0),
                all if of_one_kind => Some(all),
                all => (all == started).then_some(*n),
            };
            of.failed.add(share(failures));
            of.unfinished.add(share(unfinished));
            let mut unknown = self.stops.keys().any(Option::is_some);
            for (status, ended) in &self.stops {
                let Some(ended) = share(*ended) else { continue };
                unknown = false;
                if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
                    *of.statuses.entry(status).or_default() += ended;
                }
            }
            of.unknown_statuses += if unknown { *n } else { 0 };
            match (started, stopped) {
                (_, 0) => {}
                (1, 1) => of.times.push(self.took),
                _ => of.overlapping += n,
            }
        }
    }
}

/// What distinguishes a request from others, if anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id(pub(super) Option<String>);

impl Id {
    const NONE: Self = Self(None);
}

/// The requests of one component.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// The open runs by id.
    open: BTreeMap<Id, Run>,
    /// The totals of requests with an id, and of those without.
    with_id: ByKey,
    without_id: ByKey,
    /// All runs without an id combined: up to the last end whose start is missing, and since then.
    joined: Run,
    since: Run,
    failures: u64,
    error_statuses: u64,
}

/// The result.
pub(super) struct RunTotals {
    pub(super) sums: ByKey,
    /// These numbers are known even if it is unknown to which requests they belong.
    pub(super) failures: u64,
    pub(super) error_statuses: u64,
}

impl Runs {
    pub(super) fn start(&mut self, key: EndpointKey, id: Id, at: u64) {
        let run = self.open.entry(id).or_insert_with(|| Run { began: at, ..Run::default() });
        run.start(key);
    }

    pub(super) fn fail(&mut self, id: Id) {
        if let Some(run) = self.run_of(id).and_then(|id| self.open.get_mut(&id)) {
            run.failures += 1;
        }
    }

    /// Processes the end of a request. `since` returns the duration since a time.
    pub(super) fn stop(&mut self, id: Id, status: Option<i64>, since: impl FnOnce(u64) -> u64) {
        let has_id = id.0.is_some();
        let Some(id) = self.run_of(id) else {
            if !has_id {
                self.stop_unseen(status);
            }
            return;
        };
        let Some(run) = self.open.get_mut(&id) else { return };
        run.stop(status);
        if run.started == run.stopped {
            run.took = since(run.began);
            self.close(&id);
        }
    }

    /// Returns the id of the open run to which an event with this id belongs.
    fn run_of(&self, id: Id) -> Option<Id> {
        // A thread may have an activity id for other reasons, so the ids of start and end may differ.
        if self.open.contains_key(&id) {
            return Some(id);
        }
        if self.open.contains_key(&Id::NONE) {
            return Some(Id::NONE);
        }
        let mut ids = self.open.keys();
        ids.next().filter(|_| ids.next().is_none()).cloned()
    }

    /// Processes an end whose start is missing. Any earlier end may have belonged to that request too.
    fn stop_unseen(&mut self, status: Option<i64>) {
        self.joined.join(&std::mem::take(&mut self.since));
        self.joined.unseen += 1;
        self.joined.started += 1;
        self.joined.stop(status);
        self.without_id.clear();
    }

    fn close(&mut self, id: &Id) {
        let Some(run) = self.open.remove(id) else { return };
        self.failures += run.failures();
        self.error_statuses += run.stops.range(Some(400)..).map(|(_, n)| n).sum::<u64>();
        if id.0.is_some() {
            run.add_to(&mut self.with_id);
        } else {
            run.add_to(&mut self.without_id);
            self.since.join(&run);
        }
    }

    pub(super) fn finish(mut self) -> RunTotals {
        for id in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&id);
        }
        if self.joined.unseen > 0 {
            self.joined.add_to(&mut self.without_id);
        }
        let Self { with_id: mut sums, without_id, failures, error_statuses, .. } = self;
        for (key, of) in without_id {
            sums.entry(key).or_default().join(of);
        }
        RunTotals { sums, failures, error_statuses }
    }
}
