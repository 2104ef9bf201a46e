//! What all connections of an application share, and what is done with their frames.

use std::collections::BTreeMap;

use super::{
    Connection, ConnectionId, Event, Mode, Output, Pipe, Settings,
    connection::{Link, Stage},
    fields,
    handshake::Common,
    quote,
    sessions::Sessions,
};
use crate::render::Rendering;
use crate::{Frame, FrameReader, HostType, Message, MessageId, Rule};

/// One test application: its process and all that it has started.
#[derive(Debug)]
pub struct Application {
    pub(super) settings: Settings,
    connections: u32,
    /// Of the first handshake that was accepted.
    pub(super) common: Option<Common>,
    /// The InstanceIds of all handshakes, with the attempt if it is a test host's.
    pub(super) instances: BTreeMap<String, Option<u32>>,
    pub(super) has_test_host: bool,
    pub(super) last_attempt: u32,
    pub(super) sessions: Sessions,
    has_options: bool,
    /// Whether the last attempt that has failed tests is this one.
    failed_in: Option<u32>,
}

impl Application {
    /// An application that has not connected yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: 0,
            common: None,
            instances: BTreeMap::new(),
            has_test_host: false,
            last_attempt: 0,
            sessions: Sessions::default(),
            has_options: false,
            failed_in: None,
        }
    }

    /// What the server says and expects.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The ExecutionId that all processes of the application have, once the first one has said it.
    pub fn execution_id(&self) -> Option<&str> {
        self.common.as_ref().map(|common| common.execution_id.as_str())
    }

    /// Which attempt the process with this InstanceId is; none if it is unknown or no test host.
    pub fn attempt_of(&self, instance_id: &str) -> Option<u32> {
        self.instances.get(instance_id).copied().flatten()
    }

    /// A process of the application has connected.
    pub fn connect(&mut self, pipe: Pipe) -> Connection {
        let id = ConnectionId(self.connections);
        self.connections = self.connections.saturating_add(1);
        Connection::new(id, pipe, FrameReader::new(self.settings.limits))
    }

    /// Takes bytes that arrived.
    pub fn handle_bytes(&mut self, connection: &mut Connection, bytes: &[u8]) -> Output {
        let mut output = Output::default();
        let Connection { reader, link } = connection;
        if matches!(link.stage, Stage::Dead) {
            output.close = true;
            return output;
        }
        if link.waiting && !bytes.is_empty() && link.first(Rule::Overlap) {
            output.violation(
                Rule::Overlap,
                Some(link.id),
                "bytes came while a request waits on the control pipe",
            );
        }
        reader.feed(bytes);
        let mut before = None;
        while !output.close {
            match reader.next_frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    before = Some(frame.id);
                    self.take(link, frame, &mut output);
                }
                Err(error) => {
                    let since = output.events.len();
                    output.violation(Rule::FrameLength, Some(link.id), error.to_string());
                    output.place(since, error.offset);
                    link.stage = Stage::Dead;
                    output.close = true;
                }
            }
            if let Some(id) = before
                && reader.leftover() > 0
                && link.first(Rule::Overlap)
            {
                let detail =
                    format!("{} bytes came behind {id} at offset {}", reader.leftover(), reader.offset());
                let since = output.events.len();
                output.violation(Rule::Overlap, Some(link.id), detail);
                output.place(since, reader.offset());
            }
        }
        output
    }

    /// Takes a frame that somebody else has found: one of a recording.
    pub fn handle_frame(&mut self, connection: &mut Connection, frame: Frame<'_>) -> Output {
        let mut output = Output::default();
        if matches!(connection.link.stage, Stage::Dead) {
            output.close = true;
        } else {
            self.take(&mut connection.link, frame, &mut output);
        }
        output
    }

    /// The connection has ended, from whichever side.
    pub fn handle_close(&mut self, connection: &mut Connection) -> Output {
        let mut output = Output { close: true, ..Output::default() };
        let left = connection.reader.leftover();
        if left > 0 && !matches!(connection.link.stage, Stage::Dead) {
            let detail = format!("{left} bytes of a frame at offset {}", connection.reader.offset());
            output.violation(Rule::CutFrame, Some(connection.link.id), detail);
            output.place(0, connection.reader.offset());
        }
        connection.link.stage = Stage::Dead;
        output
    }

    /// The process has exited, and all connections are closed. `code` is its exit code; none if it was killed or that is not
    /// known.
    pub fn handle_exit(&mut self, code: Option<i32>) -> Output {
        let mut output = Output { close: true, ..Output::default() };
        let shown = code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
        let help = self.settings.mode == Mode::Help;
        if help && !self.has_options {
            output.violation(Rule::NoOptions, None, shown.as_str());
        }
        if !(self.has_test_host || help && self.has_options) {
            output.violation(Rule::NeverConnected, None, shown.as_str());
        }
        if code == Some(0) && !help && self.has_test_host {
            self.sessions.at_exit(&mut output);
            if self.failed_in.is_some_and(|attempt| attempt >= self.last_attempt) {
                output.violation(Rule::FailedButZero, None, shown);
            }
        }
        output
    }

    fn take(&mut self, link: &mut Link, frame: Frame<'_>, output: &mut Output) {
        let since = output.events.len();
        self.take_frame(link, frame, output);
        output.place(since, frame.offset);
    }

    fn take_frame(&mut self, link: &mut Link, frame: Frame<'_>, output: &mut Output) {
        if link.pipe == Pipe::Control {
            return take_control(link, frame, output);
        }
        // Nothing is decoded before the handshake, but what hosts before MTP 2.3 send in help mode.
        let early = self.settings.mode == Mode::Help && frame.id == MessageId::COMMAND_LINE_OPTIONS;
        let unwelcome = match link.stage {
            Stage::New if frame.id != MessageId::HANDSHAKE && !early => Some(Rule::BeforeHandshake),
            Stage::Rejected => Some(Rule::AfterRejection),
            _ => None,
        };
        if let Some(rule) = unwelcome {
            let detail = format!("{} at offset {}", frame.id, frame.offset);
            output.violation(rule, Some(link.id), detail);
            link.stage = Stage::Dead;
            output.close = true;
            return;
        }
        if frame.id == MessageId::HANDSHAKE
            && let Some(peer) = link.peer()
        {
            // What it says does not matter, so it may say anything.
            output.violation(Rule::SecondHandshake, Some(link.id), "the first one stays valid");
            return output.reply(&self.answer(Some(peer.version)));
        }
        match Message::decode(&frame, self.settings.limits) {
            Ok(Message::Handshake(handshake)) => self.handle_handshake(link, handshake, output),
            Ok(message) => {
                self.handle_message(link, message, output);
                output.reply(&Message::Void);
            }
            Err(error) => {
                let place = Rendering::new(&frame, self.settings.limits).trail;
                let since = output.events.len();
                output.violation(Rule::Undecodable, Some(link.id), format!("{}{place}: {error}", frame.id));
                output.place(since, error.offset);
                if frame.id == MessageId::HANDSHAKE {
                    self.reject(link, Rule::Undecodable, output);
                } else {
                    output.reply(&Message::Void);
                }
            }
        }
    }

    fn handle_message(&mut self, link: &mut Link, message: Message, output: &mut Output) {
        let id = message.id();
        if let Some((rule, detail)) = self.misplaced(link, id) {
            output.violation(rule, Some(link.id), detail);
            return;
        }
        if let Some((rule, detail)) = self.foreign(&message) {
            output.violation(rule, Some(link.id), detail);
            return;
        }
        self.check_sender(link, &message, output);
        let mut broken = Vec::new();
        fields::check(&message, self.settings.is_ide, &mut broken);
        for (rule, detail) in broken {
            output.violation(rule, Some(link.id), detail);
        }
        match &message {
            Message::CommandLineOptions(_) => self.has_options = true,
            Message::SessionEvent(event) => self.sessions.handle(event, link.id, output),
            Message::DiscoveredTests(_) if !self.sessions.any_open() && link.first(Rule::OutsideSession) => {
                output.violation(Rule::OutsideSession, Some(link.id), "no session has begun");
            }
            Message::TestResults(results) => {
                if let Some(detail) = self.sessions.outside(results)
                    && link.first(Rule::OutsideSession)
                {
                    output.violation(Rule::OutsideSession, Some(link.id), detail);
                }
                if fields::has_failed(results) {
                    self.failed_in = self.failed_in.max(link.peer().and_then(|peer| peer.attempt));
                }
            }
            _ => {}
        }
        output.events.push(Event::Message(message));
    }

    /// Why a message of this id has no place here at all.
    fn misplaced(&self, link: &Link, id: MessageId) -> Option<(Rule, String)> {
        let help = self.settings.mode == Mode::Help;
        let rule = match id {
            MessageId::COMMAND_LINE_OPTIONS if !help => Rule::UnexpectedOptions,
            MessageId::DISCOVERED_TESTS
            | MessageId::TEST_RESULTS
            | MessageId::FILE_ARTIFACTS
            | MessageId::SESSION_EVENT
            | MessageId::TESTS_IN_PROGRESS
                if help =>
            {
                Rule::HelpMode
            }
            MessageId::VOID
            | MessageId::TEST_HOST_COMPLETED
            | MessageId::TEST_HOST_PROCESS_ID
            | MessageId::WAIT_FOR_SERVER_CONTROL
            | MessageId::SERVER_CONTROL => Rule::WrongPipe,
            id if id.name().is_none() => Rule::UnknownMessage,
            id => {
                let since = id.since()?;
                let version = link.peer()?.version;
                let detail = format!("{id} is of version {since}, {version} was chosen");
                return (since > version).then_some((Rule::NotNegotiated, detail));
            }
        };
        Some((rule, id.to_string()))
    }

    /// Whether a message belongs to another run. Texts for people are not checked, as by the SDK.
    fn foreign(&self, message: &Message) -> Option<(Rule, String)> {
        let given = match message {
            Message::DiscoveredTests(message) => &message.execution_id,
            Message::TestResults(message) => &message.execution_id,
            Message::FileArtifacts(message) => &message.execution_id,
            Message::SessionEvent(message) => &message.execution_id,
            Message::TestsInProgress(message) => &message.execution_id,
            _ => return None,
        };
        let expected = self.execution_id().unwrap_or_default();
        let id = message.id();
        match given {
            Some(given) if given == expected => None,
            Some(given) => Some((
                Rule::ExecutionId,
                format!("that of {id} is {}, that of the handshake {}", quote(given), quote(expected)),
            )),
            None => Some((Rule::ExecutionId, format!("{id} has none"))),
        }
    }

    /// Whether the sender is known and one that sends such messages.
    fn check_sender(&self, link: &mut Link, message: &Message, output: &mut Output) {
        let id = message.id();
        let (instance, needs_test_host) = match message {
            Message::DiscoveredTests(message) => (Some(&message.instance_id), true),
            Message::TestResults(message) => (Some(&message.instance_id), true),
            Message::TestsInProgress(message) => (Some(&message.instance_id), true),
            Message::FileArtifacts(message) => (Some(&message.instance_id), false),
            Message::SessionEvent(_) => (None, true),
            _ => return,
        };
        match instance {
            Some(Some(instance)) if !self.instances.contains_key(instance) => {
                output.violation(
                    Rule::InstanceId,
                    Some(link.id),
                    format!("that of {id} is {}", quote(instance)),
                );
            }
            Some(None) => output.violation(Rule::InstanceId, Some(link.id), format!("{id} has none")),
            _ => {}
        }
        if !self.has_test_host && instance.is_some() && link.first(Rule::NoTestHost) {
            output.violation(Rule::NoTestHost, Some(link.id), id.to_string());
        }
        let host = link.peer().map(|peer| peer.host_type.clone());
        if let Some(host) = host.filter(|host| needs_test_host && *host != HostType::TestHost)
            && link.first(Rule::WrongHost)
        {
            output.violation(Rule::WrongHost, Some(link.id), format!("{id} from {}", quote(host.as_str())));
        }
        if self.settings.mode == Mode::Discover
            && matches!(message, Message::TestResults(_) | Message::FileArtifacts(_))
            && link.first(Rule::DiscoveryMode)
        {
            output.violation(Rule::DiscoveryMode, Some(link.id), id.to_string());
        }
    }
}

fn take_control(link: &mut Link, frame: Frame<'_>, output: &mut Output) {
    if frame.id != MessageId::WAIT_FOR_SERVER_CONTROL {
        output.violation(Rule::WrongPipe, Some(link.id), format!("{} on the control pipe", frame.id));
        return output.reply(&Message::Void);
    }
    // A second request while one waits: both get one answer.
    if !std::mem::replace(&mut link.waiting, true) {
        output.events.push(Event::ControlWaiting);
    }
}
