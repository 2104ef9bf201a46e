//! Parsing of JUnit documents, as written by Surefire, pytest, gotestsum, nextest and many others: `testsuite` and
//! `testcase` in any nesting, with `failure`, `error`, `skipped`, `system-out`, `system-err`. A `failure` or `error` of
//! a suite is reported as an error, and a suite with fewer tests or failures than its attributes count is a problem. A
//! test fails even if only an attribute says so. Entities that a document declares are not supported, so such a
//! document is rejected. A line `[[ATTACHMENT|PATH]]` in the output names a file that the test produced (Jenkins,
//! GitLab, and runtap's own reports).

mod counts;
mod encoding;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Cursor;
use std::mem;
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event as Xml};

use self::counts::Counts;
use crate::TestOutcome;
use crate::formats::case::{self, Case, Detail, Event, seconds};

/// The maximum sizes of a document and of an attribute, in bytes. A document is kept in memory, with several copies of
/// attributes such as ids of tests.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 256 << 20;
const MAX_ATTRIBUTE_BYTES: usize = 1 << 20;

/// The maximum number of files of a test.
const MAX_FILES: usize = 1000;

/// Parses a document test by test. Tests before an XML error are kept.
#[derive(Debug)]
pub(crate) struct Document {
    reader: Reader<Cursor<Vec<u8>>>,
    buffer: Vec<u8>,
    state: DocumentState,
    is_over: bool,
    /// The problems of the whole document.
    problems: Vec<Event>,
}

impl Document {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let mut problems = Vec::new();
        let mut bytes = match String::from_utf8(bytes) {
            Ok(text) => text.into_bytes(),
            Err(error) => encoding::decode(error.as_bytes(), &mut problems).into_bytes(),
        };
        let text = str::from_utf8(&bytes).unwrap_or_default();
        let start = text.trim_start_matches('\u{feff}').trim_start();
        bytes.drain(..text.len() - start.len());
        let reader = Reader::from_reader(Cursor::new(bytes));
        Self { reader, buffer: Vec::new(), state: DocumentState::default(), is_over: false, problems }
    }

    fn end(&mut self, error: Option<String>) {
        self.is_over = true;
        let state = &self.state;
        let mut say = |problem| self.problems.push(problem);
        if let Some(error) = error {
            return say(Event::Problem(error));
        }
        if state.truncated > 0 {
            let attributes =
                if state.truncated == 1 { "1 attribute" } else { &format!("{} attributes", state.truncated) };
            say(Event::Unreadable(format!(
                "{attributes} of the JUnit document exceeded {MAX_ATTRIBUTE_BYTES} bytes, and were truncated"
            )));
        }
        if state.files_left_out > 0 {
            say(Event::Unreadable(format!(
                "the JUnit document names more than {MAX_FILES} files of a test; {} were omitted",
                state.files_left_out
            )));
        }
        if state.has_text_behind {
            say(Event::Unreadable("text follows the end of the JUnit document".to_owned()));
        }
        if let Some(name) = &state.foreign_entity {
            say(Event::Unreadable(format!("the JUnit document has the unknown entity {name}")));
        }
        if !state.has_root {
            say(Event::Problem("there is no JUnit document".to_owned()));
        } else if state.depth > 0 {
            say(Event::Problem("the JUnit document has no end".to_owned()));
        } else {
            self.problems.extend(self.state.counts.problem().map(Event::Unreadable));
        }
    }
}

impl Iterator for Document {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while !self.is_over {
            self.buffer.clear();
            let event = match self.reader.read_event_into(&mut self.buffer) {
                Ok(Xml::Eof) => {
                    self.end(None);
                    break;
                }
                Ok(event) => event,
                Err(error) => {
                    let at = self.reader.error_position();
                    self.end(Some(format!("invalid XML at byte {at}: {error}")));
                    break;
                }
            };
            let state = &mut self.state;
            let ended = match event {
                Xml::DocType(text) if declares_entities(&text) => {
                    let why = "the JUnit document declares entities, which are not read";
                    self.problems.push(Event::Unreadable(why.to_owned()));
                    self.is_over = true;
                    break;
                }
                Xml::End(tag) => state.close(tag.name().as_ref()),
                Xml::Empty(tag) => {
                    state.open(&tag);
                    state.close(tag.name().as_ref())
                }
                other => {
                    state.take(&other);
                    None
                }
            };
            if let Some(case) = ended {
                return Some(Event::Ended(case));
            }
        }
        self.problems.pop()
    }
}

fn declares_entities(doctype: &[u8]) -> bool {
    doctype.windows(8).any(|part| part == b"<!ENTITY")
}

/// Returns the outcome in an attribute `status` or `result` of a test; `None` for a pass or an unknown word.
fn outcome_of(word: &str) -> Option<TestOutcome> {
    Some(match word.trim().to_ascii_lowercase().as_str() {
        "fail" | "failed" | "failure" => TestOutcome::Failed,
        "error" | "errored" | "broken" | "crashed" | "aborted" => TestOutcome::Error,
        "timeout" | "timedout" | "timed out" | "timed_out" => TestOutcome::Timeout,
        "skipped" | "notrun" | "disabled" | "suppressed" => TestOutcome::Skipped,
        _ => return None,
    })
}

/// Parses the location in `test_shop.py:11: AssertionError`, the last line of pytest.
fn place(line: &str) -> Option<(&str, u32, &str)> {
    let (rest, kind) = line.rsplit_once(": ")?;
    let (file, number) = rest.rsplit_once(':')?;
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_word(file) && is_word(kind)).then_some((file, number.parse().ok()?, kind))
}

#[derive(Debug, Default)]
struct DocumentState {
    has_root: bool,
    depth: u64,
    suites: Vec<Arc<str>>,
    case: Option<Case>,
    /// A failure outside of tests.
    group: Option<Case>,
    /// A further failure of the test, which is open.
    further: Option<Detail>,
    has_text_behind: bool,
    /// An unknown entity in a document with a DOCTYPE.
    has_doctype: bool,
    foreign_entity: Option<String>,
    counts: Counts,
    /// The files of the test, to name each file once.
    files: HashSet<String>,
    files_left_out: u64,
    /// The text of the open element.
    text: String,
    /// The number of attributes that were truncated.
    truncated: u64,
}

/// Returns the value of an attribute, truncated and counted if it is too long.
fn attribute(tag: &BytesStart<'_>, name: &str, truncated: &mut u64) -> Option<String> {
    // Checking attributes for duplicates would take quadratic time.
    let mut attributes = tag.attributes();
    let mut attributes = attributes.with_checks(false).flatten();
    let found = attributes.find(|attribute| attribute.key.as_ref() == name.as_bytes())?;
    let value = found.value.get(..MAX_ATTRIBUTE_BYTES).unwrap_or(&found.value);
    *truncated += u64::from(value.len() < found.value.len());
    let raw = String::from_utf8_lossy(value).into_owned();
    Some(unescape(&raw).map(Cow::into_owned).unwrap_or(raw))
}

impl DocumentState {
    fn open(&mut self, tag: &BytesStart<'_>) {
        self.depth = self.depth.saturating_add(1);
        self.text.clear();
        let truncated = &mut self.truncated;
        let mut text = |name| attribute(tag, name, truncated).filter(|text| !text.is_empty());
        match tag.name().as_ref() {
            b"testsuites" => {
                self.has_root = true;
                let name = text("name").unwrap_or_default();
                self.counts.open(&name, ["tests", "failures", "errors"].map(&mut text));
            }
            b"testsuite" => {
                self.has_root = true;
                let name = text("name").unwrap_or_default();
                self.counts.open(&name, ["tests", "failures", "errors"].map(&mut text));
                self.suites.push(case::suite(&text("name").unwrap_or_default()));
            }
            b"testcase" => {
                let class = text("classname").map(|class| case::suite(&class));
                let suite = class.or_else(|| self.suites.last().cloned()).unwrap_or_default();
                let name = text("name").unwrap_or_default();
                let [status, result] =
                    ["status", "result"].map(|name| text(name).and_then(|word| outcome_of(&word)));
                let is_failure = |outcome: &TestOutcome| *outcome != TestOutcome::Skipped;
                let failed = status.filter(is_failure).or_else(|| result.filter(is_failure));
                let outcome = failed.or(status).or(result).unwrap_or(TestOutcome::Passed);
                self.counts.test();
                let mut case = Case::new(&suite, ".", &name, outcome);
                let time = text("time").and_then(|time| time.replace(',', "").parse().ok());
                case.duration = time.and_then(seconds);
                let line = text("line").and_then(|line| line.parse().ok());
                case.place = text("file").zip(line);
                self.case = Some(case);
                self.files.clear();
            }
            name @ (b"failure" | b"error") => {
                self.counts.failure();
                if self.case.is_none() {
                    let suite = self.suites.last().map_or("", |suite| &**suite);
                    let suite = if suite.is_empty() { "the suite" } else { suite };
                    let [message, kind] = ["message", "type"].map(|name| text(name).unwrap_or_default());
                    self.group = Some(Case::group(suite, Detail { message, kind, stack: String::new() }));
                } else if let Some(case) = &mut self.case {
                    let [message, kind] = ["message", "type"].map(|name| text(name).unwrap_or_default());
                    let detail = Detail { message, kind, stack: String::new() };
                    // The first failure determines the outcome; further ones are appended.
                    if case.detail.is_none() {
                        case.outcome =
                            if name == b"failure" { TestOutcome::Failed } else { TestOutcome::Error };
                        case.detail = Some(detail);
                    } else {
                        self.further = Some(detail);
                    }
                }
            }
            b"skipped" => {
                // A failed test is not skipped by later elements, for example from its clean-up.
                let is_open =
                    |case: &&mut Case| matches!(case.outcome, TestOutcome::Passed | TestOutcome::Skipped);
                if let Some(case) = self.case.as_mut().filter(is_open) {
                    case.outcome = TestOutcome::Skipped;
                    case.reason = text("message").unwrap_or_default();
                }
            }
            _ => {}
        }
    }

    /// Handles events that do not end an element.
    fn take(&mut self, event: &Xml<'_>) {
        match event {
            Xml::Start(tag) => self.open(tag),
            Xml::Text(text) => self.text(&String::from_utf8_lossy(text)),
            Xml::CData(text) => self.text(&String::from_utf8_lossy(text)),
            Xml::DocType(_) => self.has_doctype = true,
            Xml::GeneralRef(name) => {
                let name = format!("&{};", String::from_utf8_lossy(name));
                match unescape(&name) {
                    Ok(text) => self.text(&text),
                    Err(_) if self.has_doctype => {
                        self.foreign_entity.get_or_insert(name);
                    }
                    Err(_) => {}
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.has_text_behind |= self.has_root && self.depth == 0 && !text.trim().is_empty();
        self.text.push_str(text);
    }

    /// Appends a further failure of the test.
    fn add_further(&mut self, mut further: Detail, text: &str) {
        let Some(detail) = self.case.as_mut().and_then(|case| case.detail.as_mut()) else { return };
        if further.message.is_empty() {
            text.lines().next().unwrap_or(&further.kind).clone_into(&mut further.message);
        }
        for (to, more, joint) in
            [(&mut detail.message, &*further.message, "\n"), (&mut detail.stack, text, "\n\n")]
        {
            if !to.is_empty() && !more.is_empty() {
                to.push_str(joint);
            }
            to.push_str(more);
        }
    }

    /// Removes the lines that name files from the output, and adds the files to the test.
    fn output(&mut self, text: String) -> String {
        let path = |line: &str| -> Option<String> {
            let path = line.trim().strip_prefix("[[ATTACHMENT|")?.strip_suffix("]]")?;
            (!path.is_empty()).then(|| path.to_owned())
        };
        if !text.contains("[[ATTACHMENT|") {
            return text;
        }
        let mut output = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match path(line) {
                Some(path) if self.files.contains(&path) => {}
                Some(_) if self.files.len() >= MAX_FILES => self.files_left_out += 1,
                Some(path) => {
                    self.files.insert(path.clone());
                    self.case.iter_mut().for_each(|case| case.artifacts.push(path.clone()));
                }
                None => output.push_str(line),
            }
        }
        output
    }

    /// Handles the end of an element. Returns the test if it has ended.
    fn close(&mut self, name: &[u8]) -> Option<Box<Case>> {
        self.depth = self.depth.saturating_sub(1);
        let mut text = mem::take(&mut self.text);
        if matches!(name, b"system-out" | b"system-err") && self.case.is_some() {
            text = self.output(text);
        }
        if matches!(name, b"failure" | b"error")
            && let Some(further) = self.further.take()
        {
            self.add_further(further, text.trim_matches(['\n', '\r']).trim_end());
            return None;
        }
        let subject = if self.group.is_some() { &mut self.group } else { &mut self.case };
        match (name, subject) {
            (b"testsuites", _) => self.counts.close(),
            (b"testsuite", _) => {
                self.counts.close();
                self.suites.pop();
            }
            (b"testcase", _) => {
                let mut case = self.case.take()?;
                if case.detail.is_none()
                    && !matches!(case.outcome, TestOutcome::Passed | TestOutcome::Skipped)
                {
                    self.counts.failure();
                    let message = "the document reports that the test failed, but gives no reason".to_owned();
                    case.detail = Some(Detail { message, ..Detail::default() });
                }
                return Some(Box::new(case));
            }
            (b"failure" | b"error", Some(case)) => {
                let text = text.trim_matches(['\n', '\r']).trim_end();
                if let Some(detail) = case.detail.as_mut().filter(|detail| detail.stack.is_empty()) {
                    if detail.message.is_empty() {
                        text.lines().next().unwrap_or_default().clone_into(&mut detail.message);
                    }
                    text.clone_into(&mut detail.stack);
                    if let Some((file, line, kind)) = text.lines().next_back().and_then(place) {
                        case.place.get_or_insert_with(|| (file.to_owned(), line));
                        if detail.kind.is_empty() {
                            kind.clone_into(&mut detail.kind);
                        }
                    }
                }
                return self.group.take().map(Box::new);
            }
            (b"skipped", Some(case)) if case.reason.is_empty() && case.detail.is_none() => {
                text.trim().clone_into(&mut case.reason);
            }
            (b"system-out", Some(case)) => {
                case.stdout.push_str(&text);
            }
            (b"system-err", Some(case)) => {
                case.stderr.push_str(&text);
            }
            _ => {}
        }
        None
    }
}
