//! What the view shows, taken from the collector now and then.
//!
//! Owns: the thread that asks for reports. A report holds up the decoder of its agent while it is made, so that it is asked
//! for what is shown only, and the less often the more it costs: the decoder loses a twentieth of its time at most.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_bytefrog::hq::{AgentId, AgentStatus, Hq};
use runtap_bytefrog::{CallTree, Counters, Report};
use tokio::sync::watch;

use super::super::hq::watch::{Facts, Watch};

/// The least time between two looks.
const LEAST: Duration = Duration::from_millis(250);
/// A look that takes a second is followed by so many of rest.
const REST: u32 = 20;

/// What is to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wants {
    /// The agent. None: the first.
    pub(super) agent: Option<AgentId>,
    /// The thread whose tree is shown; all.
    pub(super) thread: Option<usize>,
    /// Whether the tree is.
    pub(super) tree: bool,
}

/// An agent at a glance.
#[derive(Debug, Clone)]
pub(super) struct Glance {
    pub(super) state: AgentStatus,
    pub(super) facts: Facts,
    pub(super) counters: Counters,
    /// Events that wait for those before them.
    pub(super) waiting: usize,
    /// Calls in a second, since the last look.
    pub(super) rate: u64,
}

/// What there was to see.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    pub(super) wants: Wants,
    pub(super) agents: Vec<Glance>,
    /// Of the agent that was wanted.
    pub(super) report: Option<Arc<Report>>,
    pub(super) tree: Option<Arc<CallTree>>,
}

#[derive(Debug, Default)]
struct Asked {
    wants: Wants,
    /// Looked for at once.
    fresh: bool,
    over: bool,
}

/// The thread, until this is dropped.
#[derive(Debug)]
pub(super) struct Gatherer {
    asked: Arc<(Mutex<Asked>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

fn lock(asked: &Mutex<Asked>) -> MutexGuard<'_, Asked> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gatherer {
    /// Begins to look.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(
        hq: Arc<Hq>,
        facts: Arc<Watch>,
        to: watch::Sender<Snapshot>,
    ) -> std::io::Result<Self> {
        let asked = Arc::new((Mutex::new(Asked { fresh: true, ..Asked::default() }), Condvar::new()));
        let ask = Arc::clone(&asked);
        let thread =
            thread::Builder::new().name("live-view".into()).spawn(move || gather(&ask, &hq, &facts, &to))?;
        Ok(Self { asked, thread: Some(thread) })
    }

    /// What is to be shown from now on.
    pub(super) fn ask(&self, wants: Wants) {
        let mut asked = lock(&self.asked.0);
        if asked.wants != wants {
            (asked.wants, asked.fresh) = (wants, true);
            self.asked.1.notify_one();
        }
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        lock(&self.asked.0).over = true;
        self.asked.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gather(asked: &(Mutex<Asked>, Condvar), hq: &Hq, facts: &Watch, to: &watch::Sender<Snapshot>) {
    let (asked, changed) = asked;
    let mut rates = BTreeMap::new();
    let mut rest = Duration::ZERO;
    loop {
        let guard = lock(asked);
        let waited = changed.wait_timeout_while(guard, rest, |asked| !asked.fresh && !asked.over);
        let (mut guard, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if guard.over {
            return;
        }
        guard.fresh = false;
        let wants = guard.wants;
        drop(guard);
        let began = Instant::now();
        to.send_replace(look(wants, hq, facts, &mut rates));
        rest = pace(began.elapsed());
    }
}

/// How long to wait after a look that took so long.
fn pace(took: Duration) -> Duration {
    LEAST.max(took.saturating_mul(REST))
}

fn look(wants: Wants, hq: &Hq, facts: &Watch, rates: &mut BTreeMap<AgentId, (Instant, u64)>) -> Snapshot {
    let now = Instant::now();
    let agents: Vec<Glance> = hq
        .agents()
        .into_iter()
        .filter_map(|state| {
            let facts = facts.facts(state.id)?;
            let (counters, waiting) = hq.counters(state.id).ok()?;
            let before = rates.insert(state.id, (now, counters.calls()));
            let rate = before.map_or(0, |(then, before)| {
                let millis = now.duration_since(then).as_millis().max(1);
                let calls = u128::from(counters.calls().saturating_sub(before));
                u64::try_from(calls * 1000 / millis).unwrap_or(u64::MAX)
            });
            Some(Glance { state, facts, counters, waiting, rate })
        })
        .collect();
    rates.retain(|id, _| agents.iter().any(|agent| agent.state.id == *id));
    let wanted = wants.agent.filter(|id| agents.iter().any(|agent| agent.state.id == *id));
    let agent = wanted.or_else(|| agents.first().map(|agent| agent.state.id));
    let report = agent.and_then(|id| hq.report(id).ok()).map(Arc::new);
    let tree = agent.filter(|_| wants.tree).and_then(|id| hq.call_tree(id, wants.thread).ok());
    let tree = tree.map(Arc::new);
    Snapshot { wants: Wants { agent, ..wants }, agents, report, tree }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_much_is_looked_at_less_often() {
        assert_eq!(pace(Duration::from_millis(1)), LEAST);
        assert_eq!(pace(Duration::from_millis(300)), Duration::from_secs(6));
    }
}
