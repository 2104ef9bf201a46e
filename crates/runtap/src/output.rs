//! All printing of the program: results go to stdout, everything else to stderr.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use runtap_model::Message;
pub(crate) use runtap_text::terminal_size::size;
use runtap_text::terminal_size::{stderr_columns, stdout_columns};
pub(crate) use runtap_text::{Clean, DIM};
use runtap_text::{ERROR, Print, TextOptions, WARNING, cut, json};
use serde::Serialize;

use crate::cli::{Color, Global};
use crate::exit::ExpectedError;

const HINT: Style = AnsiColor::Cyan.on_default();

/// The output options of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    quiet: bool,
    verbose: u8,
    json: bool,
    /// Whether there are several results, each printed as one line of JSON.
    several: bool,
}

#[expect(clippy::unused_self, reason = "every function that prints has an Output as its parameter")]
impl Output {
    /// Creates the output from the global options.
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

    /// Whether `--verbose` is set.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
    pub(crate) fn is_verbose(self) -> bool {
        self.verbose > 0
    }

    /// Whether `--quiet` is set.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Whether a progress line may be shown: stderr is a terminal and `--quiet` is not set.
    pub(crate) fn progress(self) -> bool {
        !self.quiet
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// Whether stdout is a terminal whose content can be redrawn in place.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
    pub(crate) fn can_draw(self) -> bool {
        !self.quiet && self.is_seen() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// Returns the output for `count` results. With more than one, each result is one line of JSON.
    #[must_use]
    pub(crate) fn for_results(self, count: usize) -> Self {
        Self { several: count > 1, ..self }
    }

    /// Writes a result as one JSON document.
    pub(crate) fn document(self, value: &impl Serialize) -> anyhow::Result<()> {
        if self.several {
            return self.document_line(value);
        }
        Ok(json::write_document(&mut io::stdout().lock(), value)?)
    }

    /// Starts a JSON document that contains a list whose elements are written one at a time.
    pub(crate) fn list(
        self,
        head: &impl Serialize,
        list: &str,
    ) -> io::Result<json::ListDocument<io::Stdout>> {
        json::ListDocument::new(io::stdout(), head, list)
    }

    /// Writes a result as one line of JSON.
    pub(crate) fn document_line(self, value: &impl Serialize) -> anyhow::Result<()> {
        Ok(json::write_line(&mut io::stdout().lock(), value)?)
    }

    /// Writes a result as JSON or text, depending on `--format`.
    pub(crate) fn show(self, it: &(impl Serialize + Print)) -> anyhow::Result<()> {
        self.show_as(it, &self.options())
    }

    /// Writes a result as JSON or as text with these options.
    pub(crate) fn show_as(self, it: &(impl Serialize + Print), text: &TextOptions<'_>) -> anyhow::Result<()> {
        if self.json { self.document(it) } else { self.print(it, text) }
    }

    /// Replaces the content of the terminal with a text. If stdout is not a terminal, use [`text`](Self::text).
    pub(crate) fn screen(self, text: impl Display) -> anyhow::Result<()> {
        /// Moves the cursor to the upper left corner and clears the screen.
        const CLEAR: &str = "\x1b[H\x1b[J";
        self.text(format_args!("{CLEAR}{text}"))
    }

    /// Returns the width of a table on stdout in columns, or `None` if it is unlimited.
    pub(crate) fn columns(self) -> Option<usize> {
        stdout_columns()
    }

    /// Whether the result is text on a terminal.
    pub(crate) fn is_seen(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Writes a JSON document, to stderr if stdout carries another result.
    pub(crate) fn document_beside(self, value: &impl Serialize, stdout_is_taken: bool) -> anyhow::Result<()> {
        if !stdout_is_taken {
            return self.document(value);
        }
        Ok(json::write_document(&mut io::stderr().lock(), value)?)
    }

    /// Writes a result as text; styles are dropped if stdout is not a terminal. Text from the target must have been
    /// passed through [`Clean`].
    pub(crate) fn text(self, text: impl Display) -> anyhow::Result<()> {
        let mut out = anstream::stdout().lock();
        write!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// Returns the options for text without a limit of rows.
    #[must_use]
    pub(crate) fn options(self) -> TextOptions<'static> {
        // The stream drops the styles if stdout is not a terminal.
        TextOptions { styled: true, ..TextOptions::default() }
    }

    /// Writes a result as text.
    pub(crate) fn print(self, it: &(impl Print + ?Sized), options: &TextOptions<'_>) -> anyhow::Result<()> {
        let mut out = BufWriter::new(anstream::stdout().lock());
        it.print(&mut out, options)?;
        Ok(out.flush()?)
    }

    /// Writes lines of data from the target: unchanged to a pipe or file, without control characters to a terminal.
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

    /// Prints information for the user; silenced by `--quiet`.
    pub(crate) fn note(self, text: impl Display) {
        if !self.quiet {
            self.line(Clean(&text.to_string()));
        }
    }

    /// Prints messages of a library.
    pub(crate) fn messages(self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            match message {
                Message::Detail(text) => self.detail(text),
                Message::Note(text) => self.note(text),
                Message::Warning(text) => self.warning(text),
            }
        }
    }

    /// Prints text that the user needs to continue, even with `--quiet`.
    pub(crate) fn essential(self, text: impl Display) {
        self.line(Clean(&text.to_string()));
    }

    /// Prints an item of a list, truncated to the width of the terminal.
    pub(crate) fn item(self, text: impl Display) {
        self.line(cut(Clean(&text.to_string()).to_string(), stderr_columns()));
    }

    /// Prints a detail, only with `--verbose`.
    pub(crate) fn detail(self, text: impl Display) {
        if self.verbose > 0 {
            self.line(format_args!("{DIM}{}{DIM:#}", Clean(&text.to_string())));
        }
    }

    /// Prints a problem that may make the result useless; never silenced.
    pub(crate) fn warning(self, text: impl Display) {
        self.line(format_args!("{WARNING}warning{WARNING:#}: {}", Clean(&text.to_string())));
    }

    /// Prints an error with its causes and the next step.
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

    /// Replaces the progress line; the text is truncated to the width of the terminal.
    pub(crate) fn status(self, text: impl Display) {
        let mut err = io::stderr().lock();
        let columns = stderr_columns().unwrap_or(80);
        let text: String =
            Clean(&text.to_string()).to_string().chars().take(columns.saturating_sub(1)).collect();
        // A progress line that cannot be written is not an error.
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
        STATUS_SHOWN.store(!text.is_empty(), Ordering::Relaxed);
    }

    /// Clears the progress line.
    pub(crate) fn end_status(self) {
        if STATUS_SHOWN.load(Ordering::Relaxed) {
            self.status("");
        }
    }

    fn line(self, text: impl Display) {
        self.end_status();
        let mut err = anstream::stderr().lock();
        // If stderr is closed, there is nowhere to report the error.
        let _ = writeln!(err, "{text}");
    }
}

/// Whether a progress line is shown. It must be cleared before a message is printed.
static STATUS_SHOWN: AtomicBool = AtomicBool::new(false);
