//! The output of a test or an application, formatted for text output.

use super::lines::{MAX_LINE, cleaned};
use crate::output::Output;

/// The number of first and last lines that are shown of long output.
const HEAD_LINES: usize = 30;
const TAIL_LINES: usize = 10;

/// Returns the name and the indented output of each stream that is not empty.
pub(super) fn printed<'a>(
    stdout: &'a str,
    stderr: &'a str,
) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let streams = [("standard output", stdout), ("error output", stderr)];
    let non_empty = streams.into_iter().filter(|(_, text)| !text.trim().is_empty());
    non_empty.map(|(name, text)| (name, indented(text)))
}

/// Prints the output on standard error, below an application's error.
pub(super) fn print_output(stdout: &str, stderr: &str, output: Output) {
    for (name, text) in printed(stdout, stderr) {
        output.ask(format_args!("  {name}:"));
        text.lines().for_each(|line| output.ask(line));
    }
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
        left_out => shown.push(format!("    … {left_out} lines left out …")),
    }
    tail.reverse();
    shown.append(&mut tail);
    shown.join("\n")
}
