//! The start of one recording: a session, and then the runtime goes on. Whatever becomes of the session, nobody is left
//! waiting.

use std::future;
use std::time::{Duration, Instant};

use runtap_diag::ports::Runtime;
use runtap_diag::{Backlog, Client, Error, Request, Session, Timeouts};
use runtap_transport::discover::Process;
use tokio::time::sleep;

use super::job::Job;
use super::outputs::Outputs;
use crate::cmd::failure::explain;
use crate::cmd::neighbours::Neighbours;
use crate::cmd::target::Chosen;

/// The variable by which processes learn of ports.
pub(super) const PORTS: &str = "DOTNET_DiagnosticPorts";

/// How long a runtime that has dialled in is waited for: it waits for us, and where hundreds start at once on a small
/// machine, each gets little of it.
const PATIENCE: Duration = Duration::from_mins(5);
/// How often it is looked whether it lives.
const LOOK: Duration = Duration::from_millis(500);

/// A process that is to be recorded, or at least to go on.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) client: Client,
    /// What discovery knows of it.
    pub(super) process: Option<Process>,
    /// It has dialled in, and may be suspended until it is told to go on over the same port.
    runtime: Option<Runtime>,
}

impl Subject {
    pub(super) fn chosen(chosen: &Chosen) -> Self {
        Self { client: chosen.client.clone(), process: chosen.process.clone(), runtime: None }
    }

    pub(super) fn found(process: Process, client: Client) -> Self {
        Self { client, process: Some(process), runtime: None }
    }

    pub(super) fn dialled_in(runtime: Runtime) -> Self {
        Self { client: runtime.client(), process: None, runtime: Some(runtime) }
    }

    /// Its process id for us.
    pub(super) fn pid(&self) -> Option<u32> {
        let dialled = || self.runtime.as_ref().and_then(|runtime| runtime.peer().pid);
        self.process.as_ref().map(|process| process.pid).or_else(dialled)
    }

    /// The id that names have to tell it apart.
    fn number(&self) -> u64 {
        let own = || self.runtime.as_ref().map(Runtime::process_id);
        self.pid().map(u64::from).or_else(own).unwrap_or(0)
    }

    /// Whether it has dialled in, and is gone.
    fn has_ended(&self) -> bool {
        self.runtime.as_ref().is_some_and(Runtime::has_ended)
    }

    /// How messages call it.
    pub(super) fn label(&self) -> String {
        let own = || self.runtime.as_ref().map(Runtime::process_id);
        match self.pid().map(u64::from).or_else(own) {
            Some(pid) => format!("process {pid}"),
            None => format!("the process behind {}", self.client.endpoint()),
        }
    }
}

/// A session that has begun.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) subject: Subject,
    pub(super) session: Session,
    pub(super) outputs: Outputs,
    pub(super) neighbours: Neighbours,
    pub(super) since: Instant,
}

/// What came of the request for a session; `None` if there was no more use for one.
pub(super) type Asked = Option<anyhow::Result<(Session, Outputs, Neighbours)>>;

/// Starts a session and lets the runtime go on; `None` if the end was asked for before there was a session.
///
/// # Errors
/// There is no session. The runtime goes on all the same.
pub(super) async fn begin(job: &Job, subject: Subject) -> anyhow::Result<Option<Started>> {
    let asked = ask(job, &subject).await;
    go_on(job, subject, asked).await
}

/// The first half of [`begin`]: opens the outputs, and only then asks for a session.
pub(super) async fn ask(job: &Job, subject: &Subject) -> Asked {
    let outputs = match job.outputs_of(subject.number()) {
        Ok(outputs) => outputs,
        Err(error) => return Some(Err(error)),
    };
    // One of hundreds, it may be.
    let backlog = if job.children { Backlog::small() } else { Backlog::default() };
    let mut client = subject.client.clone().with_backlog(backlog);
    if subject.runtime.is_some() {
        client = client.with_timeouts(Timeouts::all(PATIENCE));
    }
    let neighbours = Neighbours::before(subject.pid());
    let session = tokio::select! {
        biased;
        () = job.stops.stopping() => None,
        session = client.start_session(&job.config) => Some(session),
        () = ended(subject.runtime.as_ref()) => None,
    };
    match session {
        Some(Ok(session)) => Some(Ok((session, outputs, neighbours))),
        other => {
            job.take_back(outputs);
            other.and_then(Result::err).map(|error| Err(explain(error)))
        }
    }
}

/// The second half: lets the runtime go on.
pub(super) async fn go_on(job: &Job, subject: Subject, asked: Asked) -> anyhow::Result<Option<Started>> {
    let since = Instant::now();
    let_go(job, &subject).await;
    match asked {
        Some(Ok((session, outputs, neighbours))) => {
            return Ok(Some(Started { subject, session, outputs, neighbours, since }));
        }
        Some(Err(error)) if !subject.has_ended() => return Err(error),
        _ => {}
    }
    if !job.stops.is_stopping() {
        // Whoever did that has the exit code.
        job.output.warning(format_args!("{} ended before it could be recorded", subject.label()));
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
pub(super) async fn let_go(job: &Job, subject: &Subject) {
    if !job.options.resume_runtime {
        return;
    }
    let (output, label) = (job.output, subject.label());
    let warn = move |error: &Error| {
        output.warning(format_args!("{label} could not be told to go on, in case it is suspended: {error}"));
    };
    if let Some(runtime) = &subject.runtime {
        shield(job, &subject.client).await;
        match runtime.resume().await {
            // It was killed: whoever did that knows.
            Ok(()) | Err(Error::HungUp { .. }) => {}
            Err(_) if runtime.has_ended() => {}
            Err(error) => warn(&error),
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
            Err(error) => warn(&error),
        }
    });
}

/// Puts the variable back as it was before we launched the command, so that what this process starts does not wait for
/// us. Not while its children are to be recorded.
async fn shield(job: &Job, client: &Client) {
    let Some(restore) = &job.restore else { return };
    if job.children && !job.stops.is_stopping() {
        return;
    }
    let request = Request::SetEnvironmentVariable { name: PORTS.to_owned(), value: restore.value.clone() };
    if let Err(error) = client.request(request).await {
        // .NET 5 does not know the command. Its children dial in, and are let go then.
        job.output.detail(format_args!("{PORTS} could not be put back: {error}"));
    }
}
