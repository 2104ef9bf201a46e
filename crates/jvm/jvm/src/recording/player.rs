//! The machines that a recording is given to.
//!
//! Owns: [`Player`], HQ's side of the connections of one agent, without sockets and clocks. What HQ had sent is heard too: it says
//! what the agent was told, and where commands had led it.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_bytefrog::hq::Connection;
use runtap_bytefrog::{Model, in_order};
use runtap_bytefrog_proto::hq::{Control, Data, Event, Settings};
use runtap_bytefrog_proto::{
    ClassOutcome, Configuration, Decoder, Dialect, Message, Rule, Side, Stream as Direction, Violation,
};

use crate::recording::find::Recorded;
use crate::recording::names::StreamName;
use crate::recording::replay::{Damage, Options, Replayed};
use crate::recording::stream::Stream;

/// Names of classes that are kept.
const MOST_CLASSES: usize = 1 << 16;
/// Violations that are kept in words.
const MOST_VIOLATIONS: usize = 1000;

/// The machines of an agent's connections.
pub(crate) struct Player {
    control: Control,
    from_hq: Decoder,
    data: BTreeMap<u32, Data>,
    pub(crate) has_greeted: bool,
    /// The agent was given another interval of heartbeats, and still waits for the end of the last one.
    is_between: bool,
    dialect: Dialect,
    /// The parts of the recording that count, in order, without overlaps; `None`: all of it.
    marked: Option<Vec<(Duration, Duration)>>,
    /// Connections of which no more is read.
    pub(crate) closed: Vec<Connection>,
    pub(crate) played: Replayed,
}

impl Player {
    pub(crate) fn new(recorded: &Recorded, options: &Options, dialect: Dialect, log: bool) -> Self {
        let mut model =
            Model::new(dialect, &options.limits, options.slow).selecting(options.part.selection.clone());
        if log {
            model.log_changes();
        }
        Self {
            control: Control::new(Settings::default(), Duration::ZERO),
            from_hq: Decoder::new(Direction::control_from_hq(dialect)),
            data: BTreeMap::new(),
            has_greeted: false,
            is_between: false,
            dialect,
            marked: options.part.marked.clone().map(in_order),
            closed: Vec::new(),
            played: Replayed {
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

    /// Something happens at this time.
    pub(crate) fn at(&mut self, at: Duration) {
        if !self.is_between && self.control.next_timeout().is_some_and(|next| next <= at) {
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

    /// Takes bytes of a stream. Whether there is a use in more of it.
    pub(crate) fn take(&mut self, name: &StreamName, bytes: &[u8], at: Duration, has_index: bool) -> bool {
        match (name.connection, name.side) {
            (Connection::Control, Side::Agent) => self.take_control(name, bytes, at),
            (Connection::Control, Side::Hq) => self.take_command(name, bytes, at, has_index),
            (Connection::Data(number), Side::Agent) => self.take_data(name, number, bytes),
            // Replies: they say nothing of the trace.
            (Connection::Data(_), Side::Hq) => false,
        }
    }

    fn take_control(&mut self, name: &StreamName, bytes: &[u8], at: Duration) -> bool {
        if !self.has_greeted {
            // The agent is there from now on: HQ may have listened for any time before, and that is no silence of its.
            self.control = Control::new(Settings::default(), at);
        }
        // What comes behind hello is for a machine that has its configuration.
        let hello = if self.has_greeted { 0 } else { bytes.len().min(hello_size(bytes)) };
        let (hello, rest) = bytes.split_at_checked(hello).unwrap_or((bytes, &[]));
        let mut close = self.hear(name, hello, at);
        if !self.has_greeted && !hello.is_empty() {
            self.has_greeted = true;
            // HQ always sends one. Where the recording has it, it comes in a moment.
            let _ = self.control.configure(&Configuration::default());
        }
        close |= self.hear(name, rest, at);
        !close
    }

    /// Whether the connection is of no use after that.
    fn hear(&mut self, name: &StreamName, bytes: &[u8], at: Duration) -> bool {
        if bytes.is_empty() {
            return false;
        }
        let output = self.control.handle_bytes(bytes, at);
        let mut wrong = Vec::new();
        for event in output.events {
            match event {
                Event::Hello { project, .. } => self.played.project = project,
                Event::DataBreak { sequence } => self.played.model.take(&Message::DataBreak { sequence }),
                Event::Class { outcome, name } => self.class(outcome, &name.to_string()),
                Event::Error { text } if self.played.errors.len() < MOST_VIOLATIONS => {
                    self.played.errors.push(text.to_string());
                }
                Event::Process(process) => self.played.process = Some(process),
                Event::Heartbeat { .. } => self.is_between = false,
                Event::Violation(violation) => wrong.push(violation),
                _ => {}
            }
        }
        if output.close {
            self.damaged(name, wrong.last());
        }
        self.violations(Connection::Control, wrong);
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
        let has_room = classes.len() < MOST_CLASSES;
        match classes.get_mut(&(outcome, name.to_owned())) {
            Some(count) => *count += 1,
            None if has_room => {
                classes.insert((outcome, name.to_owned()), 1);
            }
            None => {}
        }
    }

    fn take_command(&mut self, name: &StreamName, bytes: &[u8], at: Duration, has_index: bool) -> bool {
        let Self { from_hq, control, played, dialect, is_between, .. } = self;
        let read = from_hq.feed(bytes, |_, message| {
            match message {
                Message::Configuration { payload } => {
                    if let Ok((configuration, _)) = Configuration::decode(payload, dialect.framing()) {
                        played.run = Some(configuration.run);
                        let _ = control.configure(&configuration);
                        played.configuration = Some(configuration);
                        *is_between = true;
                    }
                }
                // Without times nobody knows what they came after.
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

    fn take_data(&mut self, name: &StreamName, number: u32, bytes: &[u8]) -> bool {
        let dialect = self.dialect;
        let data = self.data.entry(number).or_default();
        let model = &mut self.played.model;
        let had_hello = data.run().is_some();
        let mut output = if had_hello {
            data.handle_bytes(bytes, |_| None, |_, message| model.take(&message))
        } else {
            // A whole stream in one piece is no sign that nobody has waited for the reply.
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

    /// A stream is of no use from here on.
    fn damaged(&mut self, name: &StreamName, why: Option<&Violation>) {
        // The agent's own error is an end like others.
        let Some(why) = why.filter(|why| why.rule != Rule::AgentError) else { return };
        let (offset, reason) = (why.offset.unwrap_or(0), why.to_string());
        self.played.damage.push(Damage { stream: name.clone(), offset, reason });
    }

    fn violations(&mut self, connection: Connection, violations: Vec<Violation>) {
        for violation in violations {
            if self.played.violations.len() < MOST_VIOLATIONS {
                self.played.violations.push((connection, violation));
            } else {
                self.played.more_violations += 1;
            }
        }
    }

    /// The agent's side of a connection has ended.
    pub(crate) fn end(&mut self, name: &StreamName) {
        if name.side == Side::Hq || self.closed.contains(&name.connection) {
            return;
        }
        let wrong = match name.connection {
            Connection::Control => self.control.handle_close(),
            Connection::Data(number) => {
                self.data.get_mut(&number).and_then(Data::handle_close).into_iter().collect()
            }
        };
        self.violations(name.connection, wrong);
        self.closed.push(name.connection);
    }

    /// A stream of which no more comes.
    pub(crate) fn leave(&mut self, stream: &Stream) {
        let name = &stream.files.name;
        if let Some((offset, reason)) = &stream.damage {
            let damage = Damage { stream: name.clone(), offset: *offset, reason: reason.clone() };
            self.played.damage.push(damage);
        } else if name.side == Side::Agent && !self.closed.contains(&name.connection) && stream.has_index() {
            self.played.unfinished.push(name.connection);
        }
    }
}

/// Bytes of the first message, if it is a hello.
fn hello_size(bytes: &[u8]) -> usize {
    if bytes.first() == Some(&0x10) { 6 } else { 2 }
}
