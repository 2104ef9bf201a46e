//! The start of one recording: a session, and then the runtime goes on. Whatever becomes of the session, nobody is left
//! waiting.

use std::future;
use std::time::{Duration, Instant};

use runtap_diag::ports::Runtime;
use runtap_diag::{Backlog, Client, Request, Session, Timeouts};
use runtap_os::in_a_thread;
use runtap_target::ResolvedTarget;
use tokio::time::sleep;

use crate::Error;
use crate::event::Event;
use crate::job::Job;
use crate::other_sessions::OtherSessions;
use crate::outputs::Outputs;
use crate::session::Running;

/// The variable by which processes learn of ports.
pub(crate) const PORTS: &str = "DOTNET_DiagnosticPorts";

/// How long a runtime that has dialled in is waited for: it waits for us, and where hundreds start at once on a small
/// machine, each gets little of it.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often it is looked whether it lives.
const LOOK: Duration = Duration::from_millis(500);

/// A session that has begun.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) subject: ResolvedTarget,
    pub(crate) outputs: Outputs,
    pub(crate) running: Running,
}

/// What came of the request for a session; `None` if there was no more use for one.
pub(crate) type Asked = Option<Result<(Session, Outputs, OtherSessions), Error>>;

/// Starts a session and lets the runtime go on; `None` if the end was asked for before there was a session.
///
/// # Errors
/// There is no session. The runtime goes on all the same.
pub(crate) async fn begin(job: &Job, subject: ResolvedTarget) -> Result<Option<Started>, Error> {
    // The others of several would wait for it until it is given up.
    if let Some((pid, finding)) = subject.stopped() {
        return Err(Error::NotReached { pid, finding });
    }
    let asked = ask(job, &subject).await;
    go_on(job, subject, asked).await
}

/// The first half of [`begin`]: opens the outputs, and only then asks for a session.
pub(crate) async fn ask(job: &Job, subject: &ResolvedTarget) -> Asked {
    let outputs = match job.outputs_of(subject.number()) {
        Ok(outputs) => outputs,
        Err(error) => return Some(Err(error)),
    };
    // One of hundreds, it may be.
    let backlog = if job.spec.children { Backlog::small() } else { Backlog::default() };
    let mut client = subject.client.clone().with_backlog(backlog);
    if subject.runtime().is_some() {
        client = client.with_timeouts(Timeouts::all(PATIENCE));
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
            // How long it takes to look at it is for the process to choose.
            Some(Err(in_a_thread(move || Error::of_runtime(error)).await.unwrap_or_else(Into::into)))
        }
    }
}

/// The second half: lets the runtime go on.
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
                running: Running { session, since, other_sessions },
            }));
        }
        Some(Err(error)) if !subject.has_ended() => return Err(error),
        _ => {}
    }
    if !job.stops.is_stopping() {
        // Whoever did that has the exit code.
        job.report(Event::EndedBefore { process: subject.label() });
    }
    Ok(None)
}

/// Ready when a runtime that dialled in has ended without a word.
async fn ended(runtime: Option<&Runtime>) {
    match runtime {
        Some(runtime) => {
            while !runtime.has_ended() {
                sleep(LOOK).await;
            }
        }
        None => future::pending().await,
    }
}

/// Lets a process go on, if it waits.
pub(crate) async fn let_go(job: &Job, subject: &ResolvedTarget) {
    if !job.spec.resume {
        return;
    }
    let (reporter, process) = (job.reporter(), subject.label());
    let warn = move |error| reporter.report(Event::NotResumed { process: process.clone(), error });
    if let Some(runtime) = subject.runtime() {
        shield(job, &subject.client).await;
        match runtime.resume().await {
            // It was killed: whoever did that knows.
            Ok(()) | Err(runtap_diag::Error::HungUp { .. }) => {}
            Err(_) if runtime.has_ended() => {}
            Err(error) => warn(error),
        }
        return;
    }
    // It listens itself and may be busy: the recording does not wait for that.
    let client = subject.client.clone();
    tokio::spawn(async move {
        match client.resume().await {
            Ok(()) => {}
            // .NET Core 3 can't be suspended.
            Err(error) if error.is_unknown_command() => {}
            // Recording it fails for the same reason, and that error is reported.
            Err(runtap_diag::Error::NotPermitted { .. }) => {}
            Err(error) => warn(error),
        }
    });
}

/// Puts the variable back as it was before we launched the command, so that what this process starts does not wait for
/// us. Not while its children are to be recorded.
async fn shield(job: &Job, client: &Client) {
    let Some(restore) = &job.restore else { return };
    if job.spec.children && !job.stops.is_stopping() {
        return;
    }
    let request = Request::SetEnvironmentVariable { name: PORTS.to_owned(), value: restore.value.clone() };
    if let Err(error) = client.request(request).await {
        // .NET 5 does not know the command. Its children dial in, and are let go then.
        job.report(Event::NotRestored { name: PORTS, error });
    }
}
