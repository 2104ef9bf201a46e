//! Parsing of the output of Go tests and packages: markers, locations, messages, panics and the verdict.

use std::time::Duration;

use crate::TestOutcome;
use crate::formats::case::{Detail, seconds};

/// Returns the outcome according to a panic in the output.
pub(super) fn outcome_of(text: &str) -> Option<TestOutcome> {
    match () {
        () if text.contains("panic: test timed out after ") => Some(TestOutcome::Timeout),
        () => has_panic(text).then_some(TestOutcome::Failed),
    }
}

/// Returns whether the output has the report of a panic or a fatal error.
pub(super) fn has_panic(text: &str) -> bool {
    text.lines().any(starts_panic)
}

/// Returns whether the line starts the report of a panic or a fatal error.
fn starts_panic(line: &str) -> bool {
    line.starts_with("panic: ") || line.starts_with("fatal error: ")
}

/// Parses `--- PASS: TestX (0.00s)` at the end of a line: the text before it, the test, the outcome and the duration.
pub(super) fn parse_end_marker(line: &str) -> Option<(&str, &str, TestOutcome, Option<Duration>)> {
    let line = line.trim_end_matches('\n');
    let words = [
        ("--- PASS: ", TestOutcome::Passed),
        ("--- FAIL: ", TestOutcome::Failed),
        ("--- SKIP: ", TestOutcome::Skipped),
    ];
    words.into_iter().find_map(|(word, outcome)| {
        let (before, rest) = line.rsplit_once(word)?;
        let (name, time) = rest.rsplit_once(" (")?;
        let time: f64 = time.strip_suffix("s)")?.parse().ok()?;
        Some((before, name, outcome, seconds(time)))
    })
}

/// Parses `=== RUN   TestX` at the end of a line with other text: the text, and the test.
pub(super) fn parse_start_marker(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end_matches('\n');
    ["=== RUN   ", "=== CONT  ", "=== NAME  "].into_iter().find_map(|word| {
        let (before, name) = line.rsplit_once(word)?;
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        (is_name && !before.trim_start().is_empty()).then_some((before, name))
    })
}

/// Returns the output of a failed package after its verdict `FAIL`, without lines that failed tests explain. `None` if
/// there is no verdict.
pub(super) fn after_verdict(output: &str) -> Option<String> {
    let (before, after) = split_at_line(output, |line| line.trim_end() == "FAIL")?;
    let is_explained = |line: &&str| {
        let line = line.trim_end();
        matches!(line, "" | "FAIL" | "exit status 1")
            || ["FAIL\t", "coverage: "].iter().any(|word| line.starts_with(word))
    };
    let races = before.lines().filter(|line| line.starts_with("testing: race detected outside of test"));
    let more = after.lines().filter(|line| !is_explained(line));
    Some(races.chain(more).collect::<Vec<_>>().join("\n"))
}

/// Returns whether the line is a marker of go, such as `=== RUN   TestX` or `--- FAIL: TestX (0.00s)`.
fn is_marker(line: &str) -> bool {
    let line = line.trim_start();
    ["=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS", "--- FAIL", "--- SKIP"]
        .iter()
        .any(|marker| line.starts_with(marker))
}

/// Parses the location in `    shop_test.go:12: message`.
pub(super) fn location_of(line: &str) -> Option<(&str, u32)> {
    let (file, rest) = line.trim_start().split_once(':')?;
    let (number, _) = rest.split_once(": ")?;
    // Output without a line end may precede the location.
    let file = file.rsplit(char::is_whitespace).next()?;
    file.strip_suffix(".go").and_then(|_| Some((file, number.parse().ok()?)))
}

/// Returns the text of a line without its location.
fn message_of(line: &str) -> &str {
    let line = line.trim_start();
    match location_of(line) {
        Some(_) => line.splitn(3, ':').nth(2).unwrap_or_default().trim_start(),
        None => line,
    }
}

/// Removes the markers of go.
pub(super) fn without_markers(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !is_marker(line)) {
        output.push_str(line);
        output.push('\n');
    }
    output
}

/// Removes the locations before lines.
pub(super) fn messages(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        all.push_str(message_of(line));
        all.push('\n');
    }
    all.pop();
    all
}

/// Splits the text before the first line that matches.
fn split_at_line(text: &str, is: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if is(line) {
            return text.split_at_checked(at);
        }
        at += line.len();
    }
    None
}

/// Returns the message from the first location on, or from a panic on with the goroutines as the stack, or else the
/// whole text.
pub(super) fn detail(output: &str) -> Detail {
    if let Some((_, panic)) = split_at_line(output, starts_panic) {
        let is_stack = |line: &str| line.starts_with("goroutine ");
        let (message, stack) = split_at_line(panic, is_stack).unwrap_or((panic, ""));
        let message = message.trim_end();
        let message = message.strip_prefix("panic: ").unwrap_or(message).to_owned();
        let stack = stack.strip_suffix('\n').unwrap_or(stack).to_owned();
        return Detail { message, kind: "panic".to_owned(), stack };
    }
    let from = split_at_line(output, |line| location_of(line).is_some()).map_or(output, |(_, from)| from);
    Detail { message: messages(from), ..Detail::default() }
}
