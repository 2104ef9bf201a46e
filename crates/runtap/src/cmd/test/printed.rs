//! What a test or an application has printed, as people see it.

use super::lines::{LINE, cleaned};
use crate::output::Output;

/// Output of a test or a module of which more is not shown: the first and the last so many lines.
const HEAD: usize = 30;
const TAIL: usize = 10;

/// What was printed to each stream, below the name of the stream.
pub(super) fn printed<'a>(
    stdout: &'a str,
    stderr: &'a str,
) -> impl Iterator<Item = (&'static str, String)> + 'a {
    let streams = [("standard output", stdout), ("error output", stderr)];
    let said = streams.into_iter().filter(|(_, text)| !text.trim().is_empty());
    said.map(|(name, text)| (name, indented(text)))
}

/// The same on standard error, below the error of an application.
pub(super) fn tell(stdout: &str, stderr: &str, output: Output) {
    for (name, text) in printed(stdout, stderr) {
        output.ask(format_args!("  {name}:"));
        text.lines().for_each(|line| output.ask(line));
    }
}

/// Each line by four, cleaned of what a terminal would obey; of a long text, beginning and end.
pub(super) fn indented(text: &str) -> String {
    let line = |line: &str| format!("    {}", cleaned(line.trim_end(), LINE)).trim_end().to_owned();
    let mut lines = text.trim_end().lines();
    let mut shown: Vec<_> = lines.by_ref().take(HEAD).map(line).collect();
    // There may be millions between them.
    let mut tail: Vec<_> = lines.by_ref().rev().take(TAIL).map(line).collect();
    match lines.count() {
        0 => {}
        left_out => shown.push(format!("    … {left_out} lines left out …")),
    }
    tail.reverse();
    shown.append(&mut tail);
    shown.join("\n")
}
