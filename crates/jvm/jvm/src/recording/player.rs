//! The state machines through which a recording is replayed.
//!
//! [`Player`] is HQ's side of the connections of one agent, without sockets and clocks. The bytes that HQ sent are
//! processed too: they contain the agent's configuration and the commands.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog::{Model, in_order};
use runtap_bytefrog_proto::hq::{Control, Data, Event, Settings};
use runtap_bytefrog_proto::{
    ClassOutcome, Configuration, Decoder, Dialect, Message, Rule, Side, Stream as Direction, Violation,
};

use crate::recording::find::RecordedAgent;
use crate::recording::names::StreamName;
use crate::recording::replay::{Damage, Options, ReplayedAgent};
use crate::recording::stream::Stream;

/// The maximum number of class names that are kept.
const MAX_CLASSES: usize = 1 << 16;
/// The maximum number of violations that are kept with their details.
const MAX_VIOLATIONS: usize = 1000;

/// The state machines of an agent's connections.
pub(crate) struct Player {
    control: Control,
    from_hq: Decoder,
    data: BTreeMap<u32, Data>,
    has_said_hello: bool,
    /// Whether the agent received another heartbeat interval, but still uses the previous one.
    changes_interval: bool,
    dialect: Dialect,
    /// The parts of the recording that are counted, sorted and without overlaps; `None` for all of it.
    marked: Option<Vec<(Duration, Duration)>>,
    /// The connections that are no longer read.
    pub(crate) closed: Vec<Connection>,
    pub(crate) played: ReplayedAgent,
}

impl Player {
    pub(crate) fn new(recorded: &RecordedAgent, options: &Options, dialect: Dialect, log: bool) -> Self {
        let mut model =
            Model::new(dialect, &options.limits, options.slow).selecting(options.part.selection.clone());
        if log {
            model.log_changes();
        }
        Self {
            control: Control::new(Settings::default(), Duration::ZERO),
            from_hq: Decoder::new(Direction::control_from_hq(dialect)),
            data: BTreeMap::new(),
            has_said_hello: false,
            changes_interval: false,
            dialect,
            marked: options.part.marked.clone().map(in_order),
            closed: Vec::new(),
            played: ReplayedAgent {
                agent: recorded.agent.clone(),
                run: None,
                project: None,
                process: None,
                configuration: None,
                model,
                classes: BTreeMap::new(),
                class_counts: [0; 3],
                errors: Vec::new(),
                violations: Vec::new(),
                more_violations: 0,
                damage: Vec::new(),
                unfinished: Vec::new(),
            },
        }
    }

    /// Advances to the time of the next bytes.
    pub(crate) fn at(&mut self, at: Duration) {
        if !self.changes_interval && self.control.next_timeout().is_some_and(|next| next <= at) {
            let overdue = self.control.handle_timeout(at);
            self.violations(Connection::Control, overdue);
        }
        if let Some(marked) = &self.marked {
            let next = marked.partition_point(|(from, _)| *from <= at);
            let last = next.checked_sub(1).and_then(|last| marked.get(last));
            let is_inside = last.is_some_and(|(_, until)| at < *until);
            self.played.model.set_counting(is_inside);
        }
    }

    /// Handles bytes of a stream. Returns whether further bytes of the stream are needed.
    pub(crate) fn handle(&mut self, name: &StreamName, bytes: &[u8], at: Duration, has_index: bool) -> bool {
        match (name.connection, name.side) {
            (Connection::Control, Side::Agent) => self.handle_control(name, bytes, at),
            (Connection::Control, Side::Hq) => self.handle_command(name, bytes, at, has_index),
            (Connection::Data(number), Side::Agent) => self.handle_data(name, number, bytes),
            // Replies do not affect the trace.
            (Connection::Data(_), Side::Hq) => false,
        }
    }

    fn handle_control(&mut self, name: &StreamName, bytes: &[u8], at: Duration) -> bool {
        if !self.has_said_hello {
            // The agent connects now: HQ may have listened before for any time without it being silent.
            self.control = Control::new(Settings::default(), at);
        }
        // Bytes after hello are for a state machine that has its configuration.
        let hello = if self.has_said_hello { 0 } else { bytes.len().min(hello_size(bytes)) };
        let (hello, rest) = bytes.split_at_checked(hello).unwrap_or((bytes, &[]));
        let mut close = self.handle_agent_bytes(name, hello, at);
        if !self.has_said_hello && !hello.is_empty() {
            self.has_said_hello = true;
            // HQ always sends a configuration. If the recording contains it, it replaces this one.
            let _ = self.control.configure(&Configuration::default());
        }
        close |= self.handle_agent_bytes(name, rest, at);
        !close
    }

    /// Handles bytes of the agent on its control connection. Returns whether the connection is unusable afterwards.
    fn handle_agent_bytes(&mut self, name: &StreamName, bytes: &[u8], at: Duration) -> bool {
        if bytes.is_empty() {
            return false;
        }
        let output = self.control.handle_bytes(bytes, at);
        let mut violations = Vec::new();
        for event in output.events {
            match event {
                Event::Hello { project, .. } => self.played.project = project,
                Event::DataBreak { sequence } => self.played.model.take(&Message::DataBreak { sequence }),
                Event::Class { outcome, name } => self.class(outcome, &name.to_string()),
                Event::Error { text } if self.played.errors.len() < MAX_VIOLATIONS => {
                    self.played.errors.push(text.to_string());
                }
                Event::Process(process) => self.played.process = Some(process),
                Event::Heartbeat { .. } => self.changes_interval = false,
                Event::Violation(violation) => violations.push(violation),
                _ => {}
            }
        }
        if output.close {
            self.damaged(name, violations.last());
        }
        self.violations(Connection::Control, violations);
        output.close
    }

    fn class(&mut self, outcome: ClassOutcome, name: &str) {
        let [transformed, ignored, failed] = &mut self.played.class_counts;
        *match outcome {
            ClassOutcome::Transformed => transformed,
            ClassOutcome::Ignored => ignored,
            ClassOutcome::Failed => failed,
        } += 1;
        let classes = &mut self.played.classes;
        let has_room = classes.len() < MAX_CLASSES;
        match classes.get_mut(&(outcome, name.to_owned())) {
            Some(count) => *count += 1,
            None if has_room => {
                classes.insert((outcome, name.to_owned()), 1);
            }
            None => {}
        }
    }

    fn handle_command(&mut self, name: &StreamName, bytes: &[u8], at: Duration, has_index: bool) -> bool {
        let Self { from_hq, control, played, dialect, changes_interval, .. } = self;
        let read = from_hq.feed(bytes, |_, message| {
            match message {
                Message::Configuration { payload } => {
                    if let Ok((configuration, _)) = Configuration::decode(payload, dialect.framing()) {
                        played.run = Some(configuration.run);
                        let _ = control.configure(&configuration);
                        played.configuration = Some(configuration);
                        *changes_interval = true;
                    }
                }
                // Without times, the order of commands and other messages is unknown.
                Message::Command(command) if has_index => {
                    let _ = control.command(command, at);
                }
                Message::Error { text } if has_index => {
                    let _ = control.fail(&text.to_string());
                }
                _ => {}
            }
            None
        });
        if let Err(error) = &read {
            let damage = Damage { stream: name.clone(), offset: error.offset, reason: error.to_string() };
            self.played.damage.push(damage);
        }
        read.is_ok()
    }

    fn handle_data(&mut self, name: &StreamName, number: u32, bytes: &[u8]) -> bool {
        let dialect = self.dialect;
        let data = self.data.entry(number).or_default();
        let model = &mut self.played.model;
        let had_hello = data.run().is_some();
        let mut output = if had_hello {
            data.handle_bytes(bytes, |_| None, |_, message| model.take(&message))
        } else {
            // A stream in one piece does not mean that the agent did not wait for the reply.
            data.handle_bytes(bytes, |_| Some(dialect), |_, message| model.take(&message))
        };
        output.violations.retain(|violation| violation.rule != Rule::BeforeReply);
        if self.played.run.is_none() {
            self.played.run = data.run();
        }
        if output.close {
            self.damaged(name, output.violations.last());
        }
        self.violations(name.connection, output.violations);
        !output.close
    }

    /// Notes that a stream is unusable from here on.
    fn damaged(&mut self, name: &StreamName, why: Option<&Violation>) {
        // An error that the agent reports is a regular end.
        let Some(why) = why.filter(|why| why.rule != Rule::AgentError) else { return };
        let (offset, reason) = (why.offset.unwrap_or(0), why.to_string());
        self.played.damage.push(Damage { stream: name.clone(), offset, reason });
    }

    fn violations(&mut self, connection: Connection, violations: Vec<Violation>) {
        for violation in violations {
            if self.played.violations.len() < MAX_VIOLATIONS {
                self.played.violations.push((connection, violation));
            } else {
                self.played.more_violations += 1;
            }
        }
    }

    /// Handles the end of the agent's side of a connection.
    pub(crate) fn end(&mut self, name: &StreamName) {
        if name.side == Side::Hq || self.closed.contains(&name.connection) {
            return;
        }
        let violations = match name.connection {
            Connection::Control => self.control.handle_close(),
            Connection::Data(number) => {
                self.data.get_mut(&number).and_then(Data::handle_close).into_iter().collect()
            }
        };
        self.violations(name.connection, violations);
        self.closed.push(name.connection);
    }

    /// Notes that a stream of the recording is over.
    pub(crate) fn finish_stream(&mut self, stream: &Stream) {
        let name = &stream.files.name;
        if let Some(damage) = stream.damage() {
            self.played.damage.push(damage);
        } else if name.side == Side::Agent && !self.closed.contains(&name.connection) && stream.has_index() {
            self.played.unfinished.push(name.connection);
        }
    }
}

/// Returns the size of the first message, assuming that it is a hello.
fn hello_size(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&0x10) { 6 } else { 2 }
}
