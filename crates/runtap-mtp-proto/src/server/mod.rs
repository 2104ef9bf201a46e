//! The side of `dotnet test`: one application, whose processes have a connection each.
//!
//! A frame goes in by [`Application::handle`]; out come the reply, which every request has, what it says, and the rules that
//! it breaks. What may be believed is handed on even if a rule is broken; nothing is decoded before the handshake.

mod check;
mod rules;

use std::collections::{HashMap, HashSet};

pub use self::rules::{Rule, Severity, Violation};
use crate::code::{SessionKind, execution_mode, host_type, id};
use crate::frame::Frame;
use crate::handshake::{Handshake, key};
use crate::message::Message;
use crate::version::Version;

/// What an application was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Run tests.
    Run,
    /// Tell which there are.
    Discover,
    /// Tell its options.
    Help,
}

impl Mode {
    /// The handshake's word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => execution_mode::RUN,
            Self::Discover => execution_mode::DISCOVER,
            Self::Help => execution_mode::HELP,
        }
    }
}

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What the application was asked to do.
    pub mode: Mode,
    /// The versions that the server knows.
    pub versions: Vec<Version>,
    /// Whether to be told all that is known of tests, and when they begin.
    pub is_ide: bool,
    /// The socket of the control pipe.
    pub control_pipe: Option<String>,
    /// The server's process id, architecture, framework and system, for the reply.
    pub identity: [String; 4],
}

/// Whom a handshake has introduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The handshake.
    pub handshake: Handshake,
    /// The version that was agreed on.
    pub version: Version,
}

/// What a frame has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handled {
    /// The reply, to be sent in one piece. Empty on the control pipe, where it comes later.
    pub reply: Vec<u8>,
    /// What the application says: checked, and without what is unusable.
    pub event: Option<Event>,
    /// The rules that it breaks.
    pub violations: Vec<Violation>,
}

impl Handled {
    /// Whether nothing more of the connection can be believed.
    pub fn is_fatal(&self) -> bool {
        self.violations.iter().any(|violation| violation.rule.severity() == Severity::Fatal)
    }
}

/// What an application says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A process has introduced itself.
    Introduced(Peer),
    /// A message, as it was sent but for what breaks a rule.
    Message(Message),
}

/// An application.
#[derive(Debug)]
pub struct Application {
    config: Config,
    /// What its processes agree in: architecture, framework, execution id.
    identity: Option<[String; 3]>,
    connections: HashMap<u64, Version>,
    instances: HashSet<String>,
    has_test_host: bool,
    /// How often each session has begun, and ended.
    sessions: HashMap<String, (u32, u32)>,
}

impl Application {
    /// One that was started and has not said anything.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            identity: None,
            connections: HashMap::new(),
            instances: HashSet::new(),
            has_test_host: false,
            sessions: HashMap::new(),
        }
    }

    /// Takes a frame of a connection.
    pub fn handle(&mut self, connection: u64, frame: &Frame<'_>) -> Handled {
        let mut handled =
            Handled { reply: Message::VoidResponse.encode(), event: None, violations: Vec::new() };
        let version = self.connections.get(&connection).copied();
        let mut broken = |rule, detail: String| {
            handled.violations.push(Violation {
                rule,
                connection: Some(connection),
                offset: Some(frame.offset),
                detail,
            });
        };
        let without_handshake = self.config.mode == Mode::Help && frame.id == id::COMMAND_LINE_OPTIONS;
        if version.is_none() && frame.id != id::HANDSHAKE && !without_handshake {
            broken(Rule::HandshakeFirst, format!("the first message is {}", name(frame.id)));
            return handled;
        }
        let message = match Message::decode(frame) {
            Ok(message) => message,
            Err(error) => {
                broken(Rule::Body, format!("{}: {error}", name(frame.id)));
                return handled;
            }
        };
        match message {
            Message::Handshake(handshake) if version.is_some() => {
                let host_type = handshake.get(key::HOST_TYPE).unwrap_or_default();
                broken(Rule::HandshakeOnce, format!("a second handshake, of {host_type:?}"));
            }
            Message::Handshake(handshake) => {
                let (version, violations) = self.introduce(&handshake);
                for (rule, detail) in violations {
                    broken(rule, detail);
                }
                handled.reply = Message::Handshake(self.reply(version)).encode();
                if let Some(version) = version.filter(|_| !handled.is_fatal()) {
                    self.connections.insert(connection, version);
                    handled.event = Some(Event::Introduced(Peer { handshake, version }));
                }
            }
            mut message => {
                let usable = self.check(&mut message, version, &mut broken);
                if message == Message::WaitForServerControl {
                    handled.reply.clear();
                }
                handled.event = usable.then_some(Event::Message(message));
            }
        }
        handled
    }

    /// Checks a handshake. The version is `None` if there is no common one.
    fn introduce(&mut self, handshake: &Handshake) -> (Option<Version>, Vec<(Rule, String)>) {
        let mut broken = Vec::new();
        let kind = handshake.get(key::HOST_TYPE).unwrap_or_default();
        let is_test_host = kind == host_type::TEST_HOST;
        let needed = [
            key::ARCHITECTURE,
            key::FRAMEWORK,
            key::SUPPORTED_PROTOCOL_VERSIONS,
            key::HOST_TYPE,
            key::EXECUTION_ID,
        ];
        let missing = |key: &u8| handshake.get(*key).is_none();
        for key in needed.into_iter().chain(is_test_host.then_some(key::INSTANCE_ID)).filter(missing) {
            let mut detail = format!("the handshake has no {}", key::name(key).unwrap_or_default());
            if key == key::INSTANCE_ID {
                detail.push_str(": Microsoft.Testing.Platform before 1.7 speaks another protocol; update it");
            }
            broken.push((Rule::HandshakeProperties, detail));
        }
        let offered = handshake.get(key::SUPPORTED_PROTOCOL_VERSIONS).unwrap_or_default();
        let version = Version::negotiate(offered, &self.config.versions);
        if version.is_none() && !missing(&key::SUPPORTED_PROTOCOL_VERSIONS) {
            let known: Vec<_> = self.config.versions.iter().map(Version::to_string).collect();
            let detail = format!("it speaks {offered:?}, and we {}", known.join(", "));
            broken.push((Rule::CommonVersion, detail));
        }
        if let Some(mode) = handshake.get(key::EXECUTION_MODE)
            && mode != self.config.mode.word()
        {
            let detail =
                format!("it is in the mode {mode:?}, and was asked for {:?}", self.config.mode.word());
            broken.push((Rule::ExecutionMode, detail));
        }
        let known = [
            host_type::TEST_HOST,
            host_type::TEST_HOST_CONTROLLER,
            host_type::TEST_HOST_ORCHESTRATOR,
            host_type::SERVER_TEST_HOST,
            host_type::ARTIFACT_POST_PROCESSOR,
        ];
        if !known.contains(&kind) && !kind.is_empty() {
            broken.push((Rule::HostType, format!("its host type is {kind:?}")));
        }
        if let Some(attempt) = handshake.get(key::ATTEMPT_NUMBER)
            && attempt.parse::<u32>().ok().is_none_or(|attempt| attempt == 0)
        {
            broken.push((Rule::AttemptNumber, format!("its attempt number is {attempt:?}")));
        }
        let [architecture, framework, execution] = [key::ARCHITECTURE, key::FRAMEWORK, key::EXECUTION_ID]
            .map(|key| handshake.get(key).unwrap_or_default().to_owned());
        let identity = [architecture, framework, execution];
        match &self.identity {
            Some(known) if *known != identity => {
                let detail = format!(
                    "({}) differs from ({}) of an earlier process",
                    identity.join(", "),
                    known.join(", ")
                );
                broken.push((Rule::OneApplication, detail));
            }
            Some(_) => {}
            None => self.identity = Some(identity),
        }
        if let Some(instance) = handshake.get(key::INSTANCE_ID) {
            self.instances.insert(instance.to_owned());
        }
        self.has_test_host |= is_test_host;
        (version, broken)
    }

    /// The reply: what the SDK's has, and what it could have.
    fn reply(&self, version: Option<Version>) -> Handshake {
        let [pid, architecture, framework, os] = self.config.identity.clone();
        let mut reply = Handshake::new()
            .with(key::PID, pid)
            .with(key::ARCHITECTURE, architecture)
            .with(key::FRAMEWORK, framework)
            .with(key::OS, os)
            .with(
                key::SUPPORTED_PROTOCOL_VERSIONS,
                version.map(|version| version.to_string()).unwrap_or_default(),
            );
        if self.config.is_ide {
            reply = reply.with(key::IS_IDE, "True");
        }
        if let Some(pipe) = &self.config.control_pipe
            && version >= Some(Version::V1_4_0)
        {
            reply = reply.with(key::SERVER_CONTROL_PIPE_NAME, pipe);
        }
        reply
    }

    /// Sessions that have begun and not ended.
    pub fn open_sessions(&self) -> usize {
        self.sessions.values().filter(|(starts, ends)| starts > ends).count()
    }

    /// The application has ended with this code: what it has left undone.
    pub fn finish(&self, exit_code: i32) -> Option<Violation> {
        let open = self.open_sessions();
        (exit_code == 0 && open > 0).then(|| Violation {
            rule: Rule::SessionEnd,
            connection: None,
            offset: None,
            detail: format!("it has exited with 0 and not ended {open} of its sessions"),
        })
    }

    fn session(&mut self, uid: &str, kind: SessionKind) -> Result<(), String> {
        let (starts, ends) = self.sessions.entry(uid.to_owned()).or_default();
        if kind == SessionKind::START {
            *starts += 1;
        } else if ends < starts {
            *ends += 1;
        } else {
            return Err(format!("the session {uid:?} ends and has not begun"));
        }
        Ok(())
    }
}

/// A message's name and id, for people.
fn name(id: i32) -> String {
    match Message::name(id) {
        Some(name) => format!("{name} ({id})"),
        None => format!("message {id}"),
    }
}
