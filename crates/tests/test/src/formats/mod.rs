//! Parsing of the output of test commands, without I/O: [`Parser::feed`] takes bytes and returns [`Event`]s.
//!
//! | format | used by | when a result is reported |
//! |---|---|---|
//! | [`Libtest`](Format::Libtest) | `cargo test` | a passed test at its line; a failed test at the end of its binary, with its output |
//! | [`LibtestJson`](Format::LibtestJson) | `cargo test -- -Z unstable-options --format json` | at its line |
//! | [`Nextest`](Format::Nextest) | `cargo nextest run --message-format libtest-json-plus` | at its line |
//! | [`GoJson`](Format::GoJson) | `go test -json` | at its line |
//! | [`Tap`](Format::Tap) | TAP 13 and 14, such as `node --test --test-reporter=tap` | after its diagnostics |
//! | [`Junit`](Format::Junit) | JUnit XML, such as `pytest --junitxml` | at the end |
//!
//! Other text is ignored, because compilers and tests may print anything. Truncated output, and missing results that
//! were announced, are a [`Problem`](Event::Problem): a command that crashes must not appear to have passed.
//!
//! Memory is limited, whatever a command prints: names ([`MAX_NAME_BYTES`], [`MAX_SUITE_BYTES`]), the output of running
//! tests, diagnostics, and the files of a test. Text beyond a limit is replaced by a mark.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod case;
mod go;
mod junit;
mod libtest;
mod libtest_json;
mod lines;
mod panicked;
mod tap;
mod test_output;
mod yaml;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

pub use case::{Case, Detail, Event, MAX_NAME_BYTES, MAX_SUITE_BYTES};

use lines::Lines;

/// The output format of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// The text of libtest.
    Libtest,
    /// The JSON of libtest.
    LibtestJson,
    /// The JSON of nextest in libtest's form.
    Nextest,
    /// The JSON of `go test`.
    GoJson,
    /// Test Anything Protocol.
    Tap,
    /// A JUnit document.
    Junit,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] =
        [Self::Libtest, Self::LibtestJson, Self::Nextest, Self::GoJson, Self::Tap, Self::Junit];

    /// Returns the name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Libtest => "libtest",
            Self::LibtestJson => "libtest-json",
            Self::Nextest => "nextest",
            Self::GoJson => "go-json",
            Self::Tap => "tap",
            Self::Junit => "junit",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A parser of lines of one format.
trait LineParser: fmt::Debug + Send {
    /// Handles a line. Returns whether the line belongs to the format.
    fn line(&mut self, line: &str, out: &mut Vec<Event>) -> bool;

    fn finish(&mut self, out: &mut Vec<Event>);
}

#[derive(Debug)]
enum Input {
    Lines {
        lines: Lines,
        read: Box<dyn LineParser>,
        seen: SeenLines,
    },
    /// A document, and whether it exceeds the maximum size.
    Document(Vec<u8>, bool),
}

/// The kinds of lines so far.
#[derive(Debug, Default)]
struct SeenLines {
    text: bool,
    format: bool,
}

impl SeenLines {
    fn line(&mut self, line: &str, is_of_format: bool) {
        self.text |= !line.trim().is_empty();
        self.format |= is_of_format;
    }
}

/// A parser of the output of one command.
#[derive(Debug)]
pub struct Parser {
    input: Input,
    seen: Uids,
}

/// The uids so far, as hashes, so that memory does not depend on the length of names. The hashes have random keys, so
/// that collisions cannot be constructed.
#[derive(Debug, Default)]
struct Uids {
    hashes: RandomState,
    /// The last number of each uid: a duplicate gets `#2`.
    numbers: HashMap<u64, u32>,
}

/// Returns the uid without the number that distinguishes duplicates: `C.m` for `C.m#2`. Numbers of Go start with a zero
/// (`#01`) and are kept. A test whose own name has this form is treated as a duplicate of `C.m`.
pub fn without_number(uid: &str) -> &str {
    let is_number =
        |text: &str| !text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match uid.rsplit_once('#') {
        Some((name, number)) if is_number(number) => name,
        _ => uid,
    }
}

impl Uids {
    /// Makes uids unique, because servers treat a duplicate as a retry. Limits the length of problems.
    fn finish(&mut self, event: &mut Event) {
        let case = match event {
            Event::Ended(case) | Event::Listed(case) => case,
            Event::Problem(text) | Event::Unreadable(text) => {
                return *text = case::shortened(text, MAX_NAME_BYTES);
            }
            Event::Started { .. } => return,
        };
        let first = self.hashes.hash_one(&case.uid);
        let mut count = self.numbers.get(&first).copied().unwrap_or(0);
        let (mut uid, mut hash) = (None, first);
        while self.numbers.contains_key(&hash) {
            count = count.saturating_add(1);
            let numbered = format!("{}#{count}", case.uid);
            hash = self.hashes.hash_one(&numbered);
            uid = Some(numbered);
        }
        if let Some(uid) = uid {
            self.numbers.insert(first, count);
            case.uid = uid;
        }
        self.numbers.insert(hash, 1);
    }
}

/// The last events of a [`Parser`]. The tests of a document are parsed one by one, so that they need not be in memory
/// together.
#[derive(Debug)]
pub struct FinalEvents {
    events: std::vec::IntoIter<Event>,
    document: Option<junit::Document>,
    seen: Uids,
}

impl Iterator for FinalEvents {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let next = self.events.next().or_else(|| self.document.as_mut()?.next());
        next.map(|mut event| {
            self.seen.finish(&mut event);
            event
        })
    }
}

impl Parser {
    /// Creates a parser.
    pub fn new(format: Format) -> Self {
        let lines = |read: Box<dyn LineParser>| {
            let (lines, seen) = (Lines::default(), SeenLines::default());
            Input::Lines { lines, read, seen }
        };
        let input = match format {
            Format::Libtest => lines(Box::<libtest::TextParser>::default()),
            Format::LibtestJson | Format::Nextest => lines(Box::<libtest_json::JsonParser>::default()),
            Format::GoJson => lines(Box::<go::Go>::default()),
            Format::Tap => lines(Box::<tap::Tap>::default()),
            Format::Junit => Input::Document(Vec::new(), false),
        };
        Self { input, seen: Uids::default() }
    }

    /// Handles output in chunks of any size.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut out = Vec::new();
        match &mut self.input {
            Input::Lines { lines, read, seen } => {
                lines.feed(bytes, |line| seen.line(line, read.line(line, &mut out)));
            }
            Input::Document(document, is_truncated) => {
                let room = junit::MAX_DOCUMENT_BYTES.saturating_sub(document.len());
                *is_truncated |= bytes.len() > room;
                document.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
        }
        for event in &mut out {
            self.seen.finish(event);
        }
        out
    }

    /// Returns whether there is text, but no line of the format: the command probably uses another format, or failed
    /// early. Always `false` for documents.
    pub fn recognizes_nothing(&self) -> bool {
        match &self.input {
            Input::Lines { seen, .. } => seen.text && !seen.format,
            Input::Document(..) => false,
        }
    }

    /// Handles the end of the output, and returns the remaining events.
    pub fn finish(self) -> FinalEvents {
        let mut out = Vec::new();
        let mut document = None;
        match self.input {
            Input::Lines { mut lines, mut read, .. } => {
                lines.finish(|line| {
                    read.line(line, &mut out);
                });
                if lines.truncated() > 0 {
                    let text = format!("{} lines were too long and were truncated", lines.truncated());
                    out.push(Event::Problem(text));
                }
                read.finish(&mut out);
            }
            Input::Document(_, true) => {
                let most = junit::MAX_DOCUMENT_BYTES >> 20;
                out.push(Event::Unreadable(format!(
                    "the JUnit document exceeds the maximum of {most} MiB, and was not read"
                )));
            }
            Input::Document(bytes, false) => document = Some(junit::Document::new(bytes)),
        }
        FinalEvents { events: out.into_iter(), document, seen: self.seen }
    }
}
