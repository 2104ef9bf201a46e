//! `runtap jvm hq`: a collector. It configures the agents that connect, prints their events, and at the end prints a report.

pub(super) mod end;
mod facts;
mod summary;
mod users;
pub(super) mod watch;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runtap_bytefrog::hq::{Hq, Options, Recorder, max_closing};
use runtap_bytefrog_proto::{Configuration, Extension, JavaString, Mode, RecordMode, WhenSlow as Slow};
use runtap_jvm::recording::Folder;
use runtap_os::allow_many_files;
use runtap_record::Stops;
use runtap_transport::{BindError, BindOptions, Listener, most_descriptors};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use self::summary::Summaries;
use self::watch::{Line, Watch, Weight};
use super::super::{address, block_on};
use super::control::{self, Context, serve};
use super::live;
use super::patterns::{self, TargetAgents};
use crate::cli::{JvmClock, JvmHq, JvmMode, JvmTracing, WhenSlow};
use crate::exit::{self, expected};
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
    patterns::check(&options.tracing, TargetAgents::Any)?;
    // Installed before listening: a client that sees the listener can already stop the collector by a signal.
    let stops = Stops::listen()?;
    let addresses = address::resolve("--listen", &options.listen, options.insecure, output).await?;
    let watch = Arc::new(Watch::new(output.is_verbose()));
    let users = users::allowed(&options.allow_user, &addresses)?;
    let hq = Arc::new(listen(options, &addresses, users.as_deref(), &watch)?);
    let listener = options.control.as_deref().map(bind).transpose()?;
    let controlled = listener.map(|listener| {
        let context = Context { hq: Arc::clone(&hq), watch: Arc::clone(&watch), stops: stops.clone() };
        tokio::spawn(serve(listener, context))
    });
    output.note(format_args!(
        "waiting for agents: 'runtap jvm attach PID --hq {0}', or java -javaagent:bytefrog-tracer.jar={0} …; Ctrl-C ends with a report",
        hq.address()
    ));
    let started = start(hq.address())?;
    let over =
        options.duration.and_then(|duration| Instant::now().checked_add(duration)).unwrap_or_else(far_future);
    match live::possible(output).filter(|_| !options.plain) {
        Some(view) => {
            let stays = !options.once && options.duration.is_none();
            let last = view.show(&hq, &watch, &stops, over, stays).await?;
            // Warnings stay visible after the live view.
            last.iter()
                .filter(|line| line.weight == Weight::Warning)
                .for_each(|line| print_line(line, output));
        }
        None => lines(options, &hq, &watch, &stops, over, output).await,
    }
    let code = end::end(options, &hq, &watch, &stops, false, output).await;
    if let Some(controlled) = controlled {
        // Dropping the server also removes the socket's file.
        controlled.abort();
        let _ = controlled.await;
    }
    Ok((code?, started))
}

/// Binds the control socket.
fn bind(path: &Path) -> anyhow::Result<Listener> {
    Listener::bind(path, BindOptions::default().replace_stale(true)).map_err(|error| match &error {
        BindError::InUse { .. } => expected(
            exit::FAILED,
            error.to_string(),
            "another collector listens there, or the file is no socket: choose another --control".to_owned(),
        ),
        _ => error.into(),
    })
}

/// Returns the exclusions and inclusions that agents are configured with.
pub(super) fn filters(include: &[String], exclude: &[String]) -> (Vec<JavaString>, Vec<JavaString>) {
    let patterns = |patterns: &[String]| -> Vec<JavaString> {
        patterns.iter().map(|pattern| JavaString::from(pattern.as_str())).collect()
    };
    let mut exclusions = patterns(exclude);
    // Inclusions only override exclusions; without any exclusion they would have no effect.
    if exclusions.is_empty() && !include.is_empty() {
        exclusions.push(JavaString::from(".*"));
    }
    (exclusions, patterns(include))
}

/// Returns the configuration of the agents.
fn configuration(tracing: &JvmTracing) -> Configuration {
    let (exclusions, inclusions) = filters(&tracing.include, &tracing.exclude);
    Configuration {
        exclusions,
        inclusions,
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
    }
}

/// Creates the directory in which connections are recorded.
fn recorder(path: &Path) -> anyhow::Result<Arc<dyn Recorder>> {
    match Folder::create(path) {
        Ok(folder) => Ok(Arc::new(folder)),
        // This error already names the cause and a hint.
        Err(runtap_jvm::recording::Error::Output(error)) => Err(error.into()),
        Err(error) => Err(expected(exit::FAILED, format!("--record {}: {error}", path.display()), None)),
    }
}

/// The number of descriptors that are left for everything but connections.
const RESERVED_DESCRIPTORS: usize = 64;

/// Returns the number of connections of all users that may be open within the limit of descriptors. A connection needs one for
/// its socket and, if it is recorded, two files for each direction. Up to [`max_closing`] more are shut down but have not
/// ended.
fn connections(descriptors: usize, is_recorded: bool) -> usize {
    let each = if is_recorded { 5 } else { 1 };
    let most = descriptors.saturating_sub(RESERVED_DESCRIPTORS) / each;
    let fits = |open: &usize| open + max_closing(*open) <= most;
    // An agent needs two connections.
    (2..=Options::default().connections).rev().find(fits).unwrap_or(2)
}

/// Listens on the first address that is available, for these users; `None` accepts all users.
pub(super) fn listen(
    options: &JvmHq,
    addresses: &[SocketAddr],
    users: Option<&[u32]>,
    watch: &Arc<Watch>,
) -> anyhow::Result<Hq> {
    let recorder = options.record.as_deref().map(recorder).transpose()?;
    let connections = connections(most_descriptors(), recorder.is_some());
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
    let hint = (failed.kind() == io::ErrorKind::AddrInUse)
        .then(|| "another collector listens there: end it, or choose another port with --listen".to_owned());
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
    watch: &Watch,
    stops: &Stops,
    over: Instant,
    output: Output,
) {
    let begin = Instant::now();
    let mut summaries = Summaries::new(begin.into_std());
    let every = if options.interval.is_zero() { Duration::MAX } else { options.interval };
    let first = begin.checked_add(every).unwrap_or_else(far_future);
    let mut summary = interval_at(first, every.min(FAR));
    summary.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stops.stopping() => return,
            () = sleep_until(over) => return,
            () = watch.news.notified() => {}
            _ = summary.tick() => {
                for line in summaries.lines(hq, watch, std::time::Instant::now()) {
                    watch.add_line(Weight::Note, line);
                }
            }
        }
        show(watch, output);
        if options.once && watch.one_has_finished() {
            return;
        }
    }
}

/// Prints the pending lines.
pub(super) fn show(watch: &Watch, output: Output) {
    for line in watch.lines() {
        print_line(&line, output);
    }
}

fn print_line(line: &Line, output: Output) {
    match line.weight {
        Weight::Detail => output.detail(&line.text),
        Weight::Note => output.note(&line.text),
        Weight::Warning => output.warning(&line.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_limit_leaves_descriptors_for_other_uses() {
        assert_eq!([connections(4096, false), connections(4096, true)], [200, 200]);
        assert_eq!([connections(1024, true), connections(256, false)], [154, 154]);
        assert_eq!(connections(10, true), 2);
    }
}
