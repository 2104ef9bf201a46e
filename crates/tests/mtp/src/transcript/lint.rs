//! Checks a recording against the rules of the protocol: what its application has said is given to the machine that
//! `runtap test` answers with. And whether it is a recording of one start of an application.

use std::collections::BTreeMap;

use runtap_mtp_proto::server::{Application, Connection, ConnectionId, Mode, Output, Settings};
use runtap_mtp_proto::{
    ExecutionMode, Frame as Wire, Handshake, Limits, Message, MessageId, Rule, Severity, Version, Versions,
};
use runtap_transcript::{Close, Direction, Entry, Frame, Header, Located, Open, Protocol as _};
use serde_json::Value;

use super::fault::{Fault, Flaw};
use super::protocol::{TestPipe, implied, mode_of, pipe_of, what_of};

/// More of them are counted and not told: a broken recording could have as many as it has frames.
const MOST_FINDINGS: usize = 10_000;
/// A server that has not answered after so many lines does not answer.
const MOST_WAITING: usize = 1_000;
/// The same for the bytes of these lines: in memory they take several times as many.
const MOST_WAITING_BYTES: usize = 16 << 20;

/// A rule that was broken, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which one.
    pub rule: Fault,
    /// What exactly it was.
    pub detail: String,
    /// The connection; none for what concerns the application as a whole.
    pub conn: Option<String>,
    /// The line of the recording.
    pub line: u64,
    /// Which frame it was, from 1 on, over all connections; none if it was not a frame.
    pub frame: Option<u64>,
}

/// What there is to be said of a recording that was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections.
    pub connections: u64,
    /// Whole frames of both directions.
    pub frames: u64,
    /// Findings by severity: errors, and warnings.
    pub errors: u64,
    /// As above.
    pub warnings: u64,
    /// The version that the server had chosen, if it had chosen one.
    pub version: Option<Version>,
    /// Whether the recording has its last line: without it nothing is known of the application's end.
    pub has_end: bool,
}

struct Link {
    connection: Connection,
    /// The request without a reply.
    pending: Option<MessageId>,
    is_open: bool,
}

/// Checks recordings line by line.
#[derive(Default)]
pub struct Linter {
    /// Lines before the server's first words, by which its settings are known.
    waiting: Vec<Located>,
    /// Bytes of these lines.
    waiting_bytes: usize,
    header: Option<Header>,
    machine: Option<Application>,
    links: BTreeMap<String, Link>,
    names: Vec<String>,
    summary: Summary,
    findings: Vec<Finding>,
}

impl std::fmt::Debug for Linter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Linter").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl Linter {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line.
    pub fn take(&mut self, located: Located) {
        if let Entry::Header(header) = &located.entry {
            if self.header.is_some() {
                self.flaw(Flaw::SecondHeader, "the first one counts".to_owned(), None, located.line);
            } else {
                let (more, cmd) = (header.more.clone(), header.cmd.clone());
                self.header = Some(Header { more, cmd, ..Header::default() });
            }
            return;
        }
        if self.machine.is_some() {
            return self.check(&located);
        }
        let answered = matches!(&located.entry, Entry::Frame(frame) if frame.dir == TestPipe::name(Direction::FromServer));
        self.waiting_bytes = self.waiting_bytes.saturating_add(located.bytes);
        self.waiting.push(located);
        let is_full = self.waiting.len() >= MOST_WAITING || self.waiting_bytes >= MOST_WAITING_BYTES;
        if answered || is_full {
            self.begin();
        }
    }

    /// Nothing more comes. What was found, in order; of very many, the first.
    pub fn finish(mut self) -> (Summary, Vec<Finding>) {
        self.begin();
        // Headers are looked at before the lines that wait.
        self.findings.sort_by_key(|finding| finding.line);
        (self.summary, self.findings)
    }

    /// Settings as the server had them, and then what was said before they were known.
    fn begin(&mut self) {
        if self.machine.is_some() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let frames = || {
            waiting.iter().filter_map(|located| match &located.entry {
                Entry::Frame(frame) => Some(frame),
                _ => None,
            })
        };
        let said = |from: Direction| {
            frames()
                .filter(move |frame| frame.dir == TestPipe::name(from))
                .find_map(|frame| handshake(frame.hex.as_deref()?))
        };
        let (request, reply) = (said(Direction::FromClient), said(Direction::FromServer));
        self.summary.version = reply.as_ref().and_then(Handshake::chosen_version);
        self.machine = Some(Application::new(settings(
            &self.header.clone().unwrap_or_default(),
            request.as_ref(),
            reply.as_ref(),
        )));
        for located in waiting {
            self.check(&located);
        }
    }

    fn check(&mut self, Located { line, entry, .. }: &Located) {
        let line = *line;
        match entry {
            Entry::Open(open) => {
                self.summary.connections += 1;
                if self.links.get(&open.conn).is_some_and(|link| link.is_open) {
                    let detail = "it was not closed before".to_owned();
                    self.flaw(Flaw::OpenedTwice, detail, Some(&open.conn), line);
                }
                self.open(open);
            }
            Entry::Frame(frame) => self.frame(line, frame),
            Entry::Close(close) => self.close(line, close),
            Entry::Exit(exit) => {
                self.summary.has_end = true;
                let code = exit.code.filter(|code| *code >= 0).and_then(|code| i32::try_from(code).ok());
                if let Some(machine) = &mut self.machine {
                    let output = machine.handle_exit(code);
                    self.found(&output, line, None);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, open: &Open) {
        let Some(machine) = &mut self.machine else { return };
        let connection = machine.connect(pipe_of(open));
        self.names.push(open.conn.clone());
        self.links.insert(open.conn.clone(), Link { connection, pending: None, is_open: true });
    }

    /// What is said on a connection that was not opened is checked all the same.
    fn open_unless_known(&mut self, first: Option<MessageId>, conn: &str, line: u64) {
        if !self.links.contains_key(conn) {
            let detail = "this is its first line".to_owned();
            self.flaw(Flaw::NotOpened, detail, Some(conn), line);
            self.open(&implied(conn, first));
        }
    }

    fn flaw(&mut self, flaw: Flaw, detail: String, conn: Option<&str>, line: u64) {
        let conn = conn.map(str::to_owned);
        self.add(Finding { rule: Fault::Recording(flaw), detail, conn, line, frame: None });
    }

    fn frame(&mut self, line: u64, frame: &Frame) {
        let is_whole = what_of(frame) == "frame";
        self.summary.frames += u64::from(is_whole);
        let number = is_whole.then_some(self.summary.frames);
        let bytes = frame.hex.as_deref().unwrap_or_default();
        let id = Wire::parse(bytes, Limits::default()).ok().map(|(wire, _)| wire.id);
        self.open_unless_known(id, &frame.conn, line);
        let (Some(machine), Some(link)) = (&mut self.machine, self.links.get_mut(&frame.conn)) else {
            return;
        };
        if frame.dir != TestPipe::name(Direction::FromClient) {
            link.pending = None;
            return;
        }
        let before = std::mem::replace(&mut link.pending, id);
        let output = machine.handle_bytes(&mut link.connection, bytes);
        if let (Some(before), Some(id)) = (before, id) {
            let detail = format!("{id} was sent before the reply to {before}");
            self.add(Finding {
                rule: Rule::Overlap.into(),
                detail,
                conn: Some(frame.conn.clone()),
                line,
                frame: number,
            });
        }
        self.found(&output, line, number);
    }

    fn close(&mut self, line: u64, close: &Close) {
        self.open_unless_known(None, &close.conn, line);
        let (Some(machine), Some(link)) = (&mut self.machine, self.links.get_mut(&close.conn)) else {
            return;
        };
        link.is_open = false;
        let output = machine.handle_close(&mut link.connection);
        let is_told = output.violations().next().is_some();
        self.found(&output, line, None);
        // Older recordings have the number of such bytes, and not the bytes.
        let leftover = close.more.get("leftover").and_then(Value::as_u64).unwrap_or(0);
        let ours = close.side.as_deref() != Some(TestPipe::name(Direction::FromServer));
        if leftover > 0 && ours && !is_told {
            let detail = format!("{leftover} bytes of a frame");
            let conn = Some(close.conn.clone());
            self.add(Finding { rule: Rule::CutFrame.into(), detail, conn, line, frame: None });
        }
    }

    fn found(&mut self, output: &Output, line: u64, frame: Option<u64>) {
        let violations: Vec<_> = output.violations().cloned().collect();
        for violation in violations {
            let conn = violation.connection.and_then(|id| self.name(id));
            let (rule, detail) = (violation.rule.into(), violation.detail);
            self.add(Finding { rule, detail, conn, line, frame });
        }
    }

    fn name(&self, ConnectionId(number): ConnectionId) -> Option<String> {
        self.names.get(usize::try_from(number).ok()?).cloned()
    }

    fn add(&mut self, finding: Finding) {
        match finding.rule.severity() {
            Severity::Error => self.summary.errors += 1,
            Severity::Warning => self.summary.warnings += 1,
        }
        if self.findings.len() < MOST_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// The handshake that a frame is.
fn handshake(bytes: &[u8]) -> Option<Handshake> {
    let (wire, _) = Wire::parse(bytes, Limits::default()).ok()?;
    if wire.id != MessageId::HANDSHAKE {
        return None;
    }
    match Message::decode(&wire, Limits::default()) {
        Ok(Message::Handshake(handshake)) => Some(handshake),
        _ => None,
    }
}

/// What the server that was recorded expected: by the command, and by its own words.
fn settings(header: &Header, request: Option<&Handshake>, reply: Option<&Handshake>) -> Settings {
    let mode = match (&header.cmd, request.and_then(Handshake::execution_mode)) {
        (Some(words), _) => mode_of(words.iter().map(String::as_str)),
        (None, Some(ExecutionMode::Help)) => Mode::Help,
        (None, Some(ExecutionMode::Discover)) => Mode::Discover,
        _ => Mode::Run,
    };
    let versions = match reply {
        // The one that was chosen; or none, where the application was rejected.
        Some(reply) => Versions::parse(&reply.chosen_version().map(|it| it.to_string()).unwrap_or_default()),
        None => Versions::all(),
    };
    let control_pipe = reply.and_then(Handshake::server_control_pipe).map(str::to_owned);
    let is_ide = reply.is_some_and(Handshake::is_ide);
    Settings { versions, is_ide, control_pipe, ..Settings::new(mode) }
}
