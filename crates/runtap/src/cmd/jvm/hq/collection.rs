//! A collection: a collector that listens until it is stopped, with its output and its report.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use runtap_bytefrog::control::ClassFilter;
use runtap_bytefrog::hq::Options;
use runtap_bytefrog_proto::{Configuration, Extension, Mode, RecordMode, WhenSlow as Slow};
use runtap_jvm::agents::{CollectionResult, Collector, GRACE_PERIOD};
use runtap_jvm::recording::{Error, RecordingWriter};
use runtap_record::Stops;
use runtap_text::jvm::{AgentLog, CollectionText, collection_document, collection_warnings, notice_messages};
use runtap_text::{Output, TextOptions};
use runtap_transport::most_descriptors;
use tokio::time::timeout;

use crate::cli::{JvmClock, JvmHq, JvmMode, JvmTracing, WhenSlow};
use crate::exit::{self, expected};

/// The interval of snapshots of agents that send counts or coverage, in milliseconds.
const SNAPSHOT_INTERVAL_MS: u32 = 1000;

/// A collector with its options, requests to stop it, and its output.
pub(in crate::cmd::jvm) struct Collection {
    options: JvmHq,
    pub(in crate::cmd::jvm) collector: Collector,
    stops: Stops,
    output: Output,
}

impl Collection {
    /// Listens on the first address that is available, for these users; `None` accepts all users.
    pub(in crate::cmd::jvm) fn listen(
        options: JvmHq,
        addresses: &[SocketAddr],
        users: Option<Vec<u32>>,
        stops: Stops,
        output: Output,
    ) -> anyhow::Result<Self> {
        let record = |path: &Path| {
            RecordingWriter::create(path).map_err(|error| match error {
                // This error already names the cause and a hint.
                Error::Output(error) => error.into(),
                error => expected(exit::FAILED, format!("--record {}: {error}", path.display()), None),
            })
        };
        let recorder = options.record.as_deref().map(record).transpose()?;
        let hq_options = Options {
            configuration: configuration(&options.tracing),
            initial_mode: (!options.no_start).then_some(Mode::Tracing),
            users,
            connections: Options::connections_within(most_descriptors(), recorder.is_some()),
            recorder: recorder.map(|recorder| std::sync::Arc::new(recorder) as _),
            slow: u64::try_from(options.slow.as_nanos()).unwrap_or(u64::MAX),
            ..Options::default()
        };
        let collector = Collector::listen(addresses, &hq_options, output.is_verbose()).map_err(|error| {
            let hint = (error.kind() == io::ErrorKind::AddrInUse).then(|| {
                "Another collector listens there; stop it, or choose another port with --listen.".to_owned()
            });
            expected(exit::FAILED, format!("listen on {}: {error}", options.listen), hint)
        })?;
        Ok(Self { options, collector, stops, output })
    }

    /// Returns the address that agents connect to.
    pub(in crate::cmd) fn address(&self) -> SocketAddr {
        self.collector.hq.address()
    }

    /// Shows the live view or the log until [the end](Self::over), or with `--once` until the first agent has ended.
    pub(super) async fn show(&self) -> io::Result<()> {
        #[cfg(all(unix, feature = "tui"))]
        if super::has_live_view(self.output) && !self.options.plain {
            let Collector { hq, watch } = &self.collector;
            let view = runtap_text::jvm::LiveView {
                colors: self.output.colors(),
                stays: !self.options.once && self.options.duration.is_none(),
            };
            let last = view.show(hq, watch, self.over(), || self.stops.stop()).await?;
            // Warnings stay visible after the live view.
            self.output.messages(
                last.into_iter().filter(|message| matches!(message, runtap_model::Message::Warning(_))),
            );
            return Ok(());
        }
        self.log().await;
        Ok(())
    }

    /// Prints events until [the end](Self::over), or with `--once` until the first agent has ended.
    pub(in crate::cmd::jvm) async fn log(&self) {
        let Collector { hq, watch } = &self.collector;
        let log = AgentLog { once: self.options.once, interval: self.options.interval };
        log.show(hq, watch, self.over(), self.output).await;
    }

    /// Completes when the user stops the collection, or the duration has elapsed.
    async fn over(&self) {
        match self.options.duration {
            Some(duration) => drop(timeout(duration, self.stops.stopping()).await),
            None => self.stops.stopping().await,
        }
    }

    /// Prints the pending notices.
    fn print_notices(&self) {
        self.output.messages(notice_messages(&self.collector.watch));
    }

    /// Prints events until `work` completes, and returns its result.
    #[cfg(target_os = "linux")]
    pub(in crate::cmd::jvm) async fn until<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => {
                    self.print_notices();
                    return done;
                }
                () = self.collector.watch.news.notified() => self.print_notices(),
            }
        }
    }

    /// Stops the agents, waits for their ends unless `hurry` is set, and prints the report.
    ///
    /// # Errors
    /// No agent has connected, or the report cannot be printed.
    pub(in crate::cmd::jvm) async fn end(self, hurry: bool) -> anyhow::Result<u8> {
        let Self { options, collector, stops, output } = &self;
        let mut again = stops.listener();
        let is_interrupted = stops.is_stopping();
        let waits = |agents| {
            let rest = if agents == 1 { "the agent".to_owned() } else { format!("{agents} agents") };
            output.note(format_args!(
                "Waiting up to {} seconds for the remaining data of {rest}; Ctrl-C again stops waiting",
                GRACE_PERIOD.as_secs(),
            ));
        };
        let interrupted = async || {
            again.next().await;
        };
        let sends_counts = options.tracing.mode != JvmMode::Full;
        let result = collector.end(hurry, sends_counts, interrupted, waits, || self.print_notices()).await?;
        self.print(&result)?;
        for warning in collection_warnings(&result, !options.tracing.include.is_empty()) {
            output.warning(warning);
        }
        if !result.agents.is_empty() {
            return Ok(if result.is_partial() { exit::PARTIAL } else { exit::OK });
        }
        if is_interrupted {
            return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED));
        }
        let hint = format!(
            "Load the agent into a running program: runtap jvm attach PID --hq {0}; or start the program with -javaagent:bytefrog-tracer.jar={0}",
            self.address()
        );
        Err(expected(exit::NO_TARGET, "no agent has connected", hint))
    }

    /// Prints the reports on the agents, or a combined report of more agents than are kept.
    fn print(&self, result: &CollectionResult) -> anyhow::Result<()> {
        let Self { options, output, .. } = self;
        if output.json() {
            return Ok(output.document(&collection_document(result))?);
        }
        let shown = TextOptions {
            width: output.columns(),
            rows: (options.limit > 0).then_some(options.limit),
            more: Some("--limit 0 shows all"),
            ..output.options()
        };
        output.print(&CollectionText(result), &shown)?;
        if result.combined.is_some() && options.record.is_none() {
            output.note(
                "There are too many agents to show each one; --record DIR keeps all of them, for 'runtap jvm report'.",
            );
        }
        Ok(())
    }
}

/// Returns the configuration of the agents.
fn configuration(tracing: &JvmTracing) -> Configuration {
    let mut configuration = Configuration {
        data_senders: tracing.senders.into(),
        extension: Extension {
            record: match tracing.mode {
                JvmMode::Full => RecordMode::Full,
                JvmMode::Counts => RecordMode::Counts,
                JvmMode::Coverage => RecordMode::Coverage,
            },
            coarse_clock: tracing.clock == JvmClock::Ms,
            when_slow: match tracing.when_slow.unwrap_or(WhenSlow::Block) {
                WhenSlow::Block => Slow::Block,
                WhenSlow::Drop => Slow::Drop,
                WhenSlow::Counts => Slow::Counts,
            },
            snapshot_interval: SNAPSHOT_INTERVAL_MS,
        },
        ..Configuration::default()
    };
    let classes = ClassFilter { include: tracing.include.clone(), exclude: tracing.exclude.clone() };
    classes.apply_to(&mut configuration);
    configuration
}
