//! Checks of a recording against the rules of the protocol, with the state machine that `runtap test` uses as a server, and
//! against the rules of recordings.

use std::collections::BTreeMap;

use runtap_model::order;
use runtap_mtp_proto::server::{Application, Connection, ConnectionId, Mode, Output, Settings};
use runtap_mtp_proto::{
    ExecutionMode, Frame as Wire, Handshake, Limits, Message, MessageId, Rule, Severity, Version, Versions,
};
use runtap_transcript::{Close, Direction, Entry, Frame, Header, Located, Open, Protocol as _};
use serde_json::Value;

use super::fault::{Fault, Flaw};
use super::protocol::{TestPipe, kind_of, missing_open, mode_of, pipe_of};

/// The maximum number of findings that are kept; further ones are only counted. A broken recording may have one per frame.
const MAX_FINDINGS: usize = 10_000;
/// The maximum number of lines that wait for the server's reply to the handshake.
const MAX_WAITING_LINES: usize = 1_000;
/// The maximum size of these lines in bytes; in memory they take several times as much.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// A broken rule and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Fault,
    /// The details of the violation.
    pub detail: String,
    /// The connection; `None` if the finding concerns the application as a whole.
    pub conn: Option<String>,
    /// The line of the recording.
    pub line: u64,
    /// The number of the frame, from 1, over all connections; `None` if the line is not a frame.
    pub frame: Option<u64>,
}

/// The totals of a checked recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of connections.
    pub connections: u64,
    /// The number of complete frames of both directions.
    pub frames: u64,
    /// The number of findings that are errors.
    pub errors: u64,
    /// The number of findings that are warnings.
    pub warnings: u64,
    /// The version that the server chose; `None` if it chose none.
    pub version: Option<Version>,
    /// Whether the recording has its last line. Without it, the application's end is unknown.
    pub has_end: bool,
}

struct LintedConnection {
    connection: Connection,
    /// The request that waits for a reply.
    pending: Option<MessageId>,
    is_open: bool,
}

/// Checks recordings line by line.
#[derive(Default)]
pub struct Linter {
    /// Lines before the server's first message, which determines the settings.
    waiting: Vec<Located>,
    /// The size of these lines in bytes.
    waiting_bytes: usize,
    header: Option<Header>,
    machine: Option<Application>,
    links: BTreeMap<String, LintedConnection>,
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
    /// Creates a linter.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next line.
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
        let is_full = self.waiting.len() >= MAX_WAITING_LINES || self.waiting_bytes >= MAX_WAITING_BYTES;
        if answered || is_full {
            self.begin();
        }
    }

    /// Ends the recording. Returns the summary and the findings in order, up to a maximum number.
    pub fn finish(mut self) -> (Summary, Vec<Finding>) {
        self.begin();
        // Headers are checked before waiting lines.
        order::sort_by_key(&mut self.findings, |finding| finding.line);
        (self.summary, self.findings)
    }

    /// Determines the server's settings, and then checks the waiting lines.
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
        let handshake_from = |from: Direction| {
            frames()
                .filter(move |frame| frame.dir == TestPipe::name(from))
                .find_map(|frame| handshake(frame.hex.as_deref()?))
        };
        let (request, reply) = (handshake_from(Direction::FromClient), handshake_from(Direction::FromServer));
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
                    self.add_violations(&output, line, None);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, open: &Open) {
        let Some(machine) = &mut self.machine else { return };
        let connection = machine.connect(pipe_of(open));
        self.names.push(open.conn.clone());
        self.links.insert(open.conn.clone(), LintedConnection { connection, pending: None, is_open: true });
    }

    /// Opens a connection that has no `open` line, so that its frames are checked too.
    fn open_unless_known(&mut self, first: Option<MessageId>, conn: &str, line: u64) {
        if !self.links.contains_key(conn) {
            let detail = "this is its first line".to_owned();
            self.flaw(Flaw::NotOpened, detail, Some(conn), line);
            self.open(&missing_open(conn, first));
        }
    }

    fn flaw(&mut self, flaw: Flaw, detail: String, conn: Option<&str>, line: u64) {
        let conn = conn.map(str::to_owned);
        self.add(Finding { rule: Fault::Recording(flaw), detail, conn, line, frame: None });
    }

    fn frame(&mut self, line: u64, frame: &Frame) {
        let is_complete = kind_of(frame) == "frame";
        self.summary.frames += u64::from(is_complete);
        let number = is_complete.then_some(self.summary.frames);
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
        self.add_violations(&output, line, number);
    }

    fn close(&mut self, line: u64, close: &Close) {
        self.open_unless_known(None, &close.conn, line);
        let (Some(machine), Some(link)) = (&mut self.machine, self.links.get_mut(&close.conn)) else {
            return;
        };
        link.is_open = false;
        let output = machine.handle_close(&mut link.connection);
        let is_reported = output.violations().next().is_some();
        self.add_violations(&output, line, None);
        // Older recordings have only the number of these bytes.
        let leftover = close.more.get("leftover").and_then(Value::as_u64).unwrap_or(0);
        let is_from_application = close.side.as_deref() != Some(TestPipe::name(Direction::FromServer));
        if leftover > 0 && is_from_application && !is_reported {
            let detail = format!("{leftover} bytes of a frame");
            let conn = Some(close.conn.clone());
            self.add(Finding { rule: Rule::CutFrame.into(), detail, conn, line, frame: None });
        }
    }

    fn add_violations(&mut self, output: &Output, line: u64, frame: Option<u64>) {
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
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// Returns the handshake in a frame; `None` if the frame is another message.
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

/// Returns the settings of the recorded server, from the command and the handshake.
fn settings(header: &Header, request: Option<&Handshake>, reply: Option<&Handshake>) -> Settings {
    let mode = match (&header.cmd, request.and_then(Handshake::execution_mode)) {
        (Some(words), _) => mode_of(words.iter().map(String::as_str)),
        (None, Some(ExecutionMode::Help)) => Mode::Help,
        (None, Some(ExecutionMode::Discover)) => Mode::Discover,
        _ => Mode::Run,
    };
    let versions = match reply {
        // The chosen version; no version if the application was rejected.
        Some(reply) => Versions::parse(&reply.chosen_version().map(|it| it.to_string()).unwrap_or_default()),
        None => Versions::all(),
    };
    let control_pipe = reply.and_then(Handshake::server_control_pipe).map(str::to_owned);
    let is_ide = reply.is_some_and(Handshake::is_ide);
    Settings { versions, is_ide, control_pipe, ..Settings::new(mode) }
}
