//! Keeps a port as long as anybody may dial in there, and the command that was launched for it.
//!
//! Every runtime that dials in goes on, whether it is recorded or not, also after the recording is over and while we
//! wait for the command. Who is recorded is handed over with its session; the rest is not this file's business.

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

/// How often it looks whether the tree lives, once its first process has ended.
const LOOK: Duration = Duration::from_millis(200);
/// How long a process may not be seen while it turns into another one.
const TURN: Duration = Duration::from_millis(20);
/// How long those that are being let go may take when all else is over.
const GRACE: Duration = Duration::from_secs(2);
/// How long it waits for the command without a word.
const TELL: Duration = Duration::from_secs(1);
/// Between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);

/// A port and what belongs to it.
#[derive(Debug)]
pub(crate) struct PortHost {
    job: Arc<Job>,
    port: Port,
    command: Option<Launched>,
    /// Whether the command runs Java, until a runtime has dialled in.
    java: JavaWatch,
    /// Whether it is ended with the recording.
    kill: bool,
    /// How the command ended.
    status: Option<io::Result<ExitStatus>>,
    /// Where processes to record go; gone when there are to be no more.
    arrivals: Option<UnboundedSender<Arrival>>,
    /// Runtimes that are being started, or let go.
    attending: JoinSet<()>,
    /// The same for those with whom the command has nothing to do. Nobody waits for them: they may never answer.
    strangers: JoinSet<()>,
    dialled_in: usize,
    /// Users as whom the command runs programs.
    users: BTreeSet<u32>,
    told_untraced: bool,
    /// When the command is to be killed.
    kill_at: Option<Instant>,
    /// When it is to be told that we wait for it.
    tell_at: Option<Instant>,
}

/// A look at the processes that is on its way.
struct Look {
    /// How many had dialled in when it began.
    dialled_in: usize,
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
            dialled_in: 0,
            users: BTreeSet::new(),
            told_untraced: false,
            kill_at: None,
            tell_at: None,
        }
    }

    /// Runs until everything is finished and the command has ended; how it did.
    pub(crate) async fn run(mut self) -> Option<io::Result<ExitStatus>> {
        let job = Arc::clone(&self.job);
        let patience = Instant::now().checked_add(job.spec.dial_in);
        let mut look = interval(LOOK);
        let visitors = self.port.visitors();
        let (mut recorded, mut finished, mut looking) = (false, false, None);
        while !finished || self.is_command_running() {
            let nobody_came = self.command.is_some() && self.dialled_in == 0 && !self.told_untraced;
            tokio::select! {
                runtime = self.port.accept() => self.attend(runtime),
                visitor = visitors.next() => self.tell_of(visitor),
                Some(_) = self.attending.join_next() => {}
                Some(_) = self.strangers.join_next() => {}
                status = ended(&mut self.command), if self.status.is_none() => self.status = Some(status),
                () = until(patience), if nobody_came && self.arrivals.is_some() => self.untraced(),
                () = job.stops.stopping(), if self.arrivals.is_some() => self.arrivals = None,
                _ = look.tick(), if self.arrivals.is_some() && looking.is_none() => {
                    if self.is_idle() { looking = Some(self.look()) }
                }
                is_over = over(&mut looking), if looking.is_some() => {
                    // Whoever has dialled in meanwhile may have started others.
                    let is_news = looking.take().is_none_or(|look| look.dialled_in != self.dialled_in);
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
        // One that is stopped does not answer; the guard goes on trying.
        let _ = timeout(GRACE, async { while self.attending.join_next().await.is_some() {} }).await;
        if self.command.is_some() && self.dialled_in == 0 && !self.told_untraced && !job.stops.is_stopping() {
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

    /// Starts the recording of a runtime, if it is one to record, and in any case lets it go on.
    fn attend(&mut self, runtime: Runtime) {
        if self.is_stranger(&runtime) {
            // It is told to go on, and nothing else. What comes of it is its own affair.
            self.strangers.spawn(async move {
                let _ = runtime.resume().await;
            });
            return;
        }
        self.dialled_in += 1;
        self.java.stop();
        let claims = (runtime.claims_another_id() == Some(true)).then(|| runtime.process_id());
        // Without children the first one is the one.
        let arrivals = if self.job.spec.children { self.arrivals.clone() } else { self.arrivals.take() };
        let (job, subject) = (Arc::clone(&self.job), ResolvedTarget::connected(runtime));
        job.report(Event::DialledIn { process: subject.label(), claims });
        let Some(arrivals) = arrivals else {
            self.attending.spawn(async move { start::let_go(&job, &subject).await });
            return;
        };
        let active = job.begin_one();
        self.attending.spawn(async move {
            let label = subject.label();
            let asked = start::ask(&job, &subject).await;
            if asked.is_none() && job.stops.is_stopping() {
                // What there is to finish does not wait for one that does not answer; the port does.
                drop((arrivals, active));
                start::let_go(&job, &subject).await;
                return;
            }
            let started = start::go_on(&job, subject, asked).await;
            // Nobody wants it any more: then it is not recorded.
            let _ = arrivals.send(Arrival { label, started, active });
        });
    }

    /// Whether it belongs to a user with whom the command has nothing to do: everybody may dial in, but not everybody is
    /// recorded.
    fn is_stranger(&mut self, runtime: &Runtime) -> bool {
        let uid = runtime.peer().uid;
        if runtime.is_kin() {
            // What it has started may have lost its parent, and is of its user all the same.
            self.users.insert(uid);
        }
        !self.users.contains(&uid)
    }

    /// Once for each user: they may come as often as they like.
    fn tell_of(&self, visitor: Visitor) {
        if !self.users.contains(&visitor.peer.uid) {
            self.job.report(Event::Stranger(visitor));
        }
    }

    fn untraced(&mut self) {
        let pid = self.command.as_ref().and_then(Launched::pid).unwrap_or(0);
        self.java.stop();
        let (after, jvm) = (self.job.spec.dial_in, self.java.found());
        self.job.report(Event::NobodyCame { pid, after, jvm });
        self.told_untraced = true;
        if !self.job.spec.children {
            self.arrivals = None;
        }
    }

    /// Whether there is nobody to wait for, as far as we know without a look at the processes.
    fn is_idle(&self) -> bool {
        let ended = if self.command.is_some() { self.status.is_some() } else { self.dialled_in > 0 };
        ended && self.job.active() == 0 && self.attending.is_empty()
    }

    /// Begins to look whether nobody is left who could dial in and be recorded.
    fn look(&self) -> Look {
        let holders = guard::holders(self.port.path(), &self.users);
        let has_command = self.command.is_some();
        let is_over = async move { !has_command || guard::is_free(&holders, TURN).await };
        Look { dialled_in: self.dialled_in, is_over: Box::pin(is_over) }
    }

    /// Every stream has ended; the command may go on.
    fn recording_ended(&mut self) {
        if !self.is_command_running() {
            return;
        }
        if self.kill {
            if let Some(command) = &mut self.command {
                command.end();
            }
            self.kill_at = Some(Instant::now() + PATIENCE);
        } else if self.dialled_in > 0 && self.job.stops.exit_code().is_none() {
            // Usually it ends by itself at this moment.
            self.tell_at = Some(Instant::now() + TELL);
        }
    }

    /// It did not end politely.
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

/// Whether the tree is over, when that is known.
async fn over(look: &mut Option<Look>) -> bool {
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
