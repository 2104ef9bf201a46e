//! A session: the reports of tests between its start and its end. Can be used from several threads.

use std::path::Path;
use std::time::Instant;

use runtap_mtp_proto::{DisplayLevel, Message, SessionEvent, SessionEventType};

use crate::queue::Entry;
use crate::{
    Artifact, CancelReason, Failure, Host, HostError, Outcome, TestNode, TestResult, identity, panics, wire,
};

/// A running session; [`Host::session`] ends it.
#[derive(Debug)]
pub struct Session<'h> {
    host: &'h Host,
    uid: String,
}

/// A type that the body of a test may return.
pub trait IntoOutcome {
    /// Converts the value to the outcome of the test.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Passed
    }
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

/// An error becomes a failure with its message and type.
impl<T: IntoOutcome, E: std::fmt::Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(value) => value.into_outcome(),
            Err(error) => {
                Outcome::Failed(Failure::new(error.to_string()).type_name(std::any::type_name::<E>()))
            }
        }
    }
}

impl<'h> Session<'h> {
    pub(crate) fn start(host: &'h Host) -> Result<Self, HostError> {
        let session = Self { host, uid: identity::new_id() };
        session.event(SessionEventType::START)?;
        // A test may terminate the process: the server must then know of the open session.
        host.flush()?;
        Ok(session)
    }

    pub(crate) fn end(self) -> Result<(), HostError> {
        self.event(SessionEventType::END)?;
        let flushed = self.host.flush();
        let requests = self.host.requests();
        self.host.log.information(format_args!("the session ended after {requests} requests"));
        flushed
    }

    fn event(&self, kind: SessionEventType) -> Result<(), HostError> {
        self.host.other(Message::SessionEvent(SessionEvent {
            session_type: Some(kind),
            session_uid: Some(self.uid.clone()),
            execution_id: Some(self.host.identity().execution_id.clone()),
        }))
    }

    /// Returns the connection of the session.
    pub fn host(&self) -> &'h Host {
        self.host
    }

    /// Returns whether the server requests a list of tests instead of a run.
    pub fn is_discovery(&self) -> bool {
        self.host.is_discovery
    }

    /// Returns whether the server requests this test (`--filter-uid`).
    pub fn wants(&self, uid: &str) -> bool {
        self.host.filter_uids.as_ref().is_none_or(|uids| uids.contains(uid))
    }

    /// Returns the reason why no more tests should be started, or `None` if the run was not canceled.
    pub fn cancelled(&self) -> Option<CancelReason> {
        self.host.cancel().reason()
    }

    /// Returns the directory for files that the run produces, if the server specified one.
    pub fn results_directory(&self) -> Option<&Path> {
        self.host.results_directory.as_deref()
    }

    /// Handles a test completely: lists it if the server requests a list, ignores it if the server does not request it
    /// or the run was canceled, and otherwise runs it in this thread and sends its result. A panic becomes a failure
    /// with message and location.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn test<R: IntoOutcome>(
        &self,
        test: impl Into<TestNode>,
        body: impl FnOnce() -> R,
    ) -> Result<(), HostError> {
        let test = test.into();
        if !self.wants(&test.uid) {
            return Ok(());
        }
        if self.is_discovery() {
            return self.discovered(&test);
        }
        if self.cancelled().is_some() {
            return Ok(());
        }
        self.begin(&test)?;
        let started = Instant::now();
        let returned = panics::catch(body);
        let duration = started.elapsed();
        let outcome = match returned {
            Ok(value) => value.into_outcome(),
            Err(panicked) => Outcome::Failed(panicked.failure(test.name())),
        };
        self.host.report(test, TestResult::new(outcome).duration(duration), &self.uid)
    }

    /// Handles a test that is not run: lists it, or reports it as skipped for this reason.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn skip(&self, test: impl Into<TestNode>, reason: impl Into<String>) -> Result<(), HostError> {
        let test = test.into();
        match (self.wants(&test.uid), self.is_discovery()) {
            (false, _) => Ok(()),
            (true, true) => self.discovered(&test),
            (true, false) => self.host.report(test, TestResult::skipped(reason), &self.uid),
        }
    }

    /// Reports a discovered test.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn discovered(&self, test: &TestNode) -> Result<(), HostError> {
        self.host.count_discovered();
        self.host.outbox().push(Entry::Discovered(test.discovered(self.host.is_ide())))
    }

    /// Reports a started test. If the server requests started tests, this waits until the server has received it and
    /// all earlier results, so that the server knows which test was running if the process crashes.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn begin(&self, test: &TestNode) -> Result<(), HostError> {
        if self.host.is_ide() {
            self.host.outbox().push(Entry::Successful(wire::started(test, &self.uid)))?;
            self.host.flush()
        } else {
            self.host.in_progress(test)
        }
    }

    /// Reports the result of a test.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn report(&self, test: &TestNode, result: impl Into<TestResult>) -> Result<(), HostError> {
        self.host.report(test.clone(), result.into(), &self.uid)
    }

    /// Reports a file of this session.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn artifact(&self, artifact: &Artifact) -> Result<(), HostError> {
        self.host.send_artifact(artifact.to_message(None, &self.uid))
    }

    /// Reports a file of a test.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn test_artifact(&self, test: &TestNode, artifact: &Artifact) -> Result<(), HostError> {
        self.host.send_artifact(artifact.to_message(Some(test), &self.uid))
    }

    /// Sends a text for users; see [`Host::display`].
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub fn display(&self, level: DisplayLevel, text: impl Into<String>) -> Result<bool, HostError> {
        self.host.display(level, text)
    }
}
