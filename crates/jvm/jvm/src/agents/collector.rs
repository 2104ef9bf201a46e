//! A collector with the facts about its agents, from listening to the end of the collection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::{AgentStatus, Hq, Options};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use super::ending::{stop_agents, unfinished_agents};
use super::{AgentWatch, CollectionResult};

/// The time in which agents may send their remaining data after they were stopped. The original agents first sleep for the
/// heartbeat interval, a second.
pub const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The time-out for the commands that stop agents when the user does not want to wait.
const HURRIED_STOP_TIMEOUT: Duration = Duration::from_millis(500);

/// A collector that listens, and what is known of its agents.
#[derive(Debug, Clone)]
pub struct Collector {
    /// The collector.
    pub hq: Arc<Hq>,
    /// The facts about its agents.
    pub watch: Arc<AgentWatch>,
}

impl Collector {
    /// Listens on the first of these addresses that is available. `details` is whether notices that are
    /// [details](super::Weight::Detail) are wanted.
    ///
    /// # Errors
    /// No address is available; the error is that of the last address.
    pub fn listen(addresses: &[SocketAddr], options: &Options, details: bool) -> io::Result<Self> {
        let watch = Arc::new(AgentWatch::new(details));
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            let handler = Arc::clone(&watch);
            let handle = move |agent, event| handler.handle_event(agent, event);
            match Hq::listen(*address, options.clone(), handle) {
                Ok(hq) => return Ok(Self { hq: Arc::new(hq), watch }),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Stops the agents, receives their remaining data unless `hurry` is set, and closes the collector. Calls `waits` with the
    /// number of agents whose data is awaited, and `news` when there are notices. Each time `interrupted` completes, a wait
    /// ends. `sends_counts` is whether agents send counts or coverage at intervals.
    ///
    /// # Errors
    /// A thread has panicked.
    pub async fn end(
        &self,
        hurry: bool,
        sends_counts: bool,
        mut interrupted: impl AsyncFnMut(),
        waits: impl FnOnce(usize),
        news: impl Fn(),
    ) -> io::Result<CollectionResult> {
        let agents = unfinished_agents(&self.hq, &self.watch);
        // On its own thread, because writing to an agent that does not read blocks.
        let (commands, stopping) = (Arc::clone(&self.hq), agents.clone());
        let stopped = spawn_blocking(move || stop_agents(&commands, &stopping));
        let hurry = if hurry {
            let _ = timeout(HURRIED_STOP_TIMEOUT, stopped).await;
            true
        } else {
            if !agents.is_empty() {
                waits(agents.len());
            }
            self.wait_for(&agents, &mut interrupted, &news).await
        };
        let unfinished = agents.iter().filter(|agent| self.is_unfinished(agent)).count() as u64;
        if hurry {
            self.hq.abandon();
        }
        let closing = Arc::clone(&self.hq);
        let mut closed = spawn_blocking(move || closing.close());
        tokio::select! {
            biased;
            done = &mut closed => done?,
            () = interrupted() => {
                self.hq.abandon();
                closed.await?;
            }
        }
        news();
        Ok(CollectionResult::of(&self.hq, &self.watch, sends_counts, unfinished))
    }

    /// Waits until these agents have ended or the grace period has elapsed. Returns `true` if the wait is interrupted.
    async fn wait_for(
        &self,
        agents: &[AgentStatus],
        interrupted: &mut impl AsyncFnMut(),
        news: &impl Fn(),
    ) -> bool {
        let until = Instant::now() + GRACE_PERIOD;
        while agents.iter().any(|agent| self.is_unfinished(agent)) {
            tokio::select! {
                biased;
                () = interrupted() => return true,
                () = sleep_until(until) => return false,
                () = self.watch.news.notified() => news(),
            }
        }
        false
    }

    fn is_unfinished(&self, agent: &AgentStatus) -> bool {
        self.watch.facts(agent.id).is_some_and(|facts| !facts.finished)
    }
}
