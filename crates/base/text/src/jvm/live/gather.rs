//! Snapshots of the collector's state for the live view.
//!
//! Owns: the thread that requests reports. Creating a report blocks the decoder of its agent. The thread therefore requests
//! only the displayed parts, and pauses in proportion to their cost: the decoder loses at most a twentieth of its time.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_bytefrog::hq::{AgentId, AgentStatus, Hq};
use runtap_bytefrog::{CallTree, Counters, Report};
use runtap_jvm::agents::{AgentFacts, AgentSummary, AgentWatch};
use tokio::sync::watch;

/// The minimum pause between two snapshots.
const MIN_PAUSE: Duration = Duration::from_millis(250);
/// The length of the pause, as a multiple of the time that the snapshot took.
const PAUSE_FACTOR: u32 = 20;

/// The parts of the state to display.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SnapshotRequest {
    /// The agent; `None` for the first one.
    pub(super) agent: Option<AgentId>,
    /// The thread whose call tree is shown; `None` for all threads.
    pub(super) thread: Option<usize>,
    /// Whether the call tree is needed.
    pub(super) tree: bool,
}

/// An agent with its rate of calls.
#[derive(Debug, Clone)]
pub(super) struct ViewedAgent {
    pub(super) status: AgentStatus,
    pub(super) facts: AgentFacts,
    pub(super) counters: Counters,
    /// The number of events that wait for earlier events.
    pub(super) waiting: usize,
    /// Calls per second since the previous snapshot.
    pub(super) rate: u64,
}

/// The state of the collector at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) request: SnapshotRequest,
    pub(super) agents: Vec<ViewedAgent>,
    /// The report on the requested agent.
    pub(super) report: Option<Arc<Report>>,
    pub(super) tree: Option<Arc<CallTree>>,
}

#[derive(Debug, Default)]
struct GathererState {
    request: SnapshotRequest,
    /// Whether a snapshot is due immediately.
    is_due: bool,
    is_stopping: bool,
}

/// A handle to the thread, which stops when the handle is dropped.
#[derive(Debug)]
pub(super) struct Gatherer {
    state: Arc<(Mutex<GathererState>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

fn lock(state: &Mutex<GathererState>) -> MutexGuard<'_, GathererState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gatherer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the thread cannot be created.
    pub(super) fn start(
        hq: Arc<Hq>,
        watch: Arc<AgentWatch>,
        to: watch::Sender<Snapshot>,
    ) -> std::io::Result<Self> {
        let state = Arc::new((
            Mutex::new(GathererState { is_due: true, ..GathererState::default() }),
            Condvar::new(),
        ));
        let ask = Arc::clone(&state);
        let thread =
            thread::Builder::new().name("live-view".into()).spawn(move || gather(&ask, &hq, &watch, &to))?;
        Ok(Self { state, thread: Some(thread) })
    }

    /// Changes the parts of the state to display.
    pub(super) fn ask(&self, request: SnapshotRequest) {
        let mut state = lock(&self.state.0);
        if state.request != request {
            (state.request, state.is_due) = (request, true);
            self.state.1.notify_one();
        }
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        lock(&self.state.0).is_stopping = true;
        self.state.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gather(
    state: &(Mutex<GathererState>, Condvar),
    hq: &Hq,
    watch: &AgentWatch,
    to: &watch::Sender<Snapshot>,
) {
    let (state, changed) = state;
    let mut rates = BTreeMap::new();
    let mut rest = Duration::ZERO;
    loop {
        let guard = lock(state);
        let waited = changed.wait_timeout_while(guard, rest, |state| !state.is_due && !state.is_stopping);
        let (mut guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if guard.is_stopping {
            return;
        }
        guard.is_due = false;
        let request = guard.request;
        drop(guard);
        let began = Instant::now();
        to.send_replace(take_snapshot(request, hq, watch, &mut rates));
        rest = pause_after(began.elapsed());
    }
}

/// Returns the pause after a snapshot that took this long.
fn pause_after(took: Duration) -> Duration {
    MIN_PAUSE.max(took.saturating_mul(PAUSE_FACTOR))
}

fn take_snapshot(
    request: SnapshotRequest,
    hq: &Hq,
    watch: &AgentWatch,
    rates: &mut BTreeMap<AgentId, (Instant, u64)>,
) -> Snapshot {
    let now = Instant::now();
    let agents: Vec<ViewedAgent> = watch
        .summaries(hq)
        .into_iter()
        .filter_map(|AgentSummary { status, facts, counters, waiting }| {
            let facts = facts?;
            let before = rates.insert(status.id, (now, counters.calls()));
            let rate = before.map_or(0, |(then, before)| {
                let millis = now.duration_since(then).as_millis().max(1);
                let calls = u128::from(counters.calls().saturating_sub(before));
                u64::try_from(calls * 1000 / millis).unwrap_or(u64::MAX)
            });
            Some(ViewedAgent { status, facts, counters, waiting, rate })
        })
        .collect();
    rates.retain(|id, _| agents.iter().any(|agent| agent.status.id == *id));
    let wanted = request.agent.filter(|id| agents.iter().any(|agent| agent.status.id == *id));
    let agent = wanted.or_else(|| agents.first().map(|agent| agent.status.id));
    let report = agent.and_then(|id| hq.report(id).ok()).map(Arc::new);
    let tree = agent.filter(|_| request.tree).and_then(|id| hq.call_tree(id, request.thread).ok());
    let tree = tree.map(Arc::new);
    Snapshot { request: SnapshotRequest { agent, ..request }, agents, report, tree }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_snapshots_are_taken_less_often() {
        assert_eq!(pause_after(Duration::from_millis(1)), MIN_PAUSE);
        assert_eq!(pause_after(Duration::from_millis(300)), Duration::from_secs(6));
    }
}
