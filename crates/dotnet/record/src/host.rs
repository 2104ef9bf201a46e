//! Keeps a port while runtimes may connect to it, and the command that was launched for it.
//!
//! Every runtime that connects is resumed, whether it is recorded or not, even after the recording while waiting for the command to
//! exit. Sessions of runtimes to be recorded are sent to the conductor.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use std::{future, io};

use runtap_diag::ports::{Port, Runtime, Visitor};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::conductor::Arrival;
use crate::event::Event;
use crate::guard;
use crate::java::JavaWatch;
use crate::job::{Job, Phase};
use crate::launch::Launched;
use crate::start;
use runtap_target::ResolvedTarget;

/// Poll interval for remaining descendants, once the command itself has exited.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The time for which a process may be invisible during `exec`.
const EXEC_PAUSE: Duration = Duration::from_millis(20);
/// Time limit for pending resumptions after everything else has finished.
const GRACE: Duration = Duration::from_secs(2);
/// The time after which waiting for the command is reported.
const REPORT_DELAY: Duration = Duration::from_secs(1);
/// The time between SIGTERM and SIGKILL.
const KILL_DELAY: Duration = Duration::from_secs(5);

/// A port, and what belongs to it.
#[derive(Debug)]
pub(crate) struct PortHost {
    job: Arc<Job>,
    port: Port,
    command: Option<Launched>,
    /// Detects whether the command runs Java, until a runtime has connected.
    java: JavaWatch,
    /// Whether the command is terminated when the recording ends.
    kill: bool,
    /// The exit status of the command.
    status: Option<io::Result<ExitStatus>>,
    /// The channel for processes to record. `None` when no more are accepted.
    arrivals: Option<UnboundedSender<Arrival>>,
    /// Runtimes that are being started or resumed.
    attending: JoinSet<()>,
    /// Runtimes of unrelated users that are being resumed. They may never answer, so they are not awaited.
    strangers: JoinSet<()>,
    connected: usize,
    /// The users as whom the command runs programs.
    users: BTreeSet<u32>,
    told_untraced: bool,
    /// When the command will be killed.
    kill_at: Option<Instant>,
    /// When waiting for the command will be reported.
    tell_at: Option<Instant>,
}

/// A pending search for processes.
struct ProcessSearch {
    /// The number of runtimes that had connected when the search started.
    connected: usize,
    is_over: Pin<Box<dyn Future<Output = bool>>>,
}

impl PortHost {
    pub(crate) fn new(
        job: &Arc<Job>,
        port: Port,
        command: Option<(Launched, bool)>,
        arrivals: UnboundedSender<Arrival>,
    ) -> Self {
        let (command, kill) = command.map_or((None, false), |(command, kill)| (Some(command), kill));
        let java = JavaWatch::start(command.as_ref().and_then(Launched::pid));
        Self {
            job: Arc::clone(job),
            port,
            java,
            command,
            kill,
            status: None,
            arrivals: Some(arrivals),
            attending: JoinSet::new(),
            strangers: JoinSet::new(),
            connected: 0,
            users: BTreeSet::new(),
            told_untraced: false,
            kill_at: None,
            tell_at: None,
        }
    }

    /// Runs until everything has finished and the command has exited. Returns its exit status.
    pub(crate) async fn run(mut self) -> Option<io::Result<ExitStatus>> {
        let job = Arc::clone(&self.job);
        let patience = Instant::now().checked_add(job.spec.connect_timeout);
        let mut look = interval(POLL_INTERVAL);
        let visitors = self.port.visitors();
        let (mut recorded, mut finished, mut looking) = (false, false, None);
        while !finished || self.is_command_running() {
            let none_connected = self.command.is_some() && self.connected == 0 && !self.told_untraced;
            tokio::select! {
                runtime = self.port.accept() => self.attend(runtime),
                visitor = visitors.next() => self.tell_of(visitor),
                Some(_) = self.attending.join_next() => {}
                Some(_) = self.strangers.join_next() => {}
                status = ended(&mut self.command), if self.status.is_none() => self.status = Some(status),
                () = until(patience), if none_connected && self.arrivals.is_some() => self.untraced(),
                () = job.stops.stopping(), if self.arrivals.is_some() => self.arrivals = None,
                _ = look.tick(), if self.arrivals.is_some() && looking.is_none() => {
                    if self.is_idle() { looking = Some(self.look()) }
                }
                is_over = over(&mut looking), if looking.is_some() => {
                    // A runtime that connected meanwhile may have started other processes.
                    let is_news = looking.take().is_none_or(|look| look.connected != self.connected);
                    if is_over && !is_news && self.is_idle() { self.arrivals = None }
                }
                () = job.reached(Phase::Recorded), if !recorded => {
                    recorded = true;
                    self.recording_ended();
                }
                () = until(self.kill_at), if self.is_command_running() => self.end_command(),
                () = until(self.tell_at), if self.is_command_running() => {
                    self.tell_at = None;
                    job.report(Event::WaitingForCommand);
                }
                () = job.reached(Phase::Finished), if !finished => finished = true,
            }
        }
        // A stopped process does not answer. The guard will try again.
        let _ = timeout(GRACE, async { while self.attending.join_next().await.is_some() {} }).await;
        if self.command.is_some() && self.connected == 0 && !self.told_untraced && !job.stops.is_stopping() {
            job.report(Event::NothingRecorded { jvm: self.java.found() });
        }
        let Self { port, command, status, users, .. } = self;
        match command {
            Some(_) => guard::leave_behind(port, &users, job.spec.guard.as_deref(), &job.reporter()).await,
            None => drop(port),
        }
        status
    }

    fn is_command_running(&self) -> bool {
        self.command.is_some() && self.status.is_none()
    }

    /// Starts the recording of a runtime if it is to be recorded, and resumes it in any case.
    fn attend(&mut self, runtime: Runtime) {
        if self.is_stranger(&runtime) {
            // It is only resumed; the result is ignored.
            self.strangers.spawn(async move {
                let _ = runtime.resume().await;
            });
            return;
        }
        self.connected += 1;
        self.java.stop();
        let claims = (runtime.claims_another_id() == Some(true)).then(|| runtime.process_id());
        // Without children, only the first runtime is recorded.
        let arrivals = if self.job.spec.children { self.arrivals.clone() } else { self.arrivals.take() };
        let (job, subject) = (Arc::clone(&self.job), ResolvedTarget::connected(runtime));
        job.report(Event::RuntimeConnected { process: subject.label(), claims });
        let Some(arrivals) = arrivals else {
            self.attending.spawn(async move { start::let_go(&job, &subject).await });
            return;
        };
        let active = job.begin_one();
        self.attending.spawn(async move {
            let label = subject.label();
            let asked = start::ask(&job, &subject).await;
            if asked.is_none() && job.stops.is_stopping() {
                // The recording does not wait for a process that does not answer, but the port does.
                drop((arrivals, active));
                start::let_go(&job, &subject).await;
                return;
            }
            let started = start::go_on(&job, subject, asked).await;
            // If no more processes are accepted, it is not recorded.
            let _ = arrivals.send(Arrival { label, started, active });
        });
    }

    /// Whether a runtime belongs to a user who is unrelated to the command. Any user may connect, but not every user is recorded.
    fn is_stranger(&mut self, runtime: &Runtime) -> bool {
        let uid = runtime.peer().uid;
        if runtime.is_kin() {
            // Its children may have lost their parent but belong to the same user.
            self.users.insert(uid);
        }
        !self.users.contains(&uid)
    }

    /// Reports a visitor. Visitors are already limited to one per user.
    fn tell_of(&self, visitor: Visitor) {
        if !self.users.contains(&visitor.peer.uid) {
            self.job.report(Event::Stranger(visitor));
        }
    }

    fn untraced(&mut self) {
        let pid = self.command.as_ref().and_then(Launched::pid).unwrap_or(0);
        self.java.stop();
        let (after, jvm) = (self.job.spec.connect_timeout, self.java.found());
        self.job.report(Event::NoRuntimeConnected { pid, after, jvm });
        self.told_untraced = true;
        if !self.job.spec.children {
            self.arrivals = None;
        }
    }

    /// Whether no process is pending, as far as known without a search.
    fn is_idle(&self) -> bool {
        let ended = if self.command.is_some() { self.status.is_some() } else { self.connected > 0 };
        ended && self.job.active() == 0 && self.attending.is_empty()
    }

    /// Starts a search for processes that may still connect and be recorded.
    fn look(&self) -> ProcessSearch {
        let holders = guard::holders(self.port.path(), &self.users);
        let has_command = self.command.is_some();
        let is_over = async move { !has_command || guard::is_free(&holders, EXEC_PAUSE).await };
        ProcessSearch { connected: self.connected, is_over: Box::pin(is_over) }
    }

    /// Called when every stream has ended. The command may continue.
    fn recording_ended(&mut self) {
        if !self.is_command_running() {
            return;
        }
        if self.kill {
            if let Some(command) = &mut self.command {
                command.end();
            }
            self.kill_at = Some(Instant::now() + KILL_DELAY);
        } else if self.connected > 0 && self.job.stops.exit_code().is_none() {
            // Usually the command exits at this moment.
            self.tell_at = Some(Instant::now() + REPORT_DELAY);
        }
    }

    /// Kills the command, which did not exit on request.
    fn end_command(&mut self) {
        if let Some(command) = &mut self.command {
            command.kill();
        }
        self.kill_at = None;
    }
}

async fn ended(command: &mut Option<Launched>) -> io::Result<ExitStatus> {
    match command {
        Some(command) => command.ended().await,
        None => future::pending().await,
    }
}

/// Returns the result of the search, when it is known.
async fn over(look: &mut Option<ProcessSearch>) -> bool {
    match look {
        Some(look) => look.is_over.as_mut().await,
        None => future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => future::pending().await,
    }
}
