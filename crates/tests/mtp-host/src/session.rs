//! One session: what is told of tests between its start and its end. Usable from many threads at once.

use std::path::Path;
use std::time::Instant;

use runtap_mtp_proto::{DisplayLevel, Message, SessionEvent, SessionEventType};

use crate::queue::Entry;
use crate::{
    Artifact, CancelReason, Failure, Host, HostError, Outcome, TestNode, TestResult, identity, panics, wire,
};

/// A session that has begun; [`Host::session`] ends it.
#[derive(Debug)]
pub struct Session<'h> {
    host: &'h Host,
    uid: String,
}

/// What the body of a test may return.
pub trait IntoOutcome {
    /// What became of the test.
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

/// An error is a failure, with its message and its type.
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
        // A test may end the process: the server has to know then that a session has no end.
        host.flush()?;
        Ok(session)
    }

    pub(crate) fn end(self) -> Result<(), HostError> {
        self.event(SessionEventType::END)?;
        let flushed = self.host.flush();
        let requests = self.host.requests();
        self.host.log.information(format_args!("the session has ended after {requests} requests"));
        flushed
    }

    fn event(&self, kind: SessionEventType) -> Result<(), HostError> {
        self.host.other(Message::SessionEvent(SessionEvent {
            session_type: Some(kind),
            session_uid: Some(self.uid.clone()),
            execution_id: Some(self.host.identity().execution_id.clone()),
        }))
    }

    /// The connection that it is on.
    pub fn host(&self) -> &'h Host {
        self.host
    }

    /// Whether the server wants a list of tests, and none of them run.
    pub fn is_discovery(&self) -> bool {
        self.host.is_discovery
    }

    /// Whether the server wants this test (`--filter-uid`).
    pub fn wants(&self, uid: &str) -> bool {
        self.host.filter_uids.as_ref().is_none_or(|uids| uids.contains(uid))
    }

    /// Why no more tests are to be begun, if so.
    pub fn cancelled(&self) -> Option<CancelReason> {
        self.host.cancel().reason()
    }

    /// Where the server wants files that the run produces.
    pub fn results_directory(&self) -> Option<&Path> {
        self.host.results_directory.as_deref()
    }

    /// The whole life of a test: it is listed if the server wants a list, passed over if the server does not want it or the
    /// run is cancelled, else it runs in this thread, and its result is sent. A panic fails it, with message and place.
    ///
    /// # Errors
    /// The connection is lost: nobody wants to know any more.
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

    /// A test that is not run: listed, or reported as skipped for this reason.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn skip(&self, test: impl Into<TestNode>, reason: impl Into<String>) -> Result<(), HostError> {
        let test = test.into();
        match (self.wants(&test.uid), self.is_discovery()) {
            (false, _) => Ok(()),
            (true, true) => self.discovered(&test),
            (true, false) => self.host.report(test, TestResult::skipped(reason), &self.uid),
        }
    }

    /// A test that the application has.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn discovered(&self, test: &TestNode) -> Result<(), HostError> {
        self.host.count_discovered();
        self.host.post().push(Entry::Discovered(test.discovered(self.host.is_ide())))
    }

    /// A test has begun: for servers that want to know, or show what runs. Those that want to know have heard of it, and of
    /// all results before, when this returns: if the test takes the process with it, it is known which one did.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn begin(&self, test: &TestNode) -> Result<(), HostError> {
        if self.host.is_ide() {
            self.host.post().push(Entry::Successful(wire::begun(test, &self.uid)))?;
            self.host.flush()
        } else {
            self.host.in_progress(test)
        }
    }

    /// A test has ended.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn report(&self, test: &TestNode, result: impl Into<TestResult>) -> Result<(), HostError> {
        self.host.report(test.clone(), result.into(), &self.uid)
    }

    /// A file of this session.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn artifact(&self, artifact: &Artifact) -> Result<(), HostError> {
        self.host.send_artifact(artifact.on_wire(None, &self.uid))
    }

    /// A file of a test.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn test_artifact(&self, test: &TestNode, artifact: &Artifact) -> Result<(), HostError> {
        self.host.send_artifact(artifact.on_wire(Some(test), &self.uid))
    }

    /// As [`Host::display`].
    ///
    /// # Errors
    /// The connection is lost.
    pub fn display(&self, level: DisplayLevel, text: impl Into<String>) -> Result<bool, HostError> {
        self.host.display(level, text)
    }
}
