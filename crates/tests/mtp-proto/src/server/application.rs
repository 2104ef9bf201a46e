//! The state that all connections of an application share, and the handling of their frames.

use std::collections::BTreeMap;

use super::{
    Connection, ConnectionId, Event, Mode, Output, Pipe, Settings,
    connection::{Link, Stage},
    fields,
    handshake::SharedProperties,
    quote,
    sessions::Sessions,
};
use crate::render::Rendering;
use crate::{Frame, FrameReader, HostType, Message, MessageId, Rule};

/// The server's state of one test application: its process and all processes that it started.
#[derive(Debug)]
pub struct Application {
    pub(super) settings: Settings,
    connections: u32,
    /// The shared properties of the first accepted handshake.
    pub(super) common: Option<SharedProperties>,
    /// The InstanceIds of all handshakes, with the attempt of each test host.
    pub(super) instances: BTreeMap<String, Option<u32>>,
    pub(super) has_test_host: bool,
    pub(super) last_attempt: u32,
    pub(super) sessions: Sessions,
    has_options: bool,
    /// The last attempt that has failed tests.
    failed_in: Option<u32>,
}

impl Application {
    /// Creates the state of an application that has not connected yet.
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

    /// Returns the settings of the server.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the ExecutionId that all processes of the application share. `None` before the first handshake was
    /// accepted.
    pub fn execution_id(&self) -> Option<&str> {
        self.common.as_ref().map(|common| common.execution_id.as_str())
    }

    /// Returns the attempt of the test host with this InstanceId. `None` if the process is unknown or not a test host.
    pub fn attempt_of(&self, instance_id: &str) -> Option<u32> {
        self.instances.get(instance_id).copied().flatten()
    }

    /// Creates the state of a new connection of the application.
    pub fn connect(&mut self, pipe: Pipe) -> Connection {
        let id = ConnectionId(self.connections);
        self.connections = self.connections.saturating_add(1);
        Connection::new(id, pipe, FrameReader::new(self.settings.limits))
    }

    /// Handles received bytes.
    pub fn handle_bytes(&mut self, connection: &mut Connection, bytes: &[u8]) -> Output {
        let mut output = Output::default();
        let Connection { reader, link } = connection;
        if matches!(link.stage, Stage::Dead) {
            output.close = true;
            return output;
        }
        if link.waiting && !bytes.is_empty() && link.is_first(Rule::Overlap) {
            output.violation(
                Rule::Overlap,
                Some(link.id),
                "bytes arrived while a request is pending on the control pipe",
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
                    output.set_offset(since, error.offset);
                    link.stage = Stage::Dead;
                    output.close = true;
                }
            }
            if let Some(id) = before
                && reader.leftover() > 0
                && link.is_first(Rule::Overlap)
            {
                let detail =
                    format!("{} bytes arrived after {id} at offset {}", reader.leftover(), reader.offset());
                let since = output.events.len();
                output.violation(Rule::Overlap, Some(link.id), detail);
                output.set_offset(since, reader.offset());
            }
        }
        output
    }

    /// Handles a frame that was already split from its stream, for example by a recording.
    pub fn handle_frame(&mut self, connection: &mut Connection, frame: Frame<'_>) -> Output {
        let mut output = Output::default();
        if matches!(connection.link.stage, Stage::Dead) {
            output.close = true;
        } else {
            self.take(&mut connection.link, frame, &mut output);
        }
        output
    }

    /// Handles the end of the connection, no matter which side closed it.
    pub fn handle_close(&mut self, connection: &mut Connection) -> Output {
        let mut output = Output { close: true, ..Output::default() };
        let left = connection.reader.leftover();
        if left > 0 && !matches!(connection.link.stage, Stage::Dead) {
            let detail = format!("{left} bytes of a frame at offset {}", connection.reader.offset());
            output.violation(Rule::CutFrame, Some(connection.link.id), detail);
            output.set_offset(0, connection.reader.offset());
        }
        connection.link.stage = Stage::Dead;
        output
    }

    /// Handles the exit of the process, after all connections were closed. `code` is the exit code; `None` if the
    /// process was killed or the code is unknown.
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
        output.set_offset(since, frame.offset);
    }

    fn take_frame(&mut self, link: &mut Link, frame: Frame<'_>, output: &mut Output) {
        if link.pipe == Pipe::Control {
            return take_control(link, frame, output);
        }
        // Before the handshake, only command-line options in help mode are decoded: hosts before MTP 2.3 send them
        // first.
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
            // The content is ignored, so it is not checked.
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
                let place = Rendering::new(&frame, self.settings.limits).error_path;
                let since = output.events.len();
                output.violation(Rule::Undecodable, Some(link.id), format!("{}{place}: {error}", frame.id));
                output.set_offset(since, error.offset);
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
            Message::DiscoveredTests(_)
                if !self.sessions.any_open() && link.is_first(Rule::OutsideSession) =>
            {
                output.violation(Rule::OutsideSession, Some(link.id), "no session has started");
            }
            Message::TestResults(results) => {
                if let Some(detail) = self.sessions.outside(results)
                    && link.is_first(Rule::OutsideSession)
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

    /// Returns why a message with this id is not allowed on the connection.
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
                let detail = format!("{id} requires protocol version {since}, but {version} was chosen");
                return (since > version).then_some((Rule::NotNegotiated, detail));
            }
        };
        Some((rule, id.to_string()))
    }

    /// Checks whether a message belongs to another run. Like the SDK, this does not check texts for users.
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
                format!("{id} has {}, but the handshake has {}", quote(given), quote(expected)),
            )),
            None => Some((Rule::ExecutionId, format!("{id} has none"))),
        }
    }

    /// Checks whether the sender is known and may send the message.
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
                output.violation(Rule::InstanceId, Some(link.id), format!("{id} has {}", quote(instance)));
            }
            Some(None) => output.violation(Rule::InstanceId, Some(link.id), format!("{id} has none")),
            _ => {}
        }
        if !self.has_test_host && instance.is_some() && link.is_first(Rule::NoTestHost) {
            output.violation(Rule::NoTestHost, Some(link.id), id.to_string());
        }
        let host = link.peer().map(|peer| peer.host_type.clone());
        if let Some(host) = host.filter(|host| needs_test_host && *host != HostType::TestHost)
            && link.is_first(Rule::WrongHost)
        {
            output.violation(Rule::WrongHost, Some(link.id), format!("{id} from {}", quote(host.as_str())));
        }
        if self.settings.mode == Mode::Discover
            && matches!(message, Message::TestResults(_) | Message::FileArtifacts(_))
            && link.is_first(Rule::DiscoveryMode)
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
    // A second request while one is pending: both get one answer.
    if !std::mem::replace(&mut link.waiting, true) {
        output.events.push(Event::ControlWaiting);
    }
}
