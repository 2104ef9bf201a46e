//! `runtap jvm hq`: a collector. It configures the agents that connect, prints their events, and at the end prints a report.

pub(super) mod end;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::control::ClassFilter;
use runtap_bytefrog::hq::{Hq, Options, Recorder, UnknownUser, allowed_users};
use runtap_bytefrog_proto::{Configuration, Extension, Mode, RecordMode, WhenSlow as Slow};
use runtap_jvm::agents::{AgentWatch, PatternRole, PatternsError, TargetAgents, Weight, check_patterns};
use runtap_jvm::recording::RecordingWriter;
use runtap_os::allow_many_files;
use runtap_record::Stops;
use runtap_text::jvm::{AgentRates, NoticeLine, notice_lines};
use runtap_transport::most_descriptors;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::super::{address, block_on};
use super::control;
use crate::cli::{JvmClock, JvmHq, JvmMode, JvmTracing, WhenSlow};
use crate::exit::{self, expected, usage};
use crate::output::Output;

/// The interval of snapshots of agents that send counts or coverage, in milliseconds.
const SNAPSHOT_INTERVAL_MS: u32 = 1000;

pub(super) fn run(options: &JvmHq, output: Output) -> anyhow::Result<u8> {
    if let (Some(command), Some(path)) = (&options.send, &options.control) {
        return block_on(control::send(path, command, output));
    }
    // Connections of other users must not exhaust the descriptors. Not for `jvm run`, whose command would inherit the limit.
    allow_many_files();
    Ok(collect_from(options, |_| Ok(()), output)?.0)
}

/// Runs the collector, calling `start` with its address as soon as it listens. Returns the exit code and the result of `start`.
pub(in crate::cmd) fn collect_from<T>(
    options: &JvmHq,
    start: impl FnOnce(SocketAddr) -> anyhow::Result<T>,
    output: Output,
) -> anyhow::Result<(u8, T)> {
    block_on(collect(options, start, output))
}

async fn collect<T>(
    options: &JvmHq,
    start: impl FnOnce(SocketAddr) -> anyhow::Result<T>,
    output: Output,
) -> anyhow::Result<(u8, T)> {
    check(&options.tracing, TargetAgents::Any)?;
    // Installed before listening: a client that sees the listener can already stop the collector by a signal.
    let stops = Stops::listen()?;
    let addresses = address::resolve("--listen", &options.listen, options.insecure, output).await?;
    let watch = Arc::new(AgentWatch::new(output.is_verbose()));
    let users = allowed_users(&options.allow_user, &addresses);
    let users = users.map_err(|error| {
        let UnknownUser(name) = &error;
        usage(format!("--allow-user '{name}': {error}"))
    })?;
    let hq = Arc::new(listen(options, &addresses, users.as_deref(), &watch)?);
    let listener = options.control.as_deref().map(control::bind).transpose()?;
    let controlled = listener.map(|listener| {
        tokio::spawn(control::serve(listener, Arc::clone(&hq), Arc::clone(&watch), stops.clone()))
    });
    output.note(format_args!(
        "Waiting for agents: 'runtap jvm attach PID --hq {0}', or java -javaagent:bytefrog-tracer.jar={0} …; Ctrl-C stops the collection and prints a report",
        hq.address()
    ));
    let started = start(hq.address())?;
    let over =
        options.duration.and_then(|duration| Instant::now().checked_add(duration)).unwrap_or_else(far_future);
    #[cfg(unix)]
    let is_viewed = has_live_view(output) && !options.plain && {
        view(options, &hq, &watch, &stops, over, output).await?;
        true
    };
    #[cfg(not(unix))]
    let is_viewed = false;
    if !is_viewed {
        lines(options, &hq, &watch, &stops, over, output).await;
    }
    let code = end::end(options, &hq, &watch, &stops, false, output).await;
    if let Some(controlled) = controlled {
        // Dropping the server also removes the socket's file.
        controlled.abort();
        let _ = controlled.await;
    }
    Ok((code?, started))
}

/// Returns whether there is a live view: both input and output are a terminal. On Windows, reading single keys is not
/// implemented.
pub(in crate::cmd) fn has_live_view(output: Output) -> bool {
    cfg!(unix) && output.is_seen() && output.progress() && io::stdin().is_terminal()
}

/// Shows the live view until the user stops the collection, the deadline `over` passes, or with `--once` the first agent
/// has ended.
#[cfg(unix)]
async fn view(
    options: &JvmHq,
    hq: &Arc<Hq>,
    watch: &Arc<AgentWatch>,
    stops: &Stops,
    over: Instant,
    output: Output,
) -> io::Result<()> {
    let view = runtap_text::jvm::LiveView {
        colors: anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never,
        stays: !options.once && options.duration.is_none(),
    };
    let end = async {
        tokio::select! {
            biased;
            () = stops.stopping() => {}
            () = sleep_until(over) => {}
        }
    };
    let last = view.show(hq, watch, end, || stops.stop()).await?;
    // Warnings stay visible after the live view.
    last.iter().filter(|line| line.weight == Weight::Warning).for_each(|line| print_line(line, output));
    Ok(())
}

/// Checks the patterns of the classes to trace.
pub(super) fn check(tracing: &JvmTracing, agents: TargetAgents) -> anyhow::Result<()> {
    check_patterns(&tracing.include, &tracing.exclude, agents).map_err(|error| {
        // The error names only the pattern.
        let option = match &error {
            PatternsError::Invalid { role: PatternRole::Include, .. } => "--include",
            PatternsError::Invalid { role: PatternRole::Exclude, .. } => "--exclude",
            _ => "--include, --exclude",
        };
        usage(format!("{option}: {error}"))
    })
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

/// Creates the directory in which connections are recorded.
fn recorder(path: &Path) -> anyhow::Result<Arc<dyn Recorder>> {
    match RecordingWriter::create(path) {
        Ok(folder) => Ok(Arc::new(folder)),
        // This error already names the cause and a hint.
        Err(runtap_jvm::recording::Error::Output(error)) => Err(error.into()),
        Err(error) => Err(expected(exit::FAILED, format!("--record {}: {error}", path.display()), None)),
    }
}

/// Listens on the first address that is available, for these users; `None` accepts all users.
pub(super) fn listen(
    options: &JvmHq,
    addresses: &[SocketAddr],
    users: Option<&[u32]>,
    watch: &Arc<AgentWatch>,
) -> anyhow::Result<Hq> {
    let recorder = options.record.as_deref().map(recorder).transpose()?;
    let connections = Options::connections_within(most_descriptors(), recorder.is_some());
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let wanted = Options {
            configuration: configuration(&options.tracing),
            initial_mode: (!options.no_start).then_some(Mode::Tracing),
            users: users.map(<[u32]>::to_vec),
            recorder: recorder.clone(),
            connections,
            slow: u64::try_from(options.slow.as_nanos()).unwrap_or(u64::MAX),
            ..Options::default()
        };
        let watch = Arc::clone(watch);
        match Hq::listen(*address, wanted, move |agent, event| watch.handle_event(agent, event)) {
            Ok(hq) => return Ok(hq),
            Err(error) => failed = error,
        }
    }
    let hint = (failed.kind() == io::ErrorKind::AddrInUse).then(|| {
        "Another collector listens there; stop it, or choose another port with --listen.".to_owned()
    });
    Err(expected(exit::FAILED, format!("listen on {}: {failed}", options.listen), hint))
}

/// A deadline that is never reached.
const FAR: Duration = Duration::from_hours(24 * 365);

pub(super) fn far_future() -> Instant {
    Instant::now() + FAR
}

/// Prints events until the user stops the collection, the deadline `over` passes, or with `--once` the first agent has ended.
pub(super) async fn lines(
    options: &JvmHq,
    hq: &Arc<Hq>,
    watch: &AgentWatch,
    stops: &Stops,
    over: Instant,
    output: Output,
) {
    let begin = Instant::now();
    let mut rates = AgentRates::new(begin.into_std());
    let every = if options.interval.is_zero() { Duration::MAX } else { options.interval };
    let first = begin.checked_add(every).unwrap_or_else(far_future);
    let mut summary = interval_at(first, every.min(FAR));
    summary.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stops.stopping() => return,
            () = sleep_until(over) => return,
            () = watch.news.notified() => show(watch, output),
            _ = summary.tick() => {
                show(watch, output);
                for line in rates.lines(hq, watch, std::time::Instant::now()) {
                    output.note(line);
                }
            }
        }
        if options.once && watch.one_has_finished() {
            return;
        }
    }
}

/// Prints the pending lines.
pub(super) fn show(watch: &AgentWatch, output: Output) {
    for line in notice_lines(watch) {
        print_line(&line, output);
    }
}

fn print_line(line: &NoticeLine, output: Output) {
    match line.weight {
        Weight::Detail => output.detail(&line.text),
        Weight::Note => output.note(&line.text),
        Weight::Warning => output.warning(&line.text),
    }
}
