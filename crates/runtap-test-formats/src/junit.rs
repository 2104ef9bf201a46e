//! Documents of JUnit's form, as Surefire, pytest, gotestsum, nextest and many others write them: `testsuite` and `testcase`
//! in any nesting, with `failure`, `error`, `skipped`, `system-out`, `system-err`. A line `[[ATTACHMENT|PATH]]` of the last two
//! names a file that the test has left (Jenkins, GitLab; runtap's own reports), and is no output.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event as Xml};

use crate::case::{Case, Detail, Event, Outcome, seconds};

/// What a document may have, and an attribute of it. A document is read as a whole, and there are several copies of an
/// attribute, as in the id of a test.
pub(crate) const LARGEST: usize = 256 << 20;
const LONGEST: usize = 1 << 20;

/// Reads a whole document. What comes before something that is no XML is kept.
pub(crate) fn read(document: &[u8], out: &mut Vec<Event>) {
    let text = String::from_utf8_lossy(document);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut reader = Reader::from_str(text);
    let mut state = State::default();
    loop {
        let event = match reader.read_event() {
            Ok(Xml::Eof) => break,
            Ok(event) => event,
            Err(error) => {
                let at = reader.error_position();
                return out.push(Event::Problem(format!("no XML at byte {at}: {error}")));
            }
        };
        match event {
            Xml::Start(tag) => state.open(&tag),
            Xml::Empty(tag) => {
                state.open(&tag);
                state.close(tag.name().as_ref(), out);
            }
            Xml::End(tag) => state.close(tag.name().as_ref(), out),
            Xml::Text(text) => state.text(&String::from_utf8_lossy(&text)),
            Xml::CData(text) => state.text(&String::from_utf8_lossy(&text)),
            Xml::GeneralRef(name) => {
                let name = String::from_utf8_lossy(&name);
                let name = format!("&{name};");
                state.text(&unescape(&name).unwrap_or_default());
            }
            _ => {}
        }
    }
    if !state.has_root {
        out.push(Event::Problem("there is no JUnit document".to_owned()));
    } else if state.depth > 0 {
        out.push(Event::Problem("the JUnit document has no end".to_owned()));
    }
    if state.cut > 0 {
        let attributes = if state.cut == 1 { "1 attribute" } else { &format!("{} attributes", state.cut) };
        out.push(Event::Unreadable(format!(
            "{attributes} of the JUnit document exceeded {LONGEST} bytes, and were truncated"
        )));
    }
}

/// The output without the lines that name files.
fn without_attachments<'a>(text: &'a str, artifacts: &mut Vec<String>) -> Cow<'a, str> {
    let path =
        |line: &'a str| line.trim().strip_prefix("[[ATTACHMENT|").and_then(|rest| rest.strip_suffix("]]"));
    if !text.contains("[[ATTACHMENT|") {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match path(line).filter(|path| !path.is_empty()) {
            Some(path) if artifacts.iter().any(|known| known == path) => {}
            Some(path) => artifacts.push(path.to_owned()),
            None => output.push_str(line),
        }
    }
    Cow::Owned(output)
}

/// `test_shop.py:11: AssertionError`, the last line of pytest.
fn place(line: &str) -> Option<(&str, u32, &str)> {
    let (rest, kind) = line.rsplit_once(": ")?;
    let (file, number) = rest.rsplit_once(':')?;
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_word(file) && is_word(kind)).then_some((file, number.parse().ok()?, kind))
}

#[derive(Debug, Default)]
struct State {
    has_root: bool,
    depth: u64,
    suites: Vec<String>,
    case: Option<Case>,
    /// What the text is of.
    text: String,
    /// How many attributes were too long.
    cut: u64,
}

/// The value of an attribute; counts it if it is too long.
fn attribute(tag: &BytesStart<'_>, name: &str, cut: &mut u64) -> Option<String> {
    // A document may have any number of attributes: comparing each with all others would take too long.
    let mut attributes = tag.attributes();
    let mut attributes = attributes.with_checks(false).flatten();
    let found = attributes.find(|attribute| attribute.key.as_ref() == name.as_bytes())?;
    let value = found.value.get(..LONGEST).unwrap_or(&found.value);
    *cut += u64::from(value.len() < found.value.len());
    let raw = String::from_utf8_lossy(value).into_owned();
    Some(unescape(&raw).map(Cow::into_owned).unwrap_or(raw))
}

impl State {
    fn open(&mut self, tag: &BytesStart<'_>) {
        self.depth = self.depth.saturating_add(1);
        self.text.clear();
        let cut = &mut self.cut;
        let mut text = |name| attribute(tag, name, cut).filter(|text| !text.is_empty());
        match tag.name().as_ref() {
            b"testsuites" => self.has_root = true,
            b"testsuite" => {
                self.has_root = true;
                self.suites.push(text("name").unwrap_or_default());
            }
            b"testcase" => {
                let suite = text("classname").or_else(|| self.suites.last().cloned()).unwrap_or_default();
                let name = text("name").unwrap_or_default();
                let mut case = Case::new(&suite, ".", &name, Outcome::Passed);
                let time = text("time").and_then(|time| time.replace(',', "").parse().ok());
                case.duration = time.and_then(seconds);
                let line = text("line").and_then(|line| line.parse().ok());
                case.place = text("file").zip(line);
                self.case = Some(case);
            }
            name @ (b"failure" | b"error") => {
                if let Some(case) = &mut self.case {
                    // The first one counts: some writers have more of a test.
                    if case.detail.is_none() {
                        case.outcome = if name == b"failure" { Outcome::Failed } else { Outcome::Error };
                        let [message, kind] = ["message", "type"].map(|name| text(name).unwrap_or_default());
                        case.detail = Some(Detail { message, kind, stack: String::new() });
                    }
                }
            }
            b"skipped" => {
                if let Some(case) = &mut self.case {
                    case.outcome = Outcome::Skipped;
                    case.reason = text("message").unwrap_or_default();
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn close(&mut self, name: &[u8], out: &mut Vec<Event>) {
        self.depth = self.depth.saturating_sub(1);
        let text = std::mem::take(&mut self.text);
        match (name, &mut self.case) {
            (b"testsuite", _) => drop(self.suites.pop()),
            (b"testcase", _) => out.extend(self.case.take().map(|case| Event::Ended(Box::new(case)))),
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
            }
            (b"skipped", Some(case)) if case.reason.is_empty() => {
                text.trim().clone_into(&mut case.reason);
            }
            (b"system-out", Some(case)) => {
                case.stdout.push_str(&without_attachments(&text, &mut case.artifacts));
            }
            (b"system-err", Some(case)) => {
                case.stderr.push_str(&without_attachments(&text, &mut case.artifacts));
            }
            _ => {}
        }
    }
}
