//! Records every process that is handed over, all at the same time, until the last stream has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::job::{Job, Phase};
use super::one::{self, Taken};
use super::recorder::Progress;
use super::signals::Wish;
use super::start::Started;
use crate::units::{Bytes, Clock, Count, Things};

/// A process whose session has begun, or could not be. `None` in it: the end was asked for before.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) label: String,
    pub(super) started: anyhow::Result<Option<Started>>,
}

/// What came of all of them, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) taken: Vec<Taken>,
    /// Those that could not be recorded.
    pub(super) failed: Vec<(String, anyhow::Error)>,
}

/// Records until nobody hands anything over any more and all streams have ended. Each arrival was counted with
/// [`Job::begin_one`].
pub(super) async fn record_all(job: &Arc<Job>, mut arrivals: mpsc::UnboundedReceiver<Arrival>) -> Gathered {
    let mut recordings = JoinSet::new();
    let mut board = Board::default();
    let mut gathered = Vec::new();
    let mut failed = Vec::new();
    let mut ear = job.stops.ear();
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut open, mut has_begun) = (true, false);
    while open || !recordings.is_empty() {
        tokio::select! {
            arrival = arrivals.recv(), if open => match arrival {
                None => open = false,
                Some(Arrival { started: Ok(None), .. }) => job.end_one(),
                Some(Arrival { label, started: Err(error) }) => {
                    job.end_one();
                    failed.push((label, error));
                }
                Some(Arrival { label, started: Ok(Some(started)) }) => {
                    if !has_begun {
                        begin(job, &started);
                    }
                    has_begun = true;
                    let number = started.outputs.number();
                    let progress = board.add();
                    let job = Arc::clone(job);
                    recordings.spawn(async move {
                        let taken = one::record(job, started, progress).await;
                        (number, label, taken)
                    });
                }
            },
            Some(Ok((number, label, taken))) = recordings.join_next() => {
                job.end_one();
                match taken {
                    Ok(taken) => gathered.push((number, taken)),
                    Err(error) => failed.push((label, error)),
                }
            }
            wish = ear.next() => if wish == Wish::Stop && board.stopped.replace(Instant::now()).is_some() {
                job.output.note("stopping already; the same signal again gives up the names that are still to come");
            },
            _ = tick.tick() => board.show(job),
        }
    }
    if job.output.progress() {
        job.output.end_status();
    }
    job.enter(Phase::Recorded);
    gathered.sort_by_key(|(number, _)| *number);
    Gathered { taken: gathered.into_iter().map(|(_, taken)| taken).collect(), failed }
}

/// The first session runs: the time counts from here.
fn begin(job: &Job, started: &Started) {
    for downgrade in started.session.downgrades() {
        job.output.note(format_args!("note: {downgrade}"));
    }
    if let Some(duration) = job.options.duration {
        let stops = job.stops.clone();
        tokio::spawn(async move {
            sleep(duration).await;
            stops.stop();
        });
    }
}

/// How far all of them are, for the line on the terminal.
#[derive(Debug, Default)]
struct Board {
    started: Option<Instant>,
    stopped: Option<Instant>,
    all: Vec<Arc<Progress>>,
}

impl Board {
    fn add(&mut self) -> Arc<Progress> {
        self.started.get_or_insert_with(Instant::now);
        let progress = Arc::new(Progress::default());
        self.all.push(Arc::clone(&progress));
        progress
    }

    fn show(&self, job: &Job) {
        let (Some(started), true) = (self.started, job.output.progress()) else { return };
        let sum = |of: fn(&Progress) -> u64| self.all.iter().map(|progress| of(progress)).sum::<u64>();
        let bytes = sum(|progress| progress.bytes.load(Ordering::Relaxed));
        let elapsed = started.elapsed();
        let rate =
            u64::try_from(u128::from(bytes) * 1_000_000 / elapsed.as_micros().max(1)).unwrap_or(u64::MAX);
        let what = if job.children {
            // Their events are counted when they have ended.
            format!("{} of {} processes", job.active(), self.all.len())
        } else {
            let events = sum(|progress| progress.events.load(Ordering::Relaxed));
            let lost = sum(|progress| progress.lost.load(Ordering::Relaxed));
            format!("{}  {} lost", Things(events, "event"), Count(lost))
        };
        let left = match (job.options.duration, self.stopped) {
            (Some(duration), None) => format!(", {} left", Clock(duration.saturating_sub(elapsed))),
            _ => String::new(),
        };
        let stopping = if self.stopped.is_some() { "  stopping: the runtime tells its names" } else { "" };
        job.output.status(format_args!(
            "[{}{left}]  {}  {}/s  {what}{stopping}",
            Clock(elapsed),
            Bytes(bytes),
            Bytes(rate)
        ));
    }
}
