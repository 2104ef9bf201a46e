//! Records running programs: one, several, a tree of them, or a command that it starts.
//!
//! ```text
//!  Target::Running  ──┐
//!   (relatives: children) ├─► start: a session, then resume ─► conductor: all recordings at once ─► files
//!  host: port, command ──┘       (guard: for surviving processes)           └ one ─ session ─ recorder
//! ```
//!
//! A [`Specification`] describes what is recorded, and the output files. [`Prepared::open`] opens the files before any request is
//! sent; [`Prepared::record`] records a [`Target`]. [`Event`]s are sent to a [`Reporter`], the [`RecordingOutcome`] is the result. [`Stops`]
//! stops it, by signals or by a call. `examples/watched.rs` is a complete program. [`write_live`] writes the events of a session as
//! lines instead.
//!
//! Related functions: [`take_thread_snapshot`] returns the threads of a program with their stacks. [`tap_all`] consumes the events of running programs without a file. [`resume()`] resumes programs that a
//! killed tool left suspended at its port. `UserEvents` records to tracepoints of the kernel, on Linux.
//!
//! The crate prints nothing and does not search for processes.

mod conductor;
mod consumer;
pub mod counters;
pub mod dump;
mod error;
mod event;
mod files;
#[cfg_attr(windows, path = "guard/windows.rs")]
mod guard;
pub mod heap;
mod host;
mod java;
mod job;
mod launch;
mod live;
mod live_profile;
mod managed;
pub mod messages;
mod missing;
mod one;
mod other_sessions;
mod outcome;
mod outputs;
#[cfg_attr(windows, path = "own_port/windows.rs")]
mod own_port;
pub mod providers;
mod raw;
mod recorder;
mod relatives;
mod resume;
mod session;
mod silence;
mod spec;
mod start;
mod stop_event;
mod stops;
mod tap;
mod thread_snapshot;
mod threads;
mod unreachable;
#[cfg(target_os = "linux")]
mod user_events;

use std::process::ExitStatus;
use std::sync::Arc;

use runtap_diag::ports::Port;
use runtap_os::{allow_many_files, in_a_thread};
use runtap_target::ResolvedTarget;
use tokio::sync::mpsc;

use self::conductor::Arrival;
pub use self::consumer::{Consumers, StreamConsumer};
pub use self::error::Error;
pub use self::event::{Event, Progress, Reporter};
pub use self::guard::guard_port;
use self::host::PortHost;
use self::job::{Job, Phase};
pub use self::launch::{Command, Io, Launched};
pub use self::live::{LiveEnd, write_live};
pub use self::live_profile::{
    LiveProfileEnd, LiveProfileRequest, LiveProfileUpdate, live_profile, save_profile,
};
pub use self::missing::Missing;
pub use self::outcome::{Files, Part, RecordingOutcome};
pub use self::resume::{ResumeError, Resumption, resume, resume_at};
pub use self::silence::{Received, Silence};
pub use self::spec::{Naming, Specification, Target};
pub use self::stop_event::{PayloadError, StopEvent, StopEventError};
pub use self::stops::{StopListener, StopRequest, Stops};
pub use self::tap::{Drained, Tap, tap_all};
pub use self::thread_snapshot::{ThreadSnapshot, take_thread_snapshot};
pub use self::unreachable::Unreachable;
#[cfg(target_os = "linux")]
pub use self::user_events::{UserEvent, UserEvents, UserEventsOutcome};

/// A recording whose outputs are open.
#[derive(Debug)]
pub struct Prepared(Job);

impl Prepared {
    /// Opens the outputs, which blocks for a pipe until it has a reader. Returns `None` if a stop was requested before.
    ///
    /// # Errors
    /// Returns an error if an output can't be written.
    pub async fn open(spec: Specification, stops: Stops, reporter: Reporter) -> Result<Option<Self>, Error> {
        let job = Job::new(spec, stops.clone(), reporter);
        let open = in_a_thread(move || job.open_outputs().map(|()| job));
        tokio::select! {
            biased;
            opened = open => Ok(Some(Self(opened??))),
            () = stops.stopping() => Ok(None),
        }
    }

    /// Records the target, creates the files, and passes the outcome to `made` as soon as it is available, even if a command is
    /// still running. Returns the result of `made` and the exit status of the command, if there was one.
    ///
    /// # Errors
    /// Returns an error if nothing could be started. Later errors are in the outcome.
    pub async fn record<T>(
        self,
        target: Target,
        made: impl FnOnce(RecordingOutcome) -> T,
    ) -> Result<(T, Option<ExitStatus>), Error> {
        match target {
            Target::Running(subjects) => Ok((made(running(Arc::new(self.0), subjects).await?), None)),
            Target::Managed(dotnet, jvms) => {
                Ok((made(managed::record(Arc::new(self.0), dotnet, jvms).await?), None))
            }
            Target::Named { spec, all } => {
                Ok((made(managed::record_named(Arc::new(self.0), spec, all).await?), None))
            }
            Target::Port(port) => {
                allow_many_files();
                Ok(keep(Arc::new(self.0), port, None, made).await)
            }
            Target::Command(command) => launch(self.0, command, made).await,
        }
    }
}

/// Records running processes, and their descendants if requested.
async fn running(job: Arc<Job>, subjects: Vec<ResolvedTarget>) -> Result<RecordingOutcome, Error> {
    let (tell, arrivals) = mpsc::unbounded_channel();
    if job.spec.children {
        let parents: Option<Vec<_>> = subjects.into_iter().map(|subject| subject.process).collect();
        for parent in parents.ok_or(Error::NoParent)? {
            tokio::spawn(relatives::follow(Arc::clone(&job), parent, tell.clone()));
        }
    } else {
        for arrival in begin_all(&job, subjects).await {
            // The receiver exists.
            let _ = tell.send(arrival);
        }
    }
    drop(tell);
    let gathered = conductor::record_all(&job, arrivals).await;
    Ok(files::make(&job, gathered).await)
}

/// Starts a session in each process in parallel. Recording begins when all have started, so that it ends at one time for all.
async fn begin_all(job: &Arc<Job>, subjects: Vec<ResolvedTarget>) -> Vec<Arrival> {
    let begin = |subject: ResolvedTarget| {
        let (job, label, active) = (Arc::clone(job), subject.label(), job.begin_one());
        tokio::spawn(async move { Arrival { label, started: start::begin(&job, subject).await, active } })
    };
    let beginning: Vec<_> = subjects.into_iter().map(begin).collect();
    let mut arrivals = Vec::with_capacity(beginning.len());
    for task in beginning {
        // The task is not cancelled, and a panic terminates the program.
        arrivals.extend(task.await);
    }
    arrivals
}

/// Launches a command and records it from its first event.
async fn launch<T>(
    mut job: Job,
    command: Command,
    made: impl FnOnce(RecordingOutcome) -> T,
) -> Result<(T, Option<ExitStatus>), Error> {
    job.restore = launch::restore();
    // Dropped after the port. The directory is removed unless a guard has the port.
    let (_home, port) = own_port::make()?;
    let launched = Launched::start(&command, port.path())?;
    allow_many_files();
    Ok(keep(Arc::new(job), port, Some((launched, command.kill)), made).await)
}

/// Records runtimes that connect, creates the files, and keeps the port and the command until everything has finished.
async fn keep<T>(
    job: Arc<Job>,
    port: Port,
    command: Option<(Launched, bool)>,
    made: impl FnOnce(RecordingOutcome) -> T,
) -> (T, Option<ExitStatus>) {
    let (tell, arrivals) = mpsc::unbounded_channel();
    let host = PortHost::new(&job, port, command, tell);
    let work = async {
        let gathered = conductor::record_all(&job, arrivals).await;
        let done = made(files::make(&job, gathered).await);
        job.enter(Phase::Finished);
        done
    };
    let (status, done) = tokio::join!(host.run(), work);
    (done, status.and_then(Result::ok))
}
