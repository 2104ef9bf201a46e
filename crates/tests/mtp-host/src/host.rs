//! The connection of an application's process: handshake, sessions, exit code.

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
use crate::link::{CONNECT_TIMEOUT, Link};
use crate::outbox::{Outbox, Sender};
use crate::queue::{Entry, Queue};
use crate::{
    Artifact, Batching, Cancel, CancelReason, CommandOption, Exit, HostError, Identity, Launch, LaunchError,
    Mode, Outcome, Policy, Role, Session, TestNode, TestResult,
};

/// The maximum length of a text of the server in the log, in characters.
const MAX_LOGGED_CHARS: usize = 100;

/// A connection after its handshake. Dropping the value closes the connection; data that was not [flushed](Self::flush)
/// is lost. A [session](Self::session) flushes automatically.
#[derive(Debug)]
pub struct Host {
    // Dropped, and closed, before the connection.
    control: Option<Control>,
    outbox: Outbox,
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
    /// Connects to the server that started this process, and negotiates a version.
    ///
    /// # Errors
    /// Returns an error if no server listens within [`CONNECT_TIMEOUT`], if the server belongs to another user, or if
    /// the server and this crate have no version in common.
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
        let mut link = Link::connect(&launch.server, CONNECT_TIMEOUT).inspect_err(log_problem)?;
        let mut connection = Connection::data();
        let handshake = identity.handshake(role, &mode);
        let greeted = link.greet(&mut connection, handshake, CONNECT_TIMEOUT);
        let (version, greeting) = greeted.inspect_err(log_problem)?;
        let of = |key| greeting.get(key).unwrap_or("?").chars().take(MAX_LOGGED_CHARS).collect::<String>();
        log.information(format_args!(
            "negotiated protocol version {version} with process {} ({}, {}); offered {}",
            of(HandshakeKey::PID),
            of(HandshakeKey::FRAMEWORK),
            of(HandshakeKey::OS),
            Versions::all(),
        ));
        let cancel = Cancel::default();
        if log.is_open() {
            let log = log.clone();
            cancel.listen(move |reason| log.information(format_args!("canceled: {reason:?}")));
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
            log.information(format_args!("listening on the server's control pipe"));
        }
        Ok(Self {
            control,
            outbox: Outbox::new(sender, queue, cancel.clone())?,
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

    /// Replies to `--help` with the platform's options and `own`.
    ///
    /// Hosts of MTP 2.3 and later send a handshake first, earlier hosts do not. SDK 10.0.401 accepts both. If a server
    /// rejects the handshake, the options are sent on a second connection without one.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or does not reply, or if `own` has an option with the name of a
    /// platform option.
    pub fn help(launch: &Launch, identity: &Identity, own: &[CommandOption]) -> Result<(), HelpError> {
        let options = crate::launch::all_options(own)?;
        let message = Message::CommandLineOptions(CommandLineOptions {
            module_path: Some(identity.module.to_string_lossy().into_owned()),
            options: Some(options),
        });
        let role = Role::test_host()?;
        let handshake = identity.handshake(&role, &ExecutionMode::Help);
        let mut link = Link::connect(&launch.server, CONNECT_TIMEOUT)?;
        let mut connection = Connection::data();
        match link.greet(&mut connection, handshake, CONNECT_TIMEOUT) {
            Ok(_) => {}
            // A server that did not reply would not reply the second time.
            Err(error @ (HostError::Request(_) | HostError::Silent { .. })) => return Err(error.into()),
            Err(_) => {
                link = Link::connect(&launch.server, CONNECT_TIMEOUT)?;
                connection = Connection::data();
            }
        }
        let frame = connection.request(&message).map_err(HostError::from)?;
        link.exchange_within(&frame, &mut connection, CONNECT_TIMEOUT)?;
        Ok(())
    }

    /// Returns the version that the server chose.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns whether the server requests started tests and the locations of discovered tests. `runtap test` does,
    /// `dotnet test` does not.
    pub fn is_ide(&self) -> bool {
        self.is_ide
    }

    /// Returns the handshake of the server.
    pub fn server(&self) -> &Handshake {
        &self.greeting
    }

    /// Returns the identity of this process.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the cancellation request of the run, which may come from any source.
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Returns the number of requests that the server has answered.
    pub fn requests(&self) -> u64 {
        self.outbox.requests()
    }

    /// Runs `body` in a session. The end of the session is sent even if `body` fails, so that starts and ends are
    /// always paired. All data has been sent and acknowledged when this returns.
    ///
    /// # Errors
    /// Returns the error of `body`, or an error if the connection is lost.
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

    /// Reports a file that belongs to no session, such as a report that is written after the last session.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn artifact(&self, artifact: &Artifact) -> Result<(), HostError> {
        self.send_artifact(artifact.to_message(None, ""))
    }

    /// Sends a text for users. Returns `Ok(false)` without sending if the server does not support such messages (before
    /// version 1.3.0).
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn display(&self, level: DisplayLevel, text: impl Into<String>) -> Result<bool, HostError> {
        let message = Display {
            execution_id: Some(self.identity.execution_id.clone()),
            instance_id: Some(self.identity.instance_id.clone()),
            level: Some(level),
            text: Some(text.into()),
        };
        self.since(Version::V1_3_0, Message::Display(message))
    }

    /// Sends a line for the log of Azure DevOps; useful only on its agents. Returns `Ok(false)` without sending if the
    /// server does not support such messages (before version 1.2.0).
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn azure_devops_log(&self, line: impl Into<String>) -> Result<bool, HostError> {
        let message = AzureDevOpsLog {
            execution_id: Some(self.identity.execution_id.clone()),
            instance_id: Some(self.identity.instance_id.clone()),
            text: Some(line.into()),
        };
        self.since(Version::V1_2_0, Message::AzureDevOpsLog(message))
    }

    /// Waits until everything has been sent and acknowledged.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn flush(&self) -> Result<(), HostError> {
        self.outbox.flush()
    }

    /// Sets the exit code of the application, such as that of a program that it ran. `--ignore-exit-code` still
    /// applies.
    pub fn set_exit(&self, exit: Exit) {
        self.tally().own = Some(exit);
    }

    /// Returns the exit code for the results so far.
    pub fn exit(&self) -> Exit {
        let mut tally = self.tally().clone();
        match self.cancel.reason() {
            None => {}
            Some(CancelReason::TooManyFailures) => tally.too_many_failures = true,
            Some(_) => tally.is_canceled = true,
        }
        tally.exit(&self.policy, self.is_discovery)
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    pub(crate) fn count_discovered(&self) {
        self.tally().discovered += 1;
    }

    pub(crate) fn report(&self, test: TestNode, result: TestResult, session: &str) -> Result<(), HostError> {
        let is_superseded = result.attempt.is_some_and(|(_, is_superseded)| is_superseded);
        let mut tally = self.tally();
        match &result.outcome {
            // A later attempt replaces the result.
            _ if is_superseded => {}
            Outcome::Passed => tally.passed += 1,
            Outcome::Skipped(_) => tally.skipped += 1,
            _ => tally.failed += 1,
        }
        let is_over = self.policy.maximum_failed.is_some_and(|most| tally.failed >= most);
        drop(tally);
        self.outbox.push(result.into_entry(test, session))?;
        if is_over {
            self.cancel.request(CancelReason::TooManyFailures);
        }
        Ok(())
    }

    /// Reports a running test to a server that shows running tests but did not request state 7: SDKs of .NET 11 and
    /// later. The released SDK 10.0.401 supports only version 1.0.0, and ignores the message.
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
        self.outbox.push(Entry::Other(message))
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

    /// Returns the file of the application.
    pub fn module(&self) -> &Path {
        &self.identity.module
    }

    /// Returns whether the host is listening on a control pipe of the server.
    pub fn has_control(&self) -> bool {
        self.control.is_some()
    }
}

/// An error that occurs when replying to `--help`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HelpError {
    /// The server cannot be reached or does not reply.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An option of the application has the name of a platform option.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}
