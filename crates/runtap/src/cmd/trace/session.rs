//! The time between the start of a session and its last byte: draining, progress, and every way to end.

use std::future;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use runtap_diag::{SessionConfig, Stopping};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::recorder::{Recorded, Recorder, Sink};
use super::threads::ThreadNames;
use crate::cli::Recording;
use crate::cmd::failure::explain;
use crate::cmd::target::Chosen;
use crate::output::Output;
use crate::units::{Bytes, Clock, Count};

/// A session that is over.
pub(super) struct Ended {
    pub(super) recorded: Recorded,
    pub(super) duration: Duration,
    pub(super) command: String,
    pub(super) downgrades: Vec<String>,
    pub(super) thread_names: Vec<(u64, String)>,
    /// In words, when something is missing.
    pub(super) why_partial: Option<String>,
}

/// Runs a session to its end.
///
/// # Errors
/// Only when it could not be started; after that everything has a result.
pub(super) async fn run(
    chosen: &Chosen,
    config: &SessionConfig,
    options: &Recording,
    sink: Sink,
    output: Output,
) -> anyhow::Result<Ended> {
    let mut session = chosen.client.start_session(config).await.map_err(explain)?;
    let started = Instant::now();
    let command = session.command();
    let command = command.name().map_or_else(|| command.to_string(), str::to_owned);
    let downgrades: Vec<String> = session.downgrades().iter().map(ToString::to_string).collect();
    output.detail(format_args!("session {} by {command}", session.id()));
    for downgrade in &downgrades {
        output.note(format_args!("note: {downgrade}"));
    }
    let mut interrupts = Interrupts::new()?;
    let recorder = Recorder::start(sink)?;
    if options.resume_runtime
        && let Err(error) = chosen.client.resume().await
        && !error.is_unknown_command()
    {
        output.warning(format_args!(
            "the runtime could not be told to go on, in case it is suspended: {error}"
        ));
    }

    let mut names = ThreadNames::default();
    let mut tick = interval(Duration::from_secs(1));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deadline = pin!(async {
        match options.duration {
            Some(duration) => sleep(duration).await,
            None => future::pending().await,
        }
    });
    let mut stopping: Option<Stopping> = None;
    let mut confirmed = false;
    let mut why_partial = None;
    if output.progress() && options.duration.is_none() {
        output.note("recording; Ctrl-C stops");
    }
    loop {
        tokio::select! {
            chunk = session.next_chunk() => match chunk {
                Ok(Some(chunk)) => if !recorder.write(chunk).await { break },
                Ok(None) => break,
                Err(error) => {
                    why_partial = Some(format!("the connection broke: {error}"));
                    break;
                }
            },
            () = &mut deadline, if stopping.is_none() => stopping = Some(session.stop()),
            () = interrupts.next() => {
                if stopping.is_some() {
                    why_partial = Some("it was interrupted before the runtime had told its last names".to_owned());
                    break;
                }
                stopping = Some(session.stop());
            },
            answer = async { match &mut stopping { Some(stop) => stop.await, None => future::pending().await } },
                if stopping.is_some() && !confirmed => {
                confirmed = true;
                if let Err(error) = answer {
                    output.warning(format_args!("the runtime did not confirm the stop: {error}"));
                }
            },
            _ = tick.tick() => {
                if let Some(process) = &chosen.process {
                    names.refresh(process);
                }
                show(&recorder, started, stopping.is_some(), output);
            },
        }
    }
    let duration = started.elapsed();
    drop(session);
    if output.progress() {
        output.end_status();
    }
    let recorded = recorder.finish();
    if let Some(error) = &recorded.write_error {
        why_partial = Some(match error.kind() {
            ErrorKind::StorageFull => "the disk is full".to_owned(),
            _ => format!("it could not be written any further: {error}"),
        });
    } else if why_partial.is_none() && recorded.partial.is_some() {
        why_partial = Some("the target ended in mid-stream".to_owned());
    }
    Ok(Ended { recorded, duration, command, downgrades, thread_names: names.into_list(), why_partial })
}

fn show<C: AsRef<[u8]> + Send + 'static>(
    recorder: &Recorder<C>,
    started: Instant,
    stopping: bool,
    output: Output,
) {
    if !output.progress() {
        return;
    }
    let progress = recorder.progress();
    let bytes = progress.bytes.load(Ordering::Relaxed);
    let elapsed = started.elapsed();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "shown with two digits"
    )]
    let rate = Bytes((bytes as f64 / elapsed.as_secs_f64().max(0.001)) as u64);
    let (events, lost) = (progress.events.load(Ordering::Relaxed), progress.lost.load(Ordering::Relaxed));
    let state = if stopping { "  stopping: the runtime tells its names" } else { "" };
    output.status(format_args!(
        "[{}]  {}  {rate}/s  {} events  {} lost{state}",
        Clock(elapsed),
        Bytes(bytes),
        Count(events),
        Count(lost)
    ));
}

/// The signals that mean "enough".
struct Interrupts {
    int: Signal,
    term: Signal,
    hup: Signal,
}

impl Interrupts {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.int.recv() => {}
            _ = self.term.recv() => {}
            _ = self.hup.recv() => {}
        }
    }
}
