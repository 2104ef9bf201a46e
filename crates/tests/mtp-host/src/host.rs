//! A process of an application on its connection: handshake, sessions, exit code.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use runtap_mtp_proto::host::Connection;
use runtap_mtp_proto::{
    AzureDevOpsLog, CommandLineOptions, Display, DisplayLevel, ExecutionMode, FileArtifact, FileArtifacts,
    Handshake, HandshakeKey, Message, TestInProgress, TestsInProgress, Version, Versions,
};

use crate::control::Control;
use crate::diagnostic::{self, CreateLog, Log};
use crate::exit::Tally;
use crate::link::{Link, PATIENCE};
use crate::post::{Post, Sender};
use crate::queue::{Entry, Queue};
use crate::{
    Artifact, Batching, Cancel, CancelReason, CommandOption, Exit, HostError, Identity, Launch, LaunchError,
    Mode, Outcome, Policy, Role, Session, TestNode, TestResult,
};

/// Characters of a text of the server in the log.
const SHOWN: usize = 100;

/// A connection with its handshake behind it. Dropping it closes the connection; what was not
/// [flushed](Self::flush) then is lost, but a [session](Self::session) flushes.
#[derive(Debug)]
pub struct Host {
    // Closed before the connection is.
    control: Option<Control>,
    post: Post,
    cancel: Cancel,
    tally: Mutex<Tally>,
    policy: Policy,
    identity: Identity,
    version: Version,
    is_ide: bool,
    greeting: Handshake,
    pub(crate) is_discovery: bool,
    pub(crate) filter_uids: Option<std::collections::HashSet<String>>,
    pub(crate) results_directory: Option<PathBuf>,
    pub(crate) log: Log,
}

impl Host {
    /// Connects to the server that has started this process, and negotiates a version.
    ///
    /// # Errors
    /// There is no server within [`PATIENCE`], it is another user's, or it knows no version that we know.
    pub fn connect(
        launch: &Launch,
        identity: Identity,
        role: &Role,
        batching: Batching,
    ) -> Result<Self, HostError> {
        Self::connect_with(launch, identity, role, batching, diagnostic::create)
    }

    pub(crate) fn connect_with(
        launch: &Launch,
        identity: Identity,
        role: &Role,
        batching: Batching,
        create_log: CreateLog,
    ) -> Result<Self, HostError> {
        let deadline = launch.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let is_discovery = launch.mode == Mode::Discover;
        let mode = if is_discovery { ExecutionMode::Discover } else { ExecutionMode::Run };
        let log = Log::open(launch, &identity.module, create_log)?;
        let log_problem = |error: &HostError| log.problem(error);
        let mut link = Link::connect(&launch.server, PATIENCE).inspect_err(log_problem)?;
        let mut connection = Connection::data();
        let handshake = identity.handshake(role, &mode);
        let greeted = link.greet(&mut connection, handshake, PATIENCE);
        let (version, greeting) = greeted.inspect_err(log_problem)?;
        let of = |key| greeting.get(key).unwrap_or("?").chars().take(SHOWN).collect::<String>();
        log.information(format_args!(
            "negotiated version {version} of the protocol with process {} ({}, {}); offered were {}",
            of(HandshakeKey::PID),
            of(HandshakeKey::FRAMEWORK),
            of(HandshakeKey::OS),
            Versions::all(),
        ));
        let cancel = Cancel::default();
        if log.is_open() {
            let log = log.clone();
            cancel.listen(move |reason| log.information(format_args!("cancelled: {reason:?}")));
        }
        let pipe = greeting.server_control_pipe().filter(|_| link.has_control());
        let pipe = pipe.filter(|_| version >= Version::V1_4_0).map(PathBuf::from);
        let control = pipe.map(|pipe| Control::start(pipe, cancel.clone())).transpose()?;
        let queue = Queue::new(batching, identity.execution_id.clone(), identity.instance_id.clone());
        let sender = Sender { link, connection, deadline, log: log.clone() };
        let mut policy = launch.policy.clone();
        let ignored = std::env::var(crate::identity::EXIT_CODE_IGNORE).unwrap_or_default();
        policy.ignored.extend(ignored.split(';').filter_map(|code| code.trim().parse::<u8>().ok()));
        if control.is_some() {
            log.information(format_args!("listens on the server's control pipe"));
        }
        Ok(Self {
            control,
            post: Post::new(sender, queue, cancel.clone())?,
            cancel,
            tally: Mutex::default(),
            policy,
            identity,
            version,
            is_ide: greeting.is_ide(),
            greeting,
            is_discovery,
            filter_uids: launch.filter_uids.clone().map(|uids| uids.into_iter().collect()),
            results_directory: launch.results_directory.clone(),
            log,
        })
    }

    /// Answers `--help`: the platform's options and `own`.
    ///
    /// Hosts of MTP 2.3 and later send a handshake before it, earlier ones none. SDK 10.0.401 takes both; a server that
    /// refuses the handshake is told on a second connection without one.
    ///
    /// # Errors
    /// The server can't be reached or does not answer, or `own` has an option of the platform's name.
    pub fn help(launch: &Launch, identity: &Identity, own: &[CommandOption]) -> Result<(), HelpError> {
        let options = crate::launch::all_options(own)?;
        let message = Message::CommandLineOptions(CommandLineOptions {
            module_path: Some(identity.module.to_string_lossy().into_owned()),
            options: Some(options),
        });
        let role = Role::test_host()?;
        let handshake = identity.handshake(&role, &ExecutionMode::Help);
        let mut link = Link::connect(&launch.server, PATIENCE)?;
        let mut connection = Connection::data();
        match link.greet(&mut connection, handshake, PATIENCE) {
            Ok(_) => {}
            // Whoever says nothing would not do so the second time.
            Err(error @ (HostError::Request(_) | HostError::Silent { .. })) => return Err(error.into()),
            Err(_) => {
                link = Link::connect(&launch.server, PATIENCE)?;
                connection = Connection::data();
            }
        }
        let frame = connection.request(&message).map_err(HostError::from)?;
        link.exchange_within(&frame, &mut connection, PATIENCE)?;
        Ok(())
    }

    /// The version that the server has chosen.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether the server wants to know which tests have begun, and where discovered tests are. `runtap test` does,
    /// `dotnet test` does not.
    pub fn is_ide(&self) -> bool {
        self.is_ide
    }

    /// What the server has said of itself.
    pub fn server(&self) -> &Handshake {
        &self.greeting
    }

    /// Who we are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The request to end before the last test, by whomever.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// How many requests the server has answered.
    pub fn requests(&self) -> u64 {
        self.post.requests()
    }

    /// Runs `body` between the two events of a session. The second one is sent even if `body` fails, so that they always
    /// come in pairs, and everything has arrived when this returns.
    ///
    /// # Errors
    /// Those of `body`, else a connection that is lost.
    pub fn session<T, E: From<HostError>>(
        &self,
        body: impl FnOnce(&Session<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let session = Session::start(self)?;
        let result = body(&session);
        let ended = session.end();
        let value = result?;
        ended?;
        Ok(value)
    }

    /// A file that belongs to no session, such as a report that is written after the last one.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn artifact(&self, artifact: &Artifact) -> Result<(), HostError> {
        self.send_artifact(artifact.on_wire(None, ""))
    }

    /// Something for people to read. `Ok(false)`: the server does not know such messages (before version 1.3.0), and it was
    /// not sent.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn display(&self, level: DisplayLevel, text: impl Into<String>) -> Result<bool, HostError> {
        let message = Display {
            execution_id: Some(self.identity.execution_id.clone()),
            instance_id: Some(self.identity.instance_id.clone()),
            level: Some(level),
            text: Some(text.into()),
        };
        self.since(Version::V1_3_0, Message::Display(message))
    }

    /// A line for the log of Azure DevOps; only agents of it want any. `Ok(false)`: the server does not know such messages
    /// (before version 1.2.0), and it was not sent.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn azure_devops_log(&self, line: impl Into<String>) -> Result<bool, HostError> {
        let message = AzureDevOpsLog {
            execution_id: Some(self.identity.execution_id.clone()),
            instance_id: Some(self.identity.instance_id.clone()),
            text: Some(line.into()),
        };
        self.since(Version::V1_2_0, Message::AzureDevOpsLog(message))
    }

    /// Waits until everything is sent and answered.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn flush(&self) -> Result<(), HostError> {
        self.post.flush()
    }

    /// The exit code that the application decides on itself, such as that of a program it has run; `--ignore-exit-code`
    /// still applies.
    pub fn set_exit(&self, exit: Exit) {
        self.tally().own = Some(exit);
    }

    /// The exit code that the results so far have earned.
    pub fn exit(&self) -> Exit {
        let mut tally = self.tally().clone();
        match self.cancel.reason() {
            None => {}
            Some(CancelReason::TooManyFailures) => tally.too_many_failures = true,
            Some(_) => tally.cut = true,
        }
        tally.exit(&self.policy, self.is_discovery)
    }

    pub(crate) fn post(&self) -> &Post {
        &self.post
    }

    pub(crate) fn count_discovered(&self) {
        self.tally().discovered += 1;
    }

    pub(crate) fn report(&self, test: TestNode, result: TestResult, session: &str) -> Result<(), HostError> {
        let is_superseded = result.attempt.is_some_and(|(_, is_superseded)| is_superseded);
        let mut tally = self.tally();
        match &result.outcome {
            // A later attempt counts.
            _ if is_superseded => {}
            Outcome::Passed => tally.passed += 1,
            Outcome::Skipped(_) => tally.skipped += 1,
            _ => tally.failed += 1,
        }
        let is_over = self.policy.maximum_failed.is_some_and(|most| tally.failed >= most);
        drop(tally);
        self.post.push(result.on_wire(test, session))?;
        if is_over {
            self.cancel.request(CancelReason::TooManyFailures);
        }
        Ok(())
    }

    /// That a test runs, to a server that shows such tests but has not asked for state 7: SDKs of .NET 11 and later. The
    /// released SDK 10.0.401 knows version 1.0.0 only, and ignores the message.
    pub(crate) fn in_progress(&self, test: &TestNode) -> Result<(), HostError> {
        if self.version < Version::V1_1_0 {
            return Ok(());
        }
        self.other(Message::TestsInProgress(TestsInProgress {
            execution_id: Some(self.identity.execution_id.clone()),
            instance_id: Some(self.identity.instance_id.clone()),
            tests: Some(vec![TestInProgress {
                uid: Some(test.uid.clone()),
                display_name: Some(test.display_name.clone()),
            }]),
        }))
    }

    pub(crate) fn send_artifact(&self, artifact: FileArtifact) -> Result<(), HostError> {
        self.other(Message::FileArtifacts(FileArtifacts {
            execution_id: Some(self.identity.execution_id.clone()),
            instance_id: Some(self.identity.instance_id.clone()),
            artifacts: Some(vec![artifact]),
        }))
    }

    pub(crate) fn other(&self, message: Message) -> Result<(), HostError> {
        self.post.push(Entry::Other(message))
    }

    fn since(&self, version: Version, message: Message) -> Result<bool, HostError> {
        if self.version < version {
            return Ok(false);
        }
        self.other(message).map(|()| true)
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of the application.
    pub fn module(&self) -> &Path {
        &self.identity.module
    }

    /// Whether the server has a control pipe that we listen to.
    pub fn has_control(&self) -> bool {
        self.control.is_some()
    }
}

/// Why `--help` was not answered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HelpError {
    /// The server was not reached, or has not answered.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An option of the application has the name of one of the platform's.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}
