//! A collection that another subcommand starts and stops: a collector in this process, for one agent or the agents of one
//! command.

use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::Hq;
use runtap_jvm::agents::AgentWatch;
use runtap_record::Stops;
use tokio::time::Instant;

use super::hq::{end, far_future, lines, listen, show};
use crate::cli::{JvmHq, JvmShown, JvmTracing};
use crate::output::Output;

/// A collector on a free port of the loopback interface.
pub(super) struct Collection {
    options: JvmHq,
    hq: Arc<Hq>,
    watch: Arc<AgentWatch>,
    stops: Stops,
}

impl Collection {
    /// Starts to listen. `duration` limits [`Self::collect`]; `users` are the users whose processes may connect as agents.
    ///
    /// # Errors
    /// Fails if no port is available.
    pub(super) fn start(
        tracing: &JvmTracing,
        shown: JvmShown,
        duration: Option<Duration>,
        users: &[u32],
        stops: Stops,
        output: Output,
    ) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = JvmHq {
            listen: address.to_string(),
            insecure: false,
            allow_user: Vec::new(),
            tracing: tracing.clone(),
            no_start: false,
            once: true,
            duration,
            slow: shown.slow,
            interval: Duration::from_secs(10),
            plain: true,
            limit: shown.limit,
            record: shown.record,
            control: None,
            send: None,
            format: shown.format,
        };
        let watch = Arc::new(AgentWatch::new(output.is_verbose()));
        let hq = Arc::new(listen(&options, &[address], Some(users), &watch)?);
        Ok(Self { options, hq, watch, stops })
    }

    /// Returns the address that agents connect to.
    pub(super) fn address(&self) -> SocketAddr {
        self.hq.address()
    }

    /// Returns the number of connections that were closed because they belong to another user.
    pub(super) fn refused_users(&self) -> u64 {
        self.watch.rejected_users()
    }

    /// Returns whether an agent has connected.
    pub(super) fn has_agents(&self) -> bool {
        self.watch.connected_agents() > 0
    }

    /// Prints events until the first agent has ended, the duration has elapsed, or the user stops the collection.
    pub(super) async fn collect(&self, output: Output) {
        let over = self.options.duration.and_then(|duration| Instant::now().checked_add(duration));
        lines(&self.options, &self.hq, &self.watch, &self.stops, over.unwrap_or_else(far_future), output)
            .await;
    }

    /// Prints events until `work` completes, and returns its result.
    pub(super) async fn until<T>(&self, work: impl Future<Output = T>, output: Output) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    show(&self.watch, output);
                    return done;
                }
                () = self.watch.news.notified() => show(&self.watch, output),
            }
        }
    }

    /// Stops the agents, receives their remaining data unless `hurry` is set, and prints the report.
    ///
    /// # Errors
    /// Fails if no agent has connected, or if the report cannot be printed.
    pub(super) async fn end(self, hurry: bool, output: Output) -> anyhow::Result<u8> {
        end::end(&self.options, &self.hq, &self.watch, &self.stops, hurry, output).await
    }
}
