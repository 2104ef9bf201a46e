//! Records all processes that arrive, in parallel, until the last stream has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use runtap_diag::Downgrade;
use runtap_model::order;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, MissedTickBehavior, interval};

use crate::Error;
use crate::event::{self, Event};
use crate::job::{Active, Job, Phase};
use crate::one::{self, EndedStream};
use crate::recorder::Progress;
use crate::start::Started;
use crate::stops::StopRequest;

/// A process whose session has started, or failed to start. `Ok(None)` if the recording was stopped before.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) label: String,
    pub(crate) started: Result<Option<Started>, Error>,
    pub(crate) active: Active,
}

/// The results of all processes, in the order in which they arrived.
#[derive(Debug, Default)]
pub(crate) struct CollectedStreams {
    pub(crate) taken: Vec<EndedStream>,
    /// The processes that could not be recorded.
    pub(crate) failed: Vec<(String, Error)>,
}

/// Records until no more processes can arrive and all streams have ended.
pub(crate) async fn record_all(
    job: &Arc<Job>,
    mut arrivals: mpsc::UnboundedReceiver<Arrival>,
) -> CollectedStreams {
    let mut recordings = JoinSet::new();
    let mut board = ProgressBoard::default();
    let mut gathered = Vec::new();
    let mut failed = Vec::new();
    let mut requests = job.stops.listener();
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut open, mut has_begun) = (true, false);
    while open || !recordings.is_empty() {
        tokio::select! {
            arrival = arrivals.recv(), if open => match arrival {
                None => open = false,
                Some(Arrival { started: Ok(None), .. }) => {}
                Some(Arrival { label, started: Err(error), .. }) => failed.push((label, error)),
                Some(Arrival { label, started: Ok(Some(started)), active }) => {
                    if !has_begun {
                        begin(job, &started);
                    }
                    has_begun = true;
                    let number = started.outputs.number();
                    let progress = board.add();
                    let job = Arc::clone(job);
                    recordings.spawn(async move {
                        let _active = active;
                        let taken = one::record(job, started, progress).await;
                        (number, label, taken)
                    });
                }
            },
            Some(Ok((number, label, taken))) = recordings.join_next() => match taken {
                Ok(taken) => gathered.push((number, taken)),
                Err(error) => failed.push((label, error)),
            },
            request = requests.next() => {
                if request == StopRequest::Stop && board.stopped.replace(Instant::now()).is_some() {
                    job.report(Event::StoppingAlready { sends_names: job.spec.session.rundown_keyword != 0 });
                }
            }
            _ = tick.tick() => if let Some(progress) = board.progress(job) {
                job.report(Event::Progress(progress));
            },
        }
    }
    job.report(Event::Recorded);
    job.enter(Phase::Recorded);
    order::sort_by_key(&mut gathered, |(number, _)| *number);
    CollectedStreams { taken: gathered.into_iter().map(|(_, taken)| taken).collect(), failed }
}

/// Called for the first session: the duration counts from here.
fn begin(job: &Job, started: &Started) {
    // Consumers ignore stacks.
    let matters =
        |downgrade: &&Downgrade| job.spec.consumers.is_none() || **downgrade != Downgrade::StackwalkForced;
    for downgrade in started.running.session.downgrades().iter().filter(matters) {
        job.report(Event::Downgraded(downgrade.clone()));
    }
    job.start_duration();
}

/// The progress of all recordings.
#[derive(Debug, Default)]
struct ProgressBoard {
    started: Option<Instant>,
    stopped: Option<Instant>,
    all: Vec<Arc<Progress>>,
}

impl ProgressBoard {
    fn add(&mut self) -> Arc<Progress> {
        self.started.get_or_insert_with(Instant::now);
        let progress = Arc::new(Progress::default());
        self.all.push(Arc::clone(&progress));
        progress
    }

    /// Returns the progress. `None` before the first recording has started.
    fn progress(&self, job: &Job) -> Option<event::Progress> {
        let elapsed = self.started?.elapsed();
        let sum = |of: fn(&Progress) -> u64| self.all.iter().map(|progress| of(progress)).sum::<u64>();
        let left = job.spec.duration.filter(|_| self.stopped.is_none());
        Some(event::Progress {
            elapsed,
            left: left.map(|duration| duration.saturating_sub(elapsed)),
            bytes: sum(|progress| progress.bytes.load(Ordering::Relaxed)),
            events: sum(|progress| progress.events.load(Ordering::Relaxed)),
            lost: sum(|progress| progress.lost.load(Ordering::Relaxed)),
            active: job.active(),
            all: self.all.len(),
            is_stopping: self.stopped.is_some(),
        })
    }
}
