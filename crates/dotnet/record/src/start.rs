//! Starts the recording of a process: a session, and then the runtime is resumed. The runtime is resumed even if the session fails.

use std::future;
use std::time::{Duration, Instant};

use runtap_diag::ports::Runtime;
use runtap_diag::{Backlog, Client, Request, Session, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;
use runtap_transport::naming::PORTS;
use tokio::time::sleep;

use crate::Error;
use crate::event::Event;
use crate::job::Job;
use crate::other_sessions::OtherSessions;
use crate::outputs::Outputs;
use crate::session::RunningSession;

/// The time-out for a runtime that has connected and waits. If hundreds of processes start at once, each may be slow.
const RUNTIME_TIMEOUT: Duration = Duration::from_mins(5);
/// Poll interval to check whether it still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A session that has started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) subject: ResolvedTarget,
    pub(crate) outputs: Outputs,
    pub(crate) running: RunningSession,
}

/// The result of the request for a session. `None` if it was no longer needed.
pub(crate) type Asked = Option<Result<(Session, Outputs, OtherSessions), Error>>;

/// Starts a session and resumes the runtime. Returns `None` if a stop was requested before.
///
/// # Errors
/// Returns an error if there is no session. The runtime is resumed all the same.
pub(crate) async fn begin(job: &Job, subject: ResolvedTarget) -> Result<Option<Started>, Error> {
    // A stopped process would delay all others until it times out.
    if let Some((pid, finding)) = subject.stopped() {
        return Err(Error::NotReached { pid, finding });
    }
    let asked = ask(job, &subject).await;
    go_on(job, subject, asked).await
}

/// The first half of [`begin`]: opens the outputs, and then requests a session.
pub(crate) async fn ask(job: &Job, subject: &ResolvedTarget) -> Asked {
    let outputs = match job.outputs_of(subject.number()) {
        Ok(outputs) => outputs,
        Err(error) => return Some(Err(error)),
    };
    // There may be hundreds of sessions.
    let backlog = if job.spec.children { Backlog::small() } else { Backlog::default() };
    let mut client = subject.client.clone().with_backlog(backlog);
    if subject.runtime().is_some() {
        client = client.with_timeouts(Timeouts::all(RUNTIME_TIMEOUT));
    }
    let other_sessions = OtherSessions::before(subject.pid());
    let session = tokio::select! {
        biased;
        () = job.stops.stopping() => None,
        session = client.start_session(&job.spec.session) => Some(session),
        () = ended(subject.runtime()) => None,
    };
    match session {
        Some(Ok(session)) => Some(Ok((session, outputs, other_sessions))),
        other => {
            job.take_back(outputs);
            let error = other.and_then(Result::err)?;
            // The process controls how long an examination takes.
            Some(Err(in_a_thread(move || Error::of_runtime(error)).await.unwrap_or_else(Into::into)))
        }
    }
}

/// The second half of [`begin`]: resumes the runtime.
pub(crate) async fn go_on(
    job: &Job,
    subject: ResolvedTarget,
    asked: Asked,
) -> Result<Option<Started>, Error> {
    let since = Instant::now();
    let_go(job, &subject).await;
    match asked {
        Some(Ok((session, outputs, other_sessions))) => {
            return Ok(Some(Started {
                subject,
                outputs,
                running: RunningSession { session, since, other_sessions },
            }));
        }
        Some(Err(error)) if !subject.has_ended() => return Err(error),
        _ => {}
    }
    if !job.stops.is_stopping() {
        // The process's parent has its exit code.
        job.report(Event::EndedBefore { process: subject.label() });
    }
    Ok(None)
}

/// Waits until a runtime that connected has exited without an answer.
async fn ended(runtime: Option<&Runtime>) {
    match runtime {
        Some(runtime) => {
            while !runtime.has_ended() {
                sleep(POLL_INTERVAL).await;
            }
        }
        None => future::pending().await,
    }
}

/// Resumes a process if it is suspended.
pub(crate) async fn let_go(job: &Job, subject: &ResolvedTarget) {
    if !job.spec.resume {
        return;
    }
    let (reporter, process) = (job.reporter(), subject.label());
    let warn = move |error| reporter.report(Event::NotResumed { process: process.clone(), error });
    if let Some(runtime) = subject.runtime() {
        shield(job, &subject.client).await;
        match runtime.resume().await {
            // The process was killed.
            Ok(()) | Err(runtap_diag::Error::HungUp { .. }) => {}
            Err(_) if runtime.has_ended() => {}
            Err(error) => warn(error),
        }
        return;
    }
    // The runtime listens itself and may be busy, so the recording does not wait.
    let client = subject.client.clone();
    tokio::spawn(async move {
        match client.resume().await {
            Ok(()) => {}
            // .NET Core 3 can't be suspended.
            Err(error) if error.is_unknown_command() => {}
            // Recording fails for the same reason, and that error is reported.
            Err(runtap_diag::Error::NotPermitted { .. }) => {}
            Err(error) => warn(error),
        }
    });
}

/// Restores the variable to its value before the command was launched, so that children of this process do not wait for the port.
/// Skipped while children are to be recorded.
async fn shield(job: &Job, client: &Client) {
    let Some(restore) = &job.restore else { return };
    if job.spec.children && !job.stops.is_stopping() {
        return;
    }
    let request = Request::SetEnvironmentVariable { name: PORTS.to_owned(), value: restore.value.clone() };
    if let Err(error) = client.request(request).await {
        // .NET 5 does not support the command. Its children will connect and be resumed.
        job.report(Event::NotRestored { name: PORTS, error });
    }
}
