//! `runtap jvm hq`: agents dial in, are told what to trace, and what comes is shown: as lines while it comes, and as a report
//! at the end.

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
use super::patterns::{self, For};
use crate::cli::{JvmClock, JvmHq, JvmMode, JvmTracing, WhenSlow};
use crate::exit::{self, expected};
use crate::output::Output;

/// Time between two snapshots of agents that send counts or coverage, in milliseconds.
const SNAPSHOTS: u32 = 1000;

pub(super) fn run(options: &JvmHq, output: Output) -> anyhow::Result<u8> {
    if let (Some(command), Some(path)) = (&options.send, &options.control) {
        return block_on(control::send(path, command, output));
    }
    // Other users' connections must not use up the descriptors. Not for `jvm run`: its program would inherit the limit.
    allow_many_files();
    Ok(collect_from(options, |_| Ok(()), output)?.0)
}

/// The same, with something that is started once there is an address to dial. It is given back with the exit code.
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
    patterns::check(&options.tracing, For::Any)?;
    // Heard from the first moment on: whoever sees that we listen can end us.
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
    let over = options.duration.and_then(|duration| Instant::now().checked_add(duration)).unwrap_or_else(far);
    match live::possible(output).filter(|_| !options.plain) {
        Some(view) => {
            let stays = !options.once && options.duration.is_none();
            let last = view.show(&hq, &watch, &stops, over, stays).await?;
            // What mattered stays to be read.
            last.iter().filter(|line| line.weight == Weight::Warning).for_each(|line| say(line, output));
        }
        None => lines(options, &hq, &watch, &stops, over, output).await,
    }
    let code = end::end(options, &hq, &watch, &stops, false, output).await;
    if let Some(controlled) = controlled {
        // With its socket, whose file is removed.
        controlled.abort();
        let _ = controlled.await;
    }
    Ok((code?, started))
}

/// The control socket.
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

/// The exclusions and inclusions that agents are told.
pub(super) fn filters(include: &[String], exclude: &[String]) -> (Vec<JavaString>, Vec<JavaString>) {
    let patterns = |patterns: &[String]| -> Vec<JavaString> {
        patterns.iter().map(|pattern| JavaString::from(pattern.as_str())).collect()
    };
    let mut exclusions = patterns(exclude);
    // An inclusion only wins over exclusions: alone it would choose nothing.
    if exclusions.is_empty() && !include.is_empty() {
        exclusions.push(JavaString::from(".*"));
    }
    (exclusions, patterns(include))
}

/// What agents are told to trace.
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
            snapshot_interval: SNAPSHOTS,
        },
        ..Configuration::default()
    }
}

/// The folder that all that comes is written to.
fn recorder(path: &Path) -> anyhow::Result<Arc<dyn Recorder>> {
    match Folder::create(path) {
        Ok(folder) => Ok(Arc::new(folder)),
        // With what stood in its way, and the next step.
        Err(runtap_jvm::recording::Error::Output(error)) => Err(error.into()),
        Err(error) => Err(expected(exit::FAILED, format!("--record {}: {error}", path.display()), None)),
    }
}

/// The number of descriptors that are left for everything but connections.
const SPARE: usize = 64;

/// Returns the number of connections that may be open, of all users, within the limit of descriptors. A connection takes one for its
/// socket and, if it is recorded, two files for each direction. As many as [`max_closing`] were shut and have not ended.
fn connections(descriptors: usize, is_recorded: bool) -> usize {
    let each = if is_recorded { 5 } else { 1 };
    let most = descriptors.saturating_sub(SPARE) / each;
    let fits = |open: &usize| open + max_closing(*open) <= most;
    // An agent needs two.
    (2..=Options::default().connections).rev().find(fits).unwrap_or(2)
}

/// Listens at the first address where that is possible, for these users, or for everybody.
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
        let heard = Arc::clone(watch);
        match Hq::listen(*address, wanted, move |agent, event| heard.hear(agent, event)) {
            Ok(hq) => return Ok(hq),
            Err(error) => failed = error,
        }
    }
    let hint = (failed.kind() == io::ErrorKind::AddrInUse)
        .then(|| "another collector listens there: end it, or choose another port with --listen".to_owned());
    Err(expected(exit::FAILED, format!("listen on {}: {failed}", options.listen), hint))
}

/// A time that does not come.
const FAR: Duration = Duration::from_hours(24 * 365);

pub(super) fn far() -> Instant {
    Instant::now() + FAR
}

/// Shows lines until the end is asked for, or it is the end.
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
    let first = begin.checked_add(every).unwrap_or_else(far);
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
                    watch.say(Weight::Note, line);
                }
            }
        }
        show(watch, output);
        if options.once && watch.one_has_finished() {
            return;
        }
    }
}

/// Shows the lines that wait.
pub(super) fn show(watch: &Watch, output: Output) {
    for line in watch.lines() {
        say(&line, output);
    }
}

fn say(line: &Line, output: Output) {
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
    fn connections_leave_descriptors_for_the_others() {
        assert_eq!([connections(4096, false), connections(4096, true)], [200, 200]);
        assert_eq!([connections(1024, true), connections(256, false)], [154, 154]);
        assert_eq!(connections(10, true), 2);
    }
}
