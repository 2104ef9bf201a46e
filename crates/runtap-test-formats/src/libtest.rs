//! The text of libtest, of any number of binaries after one another, with cargo's lines between them:
//!
//! ```text
//!      Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)
//! running 2 tests
//! test a ... ok
//! test b ... FAILED
//! failures:
//! ---- b stdout ----
//! …
//! failures:
//!     b
//! test result: FAILED. …
//! ```
//!
//! Cargo prints its lines to standard error: the caller has to have both in one stream, or tests of different binaries look
//! the same. Colours are passed over. What libtest-mimic prints in the same form is read too: it pads names, and its blocks
//! are headed `---- NAME ----`.
//!
//! `--quiet` prints a letter for each test and no names: that can't be read, and is said.
//!
//! A test may print lines of this form itself. Within the output of failed tests, `failures:` and `test result: ` count only
//! if what follows, or has come before, is what libtest prints there.

use std::borrow::Cow;
use std::mem;

use crate::case::{Case, Event, Outcome};
use crate::{Read, panicked};

#[derive(Debug, Default)]
pub(crate) struct Text {
    suite: String,
    /// How many tests the binary has promised; none between binaries.
    expected: Option<u64>,
    ended: u64,
    /// Failures whose output is to follow.
    failed: Vec<Case>,
    /// `test NAME ... ` without a result: the test prints, or runs alone.
    open: Option<String>,
    /// Whose output is read, and where it is within `failed`.
    block: Option<usize>,
    in_failures: bool,
    /// There was a line of letters, as `--quiet` prints it.
    is_terse: bool,
    /// What follows a `failures:` within them: the list of names, unless a line does not fit.
    names: Option<Vec<String>>,
}

impl Text {
    fn name(&self, name: &str, outcome: Outcome) -> Case {
        let mut name = name.trim_end();
        // Lists do not have them.
        for suffix in [" - should panic", " - compile fail", " - compile"] {
            name = name.strip_suffix(suffix).unwrap_or(name);
        }
        Case::new(&self.suite, "::", name, outcome)
    }

    fn result(&mut self, name: &str, result: &str, out: &mut Vec<Event>) -> bool {
        let result = result.trim_end();
        // `ok <0.003s>` with --report-time.
        let (result, time) = match result.split_once(" <") {
            Some((result, time)) => (result, time.strip_suffix("s>").and_then(|time| time.parse().ok())),
            None => (result, None),
        };
        let (word, rest) = result.split_once(',').unwrap_or((result, ""));
        let outcome = match word {
            "ok" => Outcome::Passed,
            "FAILED" | "failed" => Outcome::Failed,
            "ignored" => Outcome::Skipped,
            _ if word.starts_with("bench:") => Outcome::Passed,
            _ if word.starts_with("FAILED (time limit exceeded)") => Outcome::TimedOut,
            _ => return false,
        };
        let mut case = self.name(name, outcome);
        case.duration = time.and_then(crate::case::seconds);
        rest.trim().clone_into(&mut case.reason);
        self.ended += 1;
        if matches!(outcome, Outcome::Failed | Outcome::TimedOut) {
            self.failed.push(case);
        } else {
            out.push(Event::Ended(Box::new(case)));
        }
        true
    }

    /// The binary has ended, or another one begins.
    fn close(&mut self, out: &mut Vec<Event>) {
        for mut case in mem::take(&mut self.failed) {
            // Blank lines are between the blocks, and not what the test has printed.
            case.stdout.truncate(case.stdout.trim_end_matches('\n').len());
            if !case.stdout.is_empty() {
                case.stdout.push('\n');
            }
            let (detail, place) = panicked::read(&case.stdout);
            case.place = place;
            case.detail = Some(detail);
            out.push(Event::Ended(Box::new(case)));
        }
        self.block = None;
        self.in_failures = false;
        self.names = None;
        let open = self.open.take();
        if let Some(expected) = self.expected.take()
            && self.ended < expected
        {
            let suite = if self.suite.is_empty() { "the binary" } else { &self.suite };
            let ended = self.ended;
            out.push(if ended == 0 && self.is_terse {
                Event::Unreadable(format!(
                    "{suite} tells results without names: it is run with -q, --quiet or --format terse, which can't be read"
                ))
            } else {
                let running = open.map(|name| format!(", while {name} ran")).unwrap_or_default();
                Event::Problem(format!("{suite} ended after {ended} of {expected} tests{running}"))
            });
        }
        self.ended = 0;
        self.is_terse = false;
    }

    /// A line of what failed tests have printed, or of the names behind that. Gives whether the binary has ended.
    fn failures(&mut self, line: &str, raw: &str) -> bool {
        if let Some(names) = &mut self.names {
            let is_name = |name: &str| self.failed.iter().any(|case| case.name == name.trim_end());
            if line.is_empty() || line.strip_prefix("    ").is_some_and(is_name) {
                names.push(raw.to_owned());
                return false;
            }
            if line.starts_with("test result: ") {
                return true;
            }
            // A test has printed it.
            for name in mem::take(names) {
                self.print(&name);
            }
            self.names = None;
        }
        let name = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----"));
        let name =
            name.map(|name| self.name(name.strip_suffix(" stdout").unwrap_or(name), Outcome::Failed).name);
        if let Some(block) = name.and_then(|name| self.failed.iter().position(|case| case.name == name)) {
            self.block = Some(block);
        } else if line == "failures:" {
            self.names = Some(vec![raw.to_owned()]);
        } else {
            self.print(raw);
        }
        false
    }

    /// A line of the test whose output is read.
    fn print(&mut self, line: &str) {
        if let Some(case) = self.block.and_then(|at| self.failed.get_mut(at)) {
            case.stdout.push_str(line);
            case.stdout.push('\n');
        }
    }
}

/// Without the sequences that colour it.
fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\x1b') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut pieces = line.split("\x1b[");
    plain.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| ('@'..='~').contains(&c)).map_or(piece.len(), |at| at + 1);
        plain.push_str(piece.get(end..).unwrap_or_default());
    }
    Cow::Owned(plain)
}

impl Read for Text {
    fn line(&mut self, raw: &str, out: &mut Vec<Event>) -> bool {
        let line = &*plain(raw);
        if let Some(suite) = heading(line) {
            self.close(out);
            self.suite = suite;
            return true;
        }
        if self.in_failures {
            if self.failures(line, raw) {
                self.close(out);
            }
            return true;
        }
        if let Some(count) = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test")) {
            if let Ok(count) = count.0.parse() {
                self.close(out);
                self.expected = Some(count);
            }
            return true;
        }
        if line.starts_with("test result: ") {
            self.close(out);
            return true;
        }
        self.is_terse |= self.expected.is_some() && is_letters(line);
        if line == "failures:" && !self.failed.is_empty() {
            self.in_failures = true;
            return true;
        }
        if self.expected.is_none()
            && let Some(name) = line.strip_suffix(": test").or_else(|| line.strip_suffix(": benchmark"))
        {
            out.push(Event::Listed(Box::new(self.name(name, Outcome::Passed))));
            return true;
        }
        if let Some((name, result)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            self.open = (!self.result(name, result, out)).then(|| name.to_owned());
            return true;
        }
        // The result of a test that has printed something itself ends its last line.
        if let Some(name) = self.open.take() {
            let result = ["ok", "FAILED"].into_iter().find(|result| line == *result);
            if !result.is_some_and(|result| self.result(&name, result, out)) {
                self.open = Some(name);
            }
        }
        false
    }

    fn finish(&mut self, out: &mut Vec<Event>) {
        self.close(out);
    }
}

/// `..F.i`, and `..F.i  5/101` at the end of a full line.
fn is_letters(line: &str) -> bool {
    let (letters, rest) = line.split_once(' ').unwrap_or((line, ""));
    let count = rest.trim();
    !letters.is_empty()
        && letters.bytes().all(|c| b".Fiab".contains(&c))
        && (count.is_empty() || count.bytes().all(|c| c.is_ascii_digit() || c == b'/'))
}

/// The name of the binary whose tests follow, if this is cargo's line.
fn heading(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{} (doc)", name.trim_end()));
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?;
    let (_, path) = path.rsplit_once(" (")?;
    let name = path.rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let (name, hash) = name.rsplit_once('-')?;
    (hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit())).then(|| name.to_owned())
}
