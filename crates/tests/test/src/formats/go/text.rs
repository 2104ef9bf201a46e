//! Parsing of the output of Go tests and packages: markers, locations, messages, panics and the verdict.

use std::time::Duration;

use crate::formats::case::{Detail, Outcome, seconds};

/// Returns the outcome according to a panic in the output.
pub(super) fn outcome_of(text: &str) -> Option<Outcome> {
    match () {
        () if text.contains("panic: test timed out after ") => Some(Outcome::TimedOut),
        () => has_panic(text).then_some(Outcome::Failed),
    }
}

/// Returns whether a line starts a panic or a fatal error of the Go runtime.
pub(super) fn has_panic(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "))
}

/// Parses `--- PASS: TestX (0.00s)` at the end of a line: the text before it, the test, the outcome and the duration.
pub(super) fn parse_end_marker(line: &str) -> Option<(&str, &str, Outcome, Option<Duration>)> {
    let line = line.trim_end_matches('\n');
    let markers =
        [("--- PASS: ", Outcome::Passed), ("--- FAIL: ", Outcome::Failed), ("--- SKIP: ", Outcome::Skipped)];
    markers.into_iter().find_map(|(marker, outcome)| {
        let (before, rest) = line.rsplit_once(marker)?;
        let (name, time) = rest.rsplit_once(" (")?;
        let time: f64 = time.strip_suffix("s)")?.parse().ok()?;
        Some((before, name, outcome, seconds(time)))
    })
}

/// Parses `=== RUN   TestX` at the end of a line with other text: the text, and the test.
pub(super) fn parse_start_marker(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_end_matches('\n');
    ["=== RUN   ", "=== CONT  ", "=== NAME  "].into_iter().find_map(|marker| {
        let (before, name) = line.rsplit_once(marker)?;
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        (is_name && !before.trim_start().is_empty()).then_some((before, name))
    })
}

/// Returns the output of a failed package after its verdict `FAIL`, without lines that failed tests explain. `None` if
/// there is no verdict.
pub(super) fn output_after_verdict(output: &str) -> Option<String> {
    let (before, after) = split_at_line(output, |line| line.trim_end() == "FAIL")?;
    let is_explained = |line: &&str| {
        let line = line.trim_end();
        matches!(line, "" | "FAIL" | "exit status 1")
            || ["FAIL\t", "coverage: "].iter().any(|start| line.starts_with(start))
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
pub(super) fn parse_location(line: &str) -> Option<(&str, u32)> {
    let (file, rest) = line.trim_start().split_once(':')?;
    let (number, _) = rest.split_once(": ")?;
    // Output without a line end may precede the location.
    let file = file.rsplit(char::is_whitespace).next()?;
    file.strip_suffix(".go").and_then(|_| Some((file, number.parse().ok()?)))
}

/// Removes the location at the start of a line, and the indentation.
fn without_location(line: &str) -> &str {
    let line = line.trim_start();
    match parse_location(line) {
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

/// Removes the location at the start of each line.
pub(super) fn without_locations(text: &str) -> String {
    let mut all = String::new();
    for line in text.lines() {
        all.push_str(without_location(line));
        all.push('\n');
    }
    all.pop();
    all
}

/// Splits the text before the first line that matches. `None` if no line does.
fn split_at_line(text: &str, matches: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if matches(line) {
            return text.split_at_checked(at);
        }
        at += line.len();
    }
    None
}

/// Returns the details of a failure. The message starts at a panic, with the goroutines as the stack, or else at the first
/// location, or else it is the whole output.
pub(super) fn detail(output: &str) -> Detail {
    let is_panic = |line: &str| line.starts_with("panic: ") || line.starts_with("fatal error: ");
    if let Some((_, panic)) = split_at_line(output, is_panic) {
        let is_stack = |line: &str| line.starts_with("goroutine ");
        let (message, stack) = split_at_line(panic, is_stack).unwrap_or((panic, ""));
        let message = message.trim_end();
        let message = message.strip_prefix("panic: ").unwrap_or(message).to_owned();
        let stack = stack.strip_suffix('\n').unwrap_or(stack).to_owned();
        return Detail { message, kind: "panic".to_owned(), stack };
    }
    let from = split_at_line(output, |line| parse_location(line).is_some()).map_or(output, |(_, from)| from);
    Detail { message: without_locations(from), ..Detail::default() }
}
