//! The only place that prints. stdout carries results, stderr everything else.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

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
        Self { quiet: global.quiet, verbose: global.verbose, json }
    }

    /// Whether results are JSON.
    pub(crate) fn json(self) -> bool {
        self.json
    }

    /// Whether a progress line may be shown: stderr is a terminal and nobody asked for silence.
    pub(crate) fn progress(self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Writes a result as one JSON document.
    pub(crate) fn document(self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// Writes a result as text; styles are dropped where stdout is no terminal.
    pub(crate) fn text(self, text: impl Display) -> anyhow::Result<()> {
        let mut out = anstream::stdout().lock();
        write!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Something the user should know; silenced by `--quiet`.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            self.line(&text);
        }
    }

    /// Something for the curious: shown with `--verbose`.
    pub(crate) fn detail(self, text: impl Display) {
        if self.verbose > 0 {
            self.line(format_args!("{DIM}{text}{DIM:#}"));
        }
    }

    /// Something that may make the result useless; never silenced.
    pub(crate) fn warning(self, text: impl Display) {
        self.line(format_args!("{WARNING}warning{WARNING:#}: {text}"));
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
        self.line(format_args!("{ERROR}error{ERROR:#}: {text}"));
        if let Some(hint) = hint {
            for line in hint.lines() {
                self.line(format_args!("  {HINT}hint{HINT:#}: {line}"));
            }
        }
    }

    /// Rewrites the progress line.
    pub(crate) fn status(self, text: impl Display) {
        let mut err = io::stderr().lock();
        // A lost progress line is no reason to fail.
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }

    /// Ends the progress line.
    pub(crate) fn end_status(self) {
        self.status("");
    }

    fn line(self, text: impl Display) {
        let mut err = anstream::stderr().lock();
        // If stderr is gone there is nobody to tell.
        let _ = writeln!(err, "{text}");
    }
}
