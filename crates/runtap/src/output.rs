//! The only place that prints. stdout carries results, stderr everything else.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use runtap_model::text::json_escape;
pub(crate) use runtap_model::text::{Clean, acts_unseen};
use serde::Serialize;

use crate::cli::{Color, Global};
use crate::exit::ExpectedError;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// How to speak to the user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    quiet: bool,
    verbose: u8,
    json: bool,
    /// A result is one of several: a line each.
    several: bool,
}

#[expect(
    clippy::unused_self,
    reason = "whoever prints needs an Output, so that printing can be told and tested"
)]
impl Output {
    /// By the global options.
    pub(crate) fn new(global: &Global, json: bool) -> Self {
        let choice = match global.color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        Self { quiet: global.quiet, verbose: global.verbose, json, several: false }
    }

    /// Whether results are JSON.
    pub(crate) fn json(self) -> bool {
        self.json
    }

    /// Whether a progress line may be shown: stderr is a terminal and nobody asked for silence.
    pub(crate) fn progress(self) -> bool {
        !self.quiet
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// For results of which there are several: each is one line of JSON.
    #[must_use]
    pub(crate) fn one_of_several(self) -> Self {
        Self { several: true, ..self }
    }

    /// Writes a result as one JSON document.
    pub(crate) fn document(self, value: &impl Serialize) -> anyhow::Result<()> {
        if self.several {
            return self.document_line(value);
        }
        write_json(serde_json::to_string_pretty(value), io::stdout().lock())
    }

    /// Writes a result as one line of JSON: one of several.
    pub(crate) fn document_line(self, value: &impl Serialize) -> anyhow::Result<()> {
        write_json(serde_json::to_string(value), io::stdout().lock())
    }

    /// Shows a text in place of what the terminal shows. Where stdout is no terminal, [`text`](Self::text) is meant.
    pub(crate) fn screen(self, text: impl Display) -> anyhow::Result<()> {
        /// To the upper left corner, and everything from there away.
        const CLEAR: &str = "\x1b[H\x1b[J";
        self.text(format_args!("{CLEAR}{text}"))
    }

    /// How many columns there are for a table that is a result; `None` where nobody minds.
    pub(crate) fn columns(self) -> Option<usize> {
        columns(io::stdout())
    }

    /// Whether a person sees the result as it comes.
    pub(crate) fn is_seen(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// A document on stderr, where stdout carries another result.
    pub(crate) fn document_to_stderr(self, value: &impl Serialize) -> anyhow::Result<()> {
        write_json(serde_json::to_string_pretty(value), io::stderr().lock())
    }

    /// Writes a result as text; styles are dropped where stdout is no terminal. What comes from the target must have
    /// gone through [`Clean`].
    pub(crate) fn text(self, text: impl Display) -> anyhow::Result<()> {
        let mut out = anstream::stdout().lock();
        write!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Writes data of the target, a line each: as it is into a pipe or a file, harmless on a terminal.
    pub(crate) fn data(self, lines: impl Iterator<Item = String>) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let terminal = out.is_terminal();
        for line in lines {
            if terminal {
                writeln!(out, "{}", Clean(&line))?;
            } else {
                writeln!(out, "{line}")?;
            }
        }
        Ok(out.flush()?)
    }

    /// Something the user should know; silenced by `--quiet`.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            self.line(Clean(&text.to_string()));
        }
    }

    /// Something the user must see to go on, whatever `--quiet` says.
    pub(crate) fn ask(self, text: impl Display) {
        self.line(Clean(&text.to_string()));
    }

    /// A line of a list that the user chooses from.
    pub(crate) fn item(self, text: impl Display) {
        self.line(cut(Clean(&text.to_string()).to_string(), columns(io::stderr())));
    }

    /// Something for the curious: shown with `--verbose`.
    pub(crate) fn detail(self, text: impl Display) {
        if self.verbose > 0 {
            self.line(format_args!("{DIM}{}{DIM:#}", Clean(&text.to_string())));
        }
    }

    /// Something that may make the result useless; never silenced.
    pub(crate) fn warning(self, text: impl Display) {
        self.line(format_args!("{WARNING}warning{WARNING:#}: {}", Clean(&text.to_string())));
    }

    /// A failure, with its causes and the next step.
    pub(crate) fn error(self, error: &anyhow::Error, hint: Option<&str>) {
        let mut text = error.to_string();
        for cause in error.chain().skip(1) {
            let cause = cause.to_string();
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        self.line(format_args!("{ERROR}error{ERROR:#}: {}", Clean(&text)));
        let list = error.downcast_ref::<ExpectedError>().map(|expected| &expected.list);
        list.into_iter().flatten().for_each(|item| self.item(item));
        if let Some(hint) = hint {
            self.line(format_args!("  {HINT}hint{HINT:#}: {}", Clean(hint)));
        }
    }

    /// Rewrites the progress line, cut to the width of the terminal.
    pub(crate) fn status(self, text: impl Display) {
        let mut err = io::stderr().lock();
        let columns = rustix::termios::tcgetwinsize(&err).map_or(80, |size| usize::from(size.ws_col));
        let text: String =
            Clean(&text.to_string()).to_string().chars().take(columns.saturating_sub(1)).collect();
        // A lost progress line is no reason to fail.
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
        STATUS_SHOWN.store(!text.is_empty(), Ordering::Relaxed);
    }

    /// Ends the progress line.
    pub(crate) fn end_status(self) {
        if STATUS_SHOWN.load(Ordering::Relaxed) {
            self.status("");
        }
    }

    fn line(self, text: impl Display) {
        self.end_status();
        let mut err = anstream::stderr().lock();
        // If stderr is gone there is nobody to tell.
        let _ = writeln!(err, "{text}");
    }
}

/// How many columns a terminal has; `None` for what is no terminal.
fn columns(stream: impl AsFd + IsTerminal) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok())??;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A line that fits, where there is a limit: what is too much is left out, and that is shown.
pub(crate) fn cut(mut line: String, columns: Option<usize>) -> String {
    if let Some(columns) = columns
        && let Some((end, _)) = line.char_indices().nth(columns)
    {
        let last = line.char_indices().nth(columns.saturating_sub(1)).map_or(end, |(last, _)| last);
        line.truncate(last);
        line.push('…');
    }
    line
}

/// Whether a progress line stands on the terminal: a message must not be appended to it.
static STATUS_SHOWN: AtomicBool = AtomicBool::new(false);

fn write_json(json: serde_json::Result<String>, mut out: impl Write) -> anyhow::Result<()> {
    let mut text = json_to_show(json.map_err(io::Error::from)?);
    text.push('\n');
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// JSON with what [acts unseen](acts_unseen) escaped too: the document says the same, and does no harm where it is looked
/// at. Outside of its texts there are only line breaks.
fn json_to_show(json: String) -> String {
    let acts = |c: char| c != '\n' && acts_unseen(c);
    if !json.contains(acts) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if acts(c) {
            json_escape(c, &mut text);
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits() {
        assert_eq!(cut("äbcde".to_owned(), Some(4)), "äbc…");
        assert_eq!(cut("äbcd".to_owned(), Some(4)), "äbcd");
        assert_eq!(cut("äbcde".to_owned(), None), "äbcde");
        assert_eq!(cut("ab".to_owned(), Some(1)), "…");
    }

    #[test]
    fn documents_say_the_same_and_act_on_nothing() {
        let texts = ["plain 中", "\u{1b}[2J\u{9b}\u{202e}\u{200b}", "\u{e0041}\n"];
        for json in [serde_json::to_string(&texts).unwrap(), serde_json::to_string_pretty(&texts).unwrap()] {
            let shown = json_to_show(json);
            assert!(!shown.contains(|c| c != '\n' && acts_unseen(c)), "{shown:?}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), texts);
        }
    }
}
