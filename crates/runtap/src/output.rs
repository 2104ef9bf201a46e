//! The only place that prints. stdout carries results, stderr everything else.

use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::cli::{Color, Global};

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
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Writes a result as one line of JSON: one of several.
    pub(crate) fn document_line(self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Shows a text in place of what the terminal shows. Where stdout is no terminal, [`text`](Self::text) is meant.
    pub(crate) fn screen(self, text: impl Display) -> anyhow::Result<()> {
        /// To the upper left corner, and everything from there away.
        const CLEAR: &str = "\x1b[H\x1b[J";
        self.text(format_args!("{CLEAR}{text}"))
    }

    /// Whether a person sees the result as it comes.
    pub(crate) fn is_seen(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// A document on stderr, where stdout carries another result.
    pub(crate) fn document_to_stderr(self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        text.push('\n');
        Ok(io::stderr().lock().write_all(text.as_bytes())?)
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
        if let Some(hint) = hint {
            self.line(format_args!("  {HINT}hint{HINT:#}: {}", Clean(hint)));
        }
    }

    /// Rewrites the progress line, cut to the width of the terminal.
    pub(crate) fn status(self, text: impl Display) {
        let mut err = io::stderr().lock();
        let columns = rustix::termios::tcgetwinsize(&err).map_or(80, |size| usize::from(size.ws_col));
        let text: String = text.to_string().chars().take(columns.saturating_sub(1)).collect();
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

/// Whether a progress line stands on the terminal: a message must not be appended to it.
static STATUS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Text of a stranger with everything escaped that would act on a terminal: control characters, line breaks, and
/// marks that turn the direction of writing.
pub(crate) struct Clean<'a>(pub(crate) &'a str);

/// Whether a letter would act on a terminal.
pub(crate) fn acts_on_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(acts_on_terminal) {
            return f.pad(self.0);
        }
        let mut text = String::with_capacity(self.0.len() + 8);
        for c in self.0.chars() {
            if acts_on_terminal(c) {
                text.extend(c.escape_default());
            } else {
                text.push(c);
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_stranger_acts_on_the_terminal() {
        assert_eq!(Clean("plain 中😀 text").to_string(), "plain 中😀 text");
        assert_eq!(Clean("\x1b]0;x\x07\n\u{202e}").to_string(), "\\u{1b}]0;x\\u{7}\\n\\u{202e}");
        assert_eq!(format!("{:<5}|", Clean("ab")), "ab   |");
    }
}
