//! Checks of what a host may send: the guidelines of the specification, each with the id of its rule.
//!
//! Covers the mode, the host type, both ids, the sessions, and the fields of each message. The order of requests and
//! replies is checked by the caller.

use std::collections::BTreeMap;

use super::RequestError;
use crate::envelope::field;
use crate::message::{DiscoveredTests, TestResults};
use crate::server::{fields, quote};
use crate::{
    ExecutionMode, Frame, Handshake, HandshakeKey, HostType, Limits, Message, MessageId, Rule,
    SessionEventType, Version, Versions,
};

/// The properties that a handshake must have. Hosts before MTP 2.3 do not send their mode.
const REQUIRED_PROPERTIES: [HandshakeKey; 6] = [
    HandshakeKey::ARCHITECTURE,
    HandshakeKey::FRAMEWORK,
    HandshakeKey::SUPPORTED_VERSIONS,
    HandshakeKey::HOST_TYPE,
    HandshakeKey::EXECUTION_ID,
    HandshakeKey::INSTANCE_ID,
];

/// Checks requests against the handshake and the messages sent before.
#[derive(Debug, Default)]
pub(super) struct RequestChecker {
    execution_id: Option<String>,
    instance_id: Option<String>,
    host_type: Option<HostType>,
    mode: Option<ExecutionMode>,
    offered: Versions,
    /// Whether the server requested events of running tests.
    is_ide: bool,
    /// The sessions that were started, and whether each is still open.
    sessions: BTreeMap<String, bool>,
}

impl RequestChecker {
    /// Checks whether a handshake may be sent.
    pub(super) fn check_handshake(handshake: &Handshake) -> Result<(), RequestError> {
        let broken = |rule, detail: String| Err(broken(rule, MessageId::HANDSHAKE, detail));
        if let Some(key) =
            REQUIRED_PROPERTIES.into_iter().find(|key| handshake.get(*key).is_none_or(str::is_empty))
        {
            return broken(Rule::HandshakeProperty, format!("{key} is missing"));
        }
        if let Some(HostType::Other(other)) = handshake.host_type() {
            return broken(Rule::HostType, quote(&other));
        }
        if handshake.module_path().is_none() {
            return broken(Rule::ModulePath, String::new());
        }
        let attempt = handshake.get(HandshakeKey::ATTEMPT_NUMBER);
        match attempt.filter(|_| handshake.attempt_number().is_none_or(|number| number == 0)) {
            Some(attempt) => broken(Rule::AttemptNumber, quote(attempt)),
            None => Ok(()),
        }
    }

    /// Returns whether the handshake offered this version.
    pub(super) fn has_offered(&self, version: Version) -> bool {
        self.offered.contains(version)
    }

    /// Records that the server accepted the handshake, and whether it requested events of running tests.
    pub(super) fn accepted(&mut self, is_ide: bool) {
        self.is_ide = is_ide;
    }

    /// Checks whether a message with this id may be sent, regardless of its fields.
    pub(super) fn check_kind(&self, id: MessageId) -> Result<(), RequestError> {
        let is_about_tests = matches!(
            id,
            MessageId::DISCOVERED_TESTS
                | MessageId::TEST_RESULTS
                | MessageId::SESSION_EVENT
                | MessageId::TESTS_IN_PROGRESS
        );
        let is_run = is_about_tests || id == MessageId::FILE_ARTIFACTS;
        let outcome = matches!(id, MessageId::TEST_RESULTS | MessageId::FILE_ARTIFACTS);
        let mode = self.mode.as_ref();
        let rule = match id {
            MessageId::COMMAND_LINE_OPTIONS if mode.is_some_and(|mode| *mode != ExecutionMode::Help) => {
                Rule::UnexpectedOptions
            }
            _ if is_run && mode == Some(&ExecutionMode::Help) => Rule::HelpMode,
            _ if outcome && mode == Some(&ExecutionMode::Discover) => Rule::DiscoveryMode,
            _ if is_about_tests && self.host_type.as_ref().is_some_and(|it| *it != HostType::TestHost) => {
                Rule::WrongHost
            }
            MessageId::TEST_RESULTS | MessageId::DISCOVERED_TESTS if !self.has_session() => {
                Rule::OutsideSession
            }
            _ => return Ok(()),
        };
        Err(broken(rule, id, String::new()))
    }

    /// Checks a message and its fields.
    pub(super) fn check(&self, message: &Message) -> Result<(), RequestError> {
        let id = message.id();
        if let Message::Handshake(handshake) = message {
            return Self::check_handshake(handshake);
        }
        self.check_kind(id)?;
        if let Some(ids) = Ids::of(message) {
            self.check_ids(id, ids)?;
        }
        let mut wrong = Vec::new();
        fields::check(message, self.is_ide, &mut wrong);
        if let Some((rule, detail)) = wrong.into_iter().next() {
            return Err(broken(rule, id, detail));
        }
        match message {
            Message::SessionEvent(event) => {
                let uid = event.session_uid.as_deref().unwrap_or_default();
                let known = self.sessions.get(uid).copied();
                let rule = match event.session_type {
                    Some(SessionEventType::START) if known.is_some() => Rule::SessionTwice,
                    Some(SessionEventType::END) if known != Some(true) => Rule::SessionEnd,
                    Some(SessionEventType::START | SessionEventType::END) => return Ok(()),
                    _ => Rule::SessionType,
                };
                Err(broken(rule, id, format!("session {}", quote(uid))))
            }
            Message::TestResults(results) => match self.closed_session(results) {
                Some(uid) => {
                    Err(broken(Rule::OutsideSession, id, format!("session {} is not open", quote(uid))))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Checks the frame of a message that was encoded elsewhere. Of test results and discovered tests, which may be
    /// long, only the ids are read.
    pub(super) fn check_frame(
        &self,
        frame: &Frame<'_>,
        limits: Limits,
    ) -> Result<Option<Message>, RequestError> {
        if let MessageId::TEST_RESULTS | MessageId::DISCOVERED_TESTS = frame.id {
            self.check_kind(frame.id)?;
            self.check_ids(frame.id, Ids::read_leading(frame).unwrap_or_default())?;
            return Ok(None);
        }
        let message = Message::decode(frame, limits)
            .map_err(|error| broken(Rule::Undecodable, frame.id, error.to_string()))?;
        self.check(&message)?;
        Ok(Some(message))
    }

    /// Checks whether the ids of a message match those of the handshake.
    fn check_ids(&self, id: MessageId, ids: Ids<'_>) -> Result<(), RequestError> {
        let wrong = |rule, given: Option<&str>, own: &Option<String>| {
            let given = given.map_or_else(|| "none".to_owned(), quote);
            let own = own.as_deref().map_or_else(|| "none".to_owned(), quote);
            Err(broken(rule, id, format!("got {given}, but the handshake has {own}")))
        };
        let Ids { execution, instance, has_instance } = ids;
        if execution.is_none() || execution != self.execution_id.as_deref() {
            return wrong(Rule::ExecutionId, execution, &self.execution_id);
        }
        if has_instance && (instance.is_none() || instance != self.instance_id.as_deref()) {
            return wrong(Rule::InstanceId, instance, &self.instance_id);
        }
        Ok(())
    }

    /// Records a message that is sent.
    pub(super) fn record(&mut self, message: &Message) {
        match message {
            Message::Handshake(handshake) => {
                self.execution_id = handshake.execution_id().map(str::to_owned);
                self.instance_id = handshake.instance_id().map(str::to_owned);
                self.host_type = handshake.host_type();
                self.mode = handshake.execution_mode();
                let offered = handshake.get(HandshakeKey::SUPPORTED_VERSIONS);
                self.offered = Versions::parse(offered.unwrap_or_default());
            }
            Message::SessionEvent(event) => {
                let is_open = event.session_type == Some(SessionEventType::START);
                if let Some(uid) = &event.session_uid {
                    self.sessions.insert(uid.clone(), is_open);
                }
            }
            _ => {}
        }
    }

    fn has_session(&self) -> bool {
        self.sessions.values().any(|is_open| *is_open)
    }

    /// Returns the first session of a result that is not open.
    fn closed_session<'r>(&self, results: &'r TestResults) -> Option<&'r str> {
        let successful = results.successful.iter().flatten().map(|test| &test.session_uid);
        let failed = results.failed.iter().flatten().map(|test| &test.session_uid);
        let named = successful.chain(failed).filter_map(|uid| uid.as_deref());
        named.into_iter().find(|uid| self.sessions.get(*uid) != Some(&true))
    }
}

/// The ids in a message.
#[derive(Debug, Clone, Copy)]
struct Ids<'m> {
    execution: Option<&'m str>,
    instance: Option<&'m str>,
    /// Whether the message must have an InstanceId.
    has_instance: bool,
}

impl Default for Ids<'_> {
    /// Returns missing ids.
    fn default() -> Self {
        Self { execution: None, instance: None, has_instance: true }
    }
}

impl<'m> Ids<'m> {
    /// Returns the ids of a message, or `None` if the message needs none.
    fn of(message: &'m Message) -> Option<Self> {
        let execution = match message {
            Message::DiscoveredTests(DiscoveredTests { execution_id, .. })
            | Message::TestResults(TestResults { execution_id, .. }) => execution_id,
            Message::FileArtifacts(message) => &message.execution_id,
            Message::SessionEvent(message) => &message.execution_id,
            Message::TestsInProgress(message) => &message.execution_id,
            _ => return None,
        };
        let has_instance = message.id() != MessageId::SESSION_EVENT;
        Some(Self { execution: execution.as_deref(), instance: message.instance_id(), has_instance })
    }

    /// Reads the ids at the start of test results or discovered tests. `None` if the body is malformed.
    fn read_leading(frame: &Frame<'m>) -> Option<Self> {
        let mut reader = frame.reader();
        let mut ids = Self::default();
        for _ in 0..reader.u16("field count").ok()?.min(2) {
            let (id, value) = field(&mut reader).ok()?;
            let text = std::str::from_utf8(value.rest()).ok()?;
            match id {
                1 => ids.execution = Some(text),
                2 => ids.instance = Some(text),
                _ => {}
            }
        }
        Some(ids)
    }
}

fn broken(rule: Rule, message: MessageId, detail: String) -> RequestError {
    RequestError::Broken { rule, message, detail }
}

/// Returns the rule that a request with this error would break.
pub(super) fn rule(error: &RequestError) -> Option<Rule> {
    Some(match error {
        RequestError::InFlight(_) => Rule::Overlap,
        RequestError::NoHandshake(_) => Rule::BeforeHandshake,
        RequestError::SecondHandshake => Rule::SecondHandshake,
        RequestError::NotNegotiated { .. } => Rule::NotNegotiated,
        RequestError::WrongPipe(_) => Rule::WrongPipe,
        RequestError::Broken { rule, .. } => *rule,
        RequestError::Closed | RequestError::Encode(_) => return None,
    })
}
