//! What test commands print, read as results, without I/O: bytes in with [`Parser::feed`], [`Event`]s out.
//!
//! | format | of | when a result is known |
//! |---|---|---|
//! | [`Libtest`](Format::Libtest) | `cargo test` | a pass at its line; a failure when its output follows, at the end of its binary |
//! | [`LibtestJson`](Format::LibtestJson) | `cargo test -- -Z unstable-options --format json` | at its line |
//! | [`Nextest`](Format::Nextest) | `cargo nextest run --message-format libtest-json-plus` | at its line |
//! | [`GoJson`](Format::GoJson) | `go test -json` | at its line |
//! | [`Tap`](Format::Tap) | TAP 13 and 14, such as `node --test --test-reporter=tap` | when the next line is none of its diagnostics |
//! | [`Junit`](Format::Junit) | JUnit XML, such as `pytest --junitxml` | at the end |
//!
//! What is not of the format is passed over: compilers and tests print where they like. What is cut, or promised and not
//! there, is a [`Problem`](Event::Problem): a command that dies in the middle must not look as if it had passed.
//!
//! What is kept has limits, whatever a command prints: names ([`LONGEST_NAME`], [`LONGEST_SUITE`]), the output of tests that have
//! not ended, what is read of diagnostics, and the files of a test. Text beyond a limit is replaced by a mark.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::disallowed_methods)]
#![warn(clippy::cast_possible_truncation)]

mod case;
mod go;
mod junit;
mod libtest;
mod libtest_json;
mod lines;
mod panicked;
mod printed;
mod tap;
mod yaml;

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

pub use case::{Case, Detail, Event, LONGEST_NAME, LONGEST_SUITE, Outcome};

use lines::Lines;

/// What a command prints.
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
    /// A document of JUnit's form.
    Junit,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Libtest, Self::LibtestJson, Self::Nextest, Self::GoJson, Self::Tap, Self::Junit];

    /// Its name on a command line.
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

/// Reads the lines of one format.
trait Read: fmt::Debug + Send {
    /// Gives whether the line is one of the format, and not just text.
    fn line(&mut self, line: &str, out: &mut Vec<Event>) -> bool;

    fn finish(&mut self, out: &mut Vec<Event>);
}

#[derive(Debug)]
enum Input {
    Lines {
        lines: Lines,
        read: Box<dyn Read>,
        seen: Seen,
    },
    /// A document, and whether it has more than is read.
    Document(Vec<u8>, bool),
}

/// What the lines so far were.
#[derive(Debug, Default)]
struct Seen {
    text: bool,
    format: bool,
}

impl Seen {
    fn line(&mut self, line: &str, is_of_format: bool) {
        self.text |= !line.trim().is_empty();
        self.format |= is_of_format;
    }
}

/// Reads what one command prints.
#[derive(Debug)]
pub struct Parser {
    input: Input,
    seen: Uids,
}

/// The uids so far, by their hashes: a test takes as much memory here, however long its name is. The keys of the hashes are
/// random, so no names can be made that have the same one.
#[derive(Debug, Default)]
struct Uids {
    hashes: RandomState,
    /// The last number that each uid has got: one that comes again gets `#2`.
    numbers: HashMap<u64, u32>,
}

/// The uid that a test would have if no other one had its name: `C.m` of `C.m#2`. Numbers of Go have a zero (`#01`) and stay. A
/// test that has such a name itself is taken for another `C.m`.
pub fn without_number(uid: &str) -> &str {
    let is_number =
        |text: &str| !text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match uid.rsplit_once('#') {
        Some((name, number)) if is_number(number) => name,
        _ => uid,
    }
}

impl Uids {
    /// No uid ends or is listed twice: servers take a second one for a retry of the first. No problem quotes a text of any size.
    fn finish(&mut self, event: &mut Event) {
        let case = match event {
            Event::Ended(case) | Event::Listed(case) => case,
            Event::Problem(text) | Event::Unreadable(text) => {
                return *text = case::shortened(text, LONGEST_NAME);
            }
            Event::Begun { .. } => return,
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

/// The last events of a [`Parser`]. Those of a document are read one after another, so that they are never all there at once.
#[derive(Debug)]
pub struct Rest {
    events: std::vec::IntoIter<Event>,
    document: Option<junit::Document>,
    seen: Uids,
}

impl Iterator for Rest {
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
    /// Nothing was printed yet.
    pub fn new(format: Format) -> Self {
        let lines = |read: Box<dyn Read>| {
            let (lines, seen) = (Lines::default(), Seen::default());
            Input::Lines { lines, read, seen }
        };
        let input = match format {
            Format::Libtest => lines(Box::<libtest::Text>::default()),
            Format::LibtestJson | Format::Nextest => lines(Box::<libtest_json::Json>::default()),
            Format::GoJson => lines(Box::<go::Go>::default()),
            Format::Tap => lines(Box::<tap::Tap>::default()),
            Format::Junit => Input::Document(Vec::new(), false),
        };
        Self { input, seen: Uids::default() }
    }

    /// Takes what was printed, in pieces of any size.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut out = Vec::new();
        match &mut self.input {
            Input::Lines { lines, read, seen } => {
                lines.feed(bytes, |line| seen.line(line, read.line(line, &mut out)));
            }
            Input::Document(document, is_cut) => {
                let room = junit::LARGEST.saturating_sub(document.len());
                *is_cut |= bytes.len() > room;
                document.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            }
        }
        for event in &mut out {
            self.seen.finish(event);
        }
        out
    }

    /// Whether there are lines with text, and none of them is of the format: the command prints something else than is
    /// thought, or has not come so far. Not known of documents.
    pub fn knows_nothing(&self) -> bool {
        match &self.input {
            Input::Lines { seen, .. } => seen.text && !seen.format,
            Input::Document(..) => false,
        }
    }

    /// Nothing more is printed.
    pub fn finish(self) -> Rest {
        let mut out = Vec::new();
        let mut document = None;
        match self.input {
            Input::Lines { mut lines, mut read, .. } => {
                lines.finish(|line| {
                    read.line(line, &mut out);
                });
                if lines.cut() > 0 {
                    let text = format!("{} lines were too long and were cut", lines.cut());
                    out.push(Event::Problem(text));
                }
                read.finish(&mut out);
            }
            Input::Document(_, true) => {
                let most = junit::LARGEST >> 20;
                out.push(Event::Unreadable(format!(
                    "the JUnit document exceeds {most} MiB, and is not read"
                )));
            }
            Input::Document(bytes, false) => document = Some(junit::Document::new(bytes)),
        }
        Rest { events: out.into_iter(), document, seen: self.seen }
    }
}
