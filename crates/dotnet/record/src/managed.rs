//! Records .NET processes and reads the counters of Java programs together: those given, or those that have a name, as they start.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use runtap_discover::{Options, System};
use runtap_model::order;
use runtap_os::in_a_thread;
use runtap_target::{JvmTarget, ManagedTarget, ResolvedTarget, TargetSpec};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::conductor::{self, Arrival};
use crate::counters::{CounterMonitor, jvm};
use crate::event::Event;
use crate::job::Job;
use crate::outcome::RecordingOutcome;
use crate::{Error, begin_all, files, running};

/// Poll interval of new processes.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many more times the names of processes are queried after the list of processes has changed: a process that starts does not
/// answer at once.
const QUERIES: u32 = 10;

/// Records these processes.
pub(crate) async fn record(
    job: Arc<Job>,
    dotnet: Vec<ResolvedTarget>,
    jvms: Vec<JvmTarget>,
) -> Result<RecordingOutcome, Error> {
    if jvms.is_empty() {
        return running(job, dotnet).await;
    }
    let monitor = monitor(&job)?;
    let mut readers = JoinSet::new();
    for target in jvms {
        readers.spawn(jvm::read(target, monitor.clone(), job.stops.clone()));
    }
    job.start_duration();
    let recording = async {
        if dotnet.is_empty() { Ok(RecordingOutcome::default()) } else { running(job, dotnet).await }
    };
    let (outcome, others) = tokio::join!(recording, readers.join_all());
    let mut outcome = outcome?;
    for other in others {
        outcome.append(other);
    }
    Ok(outcome)
}

/// Records the processes that have a name, one after the other or `all` at once, until a stop is requested.
pub(crate) async fn record_named(
    job: Arc<Job>,
    spec: TargetSpec,
    all: bool,
) -> Result<RecordingOutcome, Error> {
    let monitor = monitor(&job)?;
    job.start_duration();
    let (tell, arrivals) = mpsc::unbounded_channel();
    let find = find_named(Arc::clone(&job), spec, all, monitor, tell);
    let (gathered, others) = tokio::join!(conductor::record_all(&job, arrivals), find);
    let mut outcome = files::make(&job, gathered).await;
    for other in others {
        outcome.append(other);
    }
    Ok(outcome)
}

/// Starts recordings of the processes that have a name. Returns the results of Java programs.
async fn find_named(
    job: Arc<Job>,
    spec: TargetSpec,
    all: bool,
    monitor: CounterMonitor,
    tell: mpsc::UnboundedSender<Arrival>,
) -> Vec<RecordingOutcome> {
    let (mut readers, mut results) = (JoinSet::new(), Vec::new());
    let (mut known, mut listed, mut queries) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut is_announced = false;
    let mut tick = interval(POLL_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = job.stops.stopping() => break,
            Some(Ok(result)) = readers.join_next() => {
                results.push(result);
                continue;
            }
            _ = tick.tick() => {}
        }
        let is_busy = job.active() + readers.len() > 0;
        if is_busy && !all {
            continue;
        }
        // Queries of names occupy runtimes, so there are none while no process starts.
        let now = processes().await;
        if now != listed {
            (listed, queries) = (now, QUERIES);
        }
        let found = if queries > 0 { named(&job, &spec).await } else { Vec::new() };
        queries = queries.saturating_sub(1);
        let new = found.into_iter().filter(|target| known.insert(identity(target)));
        let new: Vec<ManagedTarget> = new.take(if all { usize::MAX } else { 1 }).collect();
        if new.is_empty() && !is_busy && !is_announced {
            job.report(Event::WaitingForProcess);
        }
        is_announced = new.is_empty() && !is_busy;
        let (dotnet, jvms) = ManagedTarget::split(new);
        for target in jvms {
            readers.spawn(jvm::read(target, monitor.clone(), job.stops.clone()));
        }
        for arrival in begin_all(&job, dotnet).await {
            // The receiver exists.
            let _ = tell.send(arrival);
        }
    }
    drop(tell);
    results.extend(readers.join_all().await);
    results
}

/// Returns the ids and start times of all managed processes.
async fn processes() -> BTreeSet<(u32, u64)> {
    let list = || System::current().processes(Options::default());
    let listed = in_a_thread(list).await.unwrap_or_default();
    order::to_set(listed.into_iter().map(|process| (process.pid, process.start_time)))
}

/// Returns the processes that have the name, the oldest first.
async fn named(job: &Job, spec: &TargetSpec) -> Vec<ManagedTarget> {
    let found = tokio::select! {
        () = job.stops.stopping() => return Vec::new(),
        found = spec.resolve_all_managed(&()) => found,
    };
    let mut found = found.unwrap_or_default();
    order::sort_by_number(&mut found, |target| identity(target).1);
    found
}

/// Returns the id and the start time of a process, which a later process does not share.
fn identity(target: &ManagedTarget) -> (u32, u64) {
    target.process().map_or((0, 0), |process| (process.pid, process.start_time))
}

fn monitor(job: &Job) -> Result<CounterMonitor, Error> {
    job.spec.counters.clone().ok_or(Error::NoMonitor)
}
