//! Names, durations and output of tests as text that is harmless on a terminal and in the log of a build server.

use std::time::Duration;

use runtap_test_report::{TestResult as Reported, text};

use crate::Clean;

/// The maximum number of characters shown of a name.
pub(super) const MAX_NAME: usize = 300;
/// The maximum number of characters shown of a line of output.
pub const MAX_LINE: usize = 1000;

/// The number of first and last lines that are shown of long output.
const HEAD_LINES: usize = 30;
const TAIL_LINES: usize = 10;

/// Returns the name and the indented output of each stream that is not empty.
pub fn printed<'a>(stdout: &'a str, stderr: &'a str) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let streams = [("standard output", stdout), ("error output", stderr)];
    let non_empty = streams.into_iter().filter(|(_, text)| !text.trim().is_empty());
    non_empty.map(|(name, text)| (name, indented(text)))
}

/// Indents each line by four, sanitizes it, and leaves out the middle of long text.
pub(super) fn indented(text: &str) -> String {
    let line = |line: &str| format!("    {}", cleaned(line.trim_end(), MAX_LINE)).trim_end().to_owned();
    let mut lines = text.trim_end().lines();
    let mut shown: Vec<_> = lines.by_ref().take(HEAD_LINES).map(line).collect();
    // There may be millions of lines between head and tail.
    let mut tail: Vec<_> = lines.by_ref().rev().take(TAIL_LINES).map(line).collect();
    match lines.count() {
        0 => {}
        left_out => shown.push(format!("    … {left_out} lines omitted …")),
    }
    tail.reverse();
    shown.append(&mut tail);
    shown.join("\n")
}

/// Returns the name of a test, preceded by its class if known and not part of the name.
pub(super) fn full_name(test: &Reported) -> String {
    match test.class().filter(|class| !test.name.starts_with(class.as_str())) {
        Some(class) => cleaned(&format!("{class}.{}", test.name), MAX_NAME),
        None => cleaned(&test.name, MAX_NAME),
    }
}

/// Removes text that a terminal or build server would interpret, and shortens the text to `limit` characters.
pub fn cleaned(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text::no_command(&Clean(text).to_string()).into_owned(),
        Some((end, _)) => {
            let (head, rest) = text.split_at(end);
            let head = Clean(head).to_string();
            format!("{}… ({} more characters)", text::no_command(&head), rest.chars().count())
        }
    }
}

/// Formats a duration.
pub(super) fn time(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds @ 1..60 => format!("{seconds}.{:03} s", duration.subsec_millis()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
