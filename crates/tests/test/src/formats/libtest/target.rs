//! Cargo's messages about targets, and libtest's summary of a binary.

use crate::formats::case::{Case, Detail, Event};

/// The maximum number of lines that explain a failed target, and their maximum length in bytes.
const MAX_LINES: usize = 20;
const MAX_LINE_BYTES: usize = 4 << 10;

/// The targets of one cargo command.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    /// Whether a test of the target failed.
    pub(crate) has_failures: bool,
    /// Whether missing tests of the target were reported.
    pub(crate) has_problem: bool,
    /// The number of targets that cargo reported as failed when they ended. Cargo before 1.64 does not report them.
    named: u64,
    /// The number of targets with failed or missing tests.
    with_failures: u64,
    /// The failed target that is being explained.
    open: Option<Failed>,
}

/// A target that cargo reported as failed.
#[derive(Debug)]
struct Failed {
    name: String,
    text: String,
    lines: usize,
    is_explained: bool,
}

impl Targets {
    /// Handles the start of a target.
    pub(crate) fn begin(&mut self, out: &mut Vec<Event>) {
        self.report(out);
        self.count();
    }

    fn count(&mut self) {
        self.with_failures += u64::from(self.has_failures || self.has_problem);
        (self.has_failures, self.has_problem) = (false, false);
    }

    /// Handles a line between two binaries. Returns whether it is about a target.
    pub(crate) fn line(&mut self, line: &str, suite: &str, out: &mut Vec<Event>) -> bool {
        let words = ["error: test failed, ", "error: doctest failed, ", "error: bench failed, "];
        if words.iter().any(|word| line.starts_with(word)) {
            self.report(out);
            self.named += 1;
            let rerun = line.rsplit("to rerun pass ").next().unwrap_or_default();
            let name = if suite.is_empty() { rerun.trim_matches(['`', '\'']) } else { suite };
            let is_explained = self.has_failures || self.has_problem;
            let text = crate::formats::case::shortened(line, MAX_LINE_BYTES);
            self.open = Some(Failed { name: name.to_owned(), text, lines: 0, is_explained });
            return true;
        }
        if let Some(count) = failed_targets(line) {
            self.report(out);
            self.count();
            let known = self.named.max(self.with_failures);
            if count > known {
                let text =
                    format!("cargo reports {count} failed targets, but only {known} of them are known");
                out.push(Event::Unreadable(text));
            }
            return true;
        }
        let Some(open) = &mut self.open else { return false };
        open.lines += 1;
        if open.lines > MAX_LINES {
            return false;
        }
        // A libtest binary with failed tests exits with 101, which cargo does not print.
        open.is_explained &=
            self.has_problem || !line.trim_start().starts_with("process didn't exit successfully");
        open.text.push('\n');
        open.text.push_str(&crate::formats::case::shortened(line, MAX_LINE_BYTES));
        false
    }

    /// Reports the failed target, unless failed tests explain it.
    pub(crate) fn report(&mut self, out: &mut Vec<Event>) {
        if let Some(Failed { name, text, is_explained: false, .. }) = self.open.take() {
            let detail = Detail { message: text.trim_end().to_owned(), ..Detail::default() };
            out.push(Event::Ended(Box::new(Case::group(&name, detail))));
        }
    }
}

/// Parses `error: 2 targets failed:`.
fn failed_targets(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix("error: ")?.split_once(' ')?;
    let is_list = ["target failed:", "targets failed:", "target(s) failed:"].contains(&rest.trim_end());
    count.parse().ok().filter(|_| is_list)
}

/// The summary of a binary: `test result: FAILED. 1 passed; 1 failed; …`.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) is_failed: bool,
    pub(crate) total: u64,
    pub(crate) failed: u64,
}

impl Summary {
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (verdict, counts) = line.strip_prefix("test result: ")?.split_once('.')?;
        let mut summary = Self { is_failed: verdict == "FAILED", ..Self::default() };
        for count in counts.split(';') {
            let Some((number, word)) = count.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match word {
                "failed" => summary.failed = number,
                "passed" | "ignored" | "measured" => {}
                _ => continue,
            }
            summary.total = summary.total.saturating_add(number);
        }
        Some(summary)
    }

    /// Returns how the summary differs from the lines of tests, or `None` if they match.
    pub(crate) fn problem(&self, ended: u64, failed: u64) -> Option<String> {
        if self.total > ended {
            return Some(format!("reported {} tests, but only {ended} of them have a line", self.total));
        }
        let least = self.failed.max(u64::from(self.is_failed));
        (least > failed)
            .then(|| format!("reported {least} failed tests, but only {failed} of them have a line"))
    }
}

/// Returns the name of the binary that follows, if this is cargo's line about it.
pub(crate) fn heading(line: &str) -> Option<String> {
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
