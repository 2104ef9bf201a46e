//! All printing of a program: results go to stdout, everything else to stderr.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
use runtap_model::Message;
use serde::Serialize;

use crate::terminal_size::{stderr_columns, stdout_columns};
use crate::{Clean, DIM, ERROR, Print, TextOptions, WARNING, close_screen, cut, held, json};

const HINT: Style = AnsiColor::Cyan.on_default();

/// Prints the results and messages of a program, according to its options for output.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct Output {
    quiet: bool,
    verbose: u8,
    json: bool,
    /// Whether there are several results, each printed as one line of JSON.
    several: bool,
    /// Whether a full-screen interface has the terminal.
    has_screen: bool,
}

impl Output {
    /// Creates an output. `quiet` suppresses notes and progress, `verbose` above 0 shows details, and `json` is whether
    /// results are JSON.
    pub fn new(quiet: bool, verbose: u8, json: bool) -> Self {
        Self { quiet, verbose, json, several: false, has_screen: false }
    }

    /// Whether results are JSON.
    pub fn json(self) -> bool {
        self.json
    }

    /// Whether `--verbose` is set.
    pub fn is_verbose(self) -> bool {
        self.verbose > 0
    }

    /// Whether `--quiet` is set.
    pub fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Whether a progress line may be shown: stderr is a terminal without a full-screen interface, and `--quiet` is not set.
    pub fn progress(self) -> bool {
        !self.quiet
            && !self.has_screen
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// Whether stdout is a terminal whose content can be redrawn in place.
    pub fn can_draw(self) -> bool {
        !self.quiet && self.is_seen() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// Whether this program has full-screen interfaces, and stdin and stdout are a terminal for one.
    pub fn can_show_screen(self) -> bool {
        cfg!(all(unix, feature = "tui")) && self.can_draw() && io::stdin().is_terminal()
    }

    /// Whether colors are used on stdout.
    pub fn colors(self) -> bool {
        anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
    }

    /// Whether a full-screen interface has the terminal.
    pub fn has_screen(self) -> bool {
        self.has_screen
    }

    /// Returns the output beside a full-screen interface, which shows the progress and reads the keyboard.
    #[must_use]
    pub fn beside_screen(self) -> Self {
        Self { has_screen: true, ..self }
    }

    /// Returns the output for `count` results. With more than one, each result is one line of JSON.
    #[must_use]
    pub fn for_results(self, count: usize) -> Self {
        Self { several: count > 1, ..self }
    }

    /// Writes a result as one JSON document.
    pub fn document(self, value: &impl Serialize) -> io::Result<()> {
        if self.several {
            return self.document_line(value);
        }
        json::write_document(&mut io::stdout().lock(), value)
    }

    /// Writes a result as one line of JSON.
    pub fn document_line(self, value: &impl Serialize) -> io::Result<()> {
        json::write_line(&mut io::stdout().lock(), value)
    }

    /// Writes a result as JSON or text, depending on `--format`.
    pub fn show(self, it: &(impl Serialize + Print)) -> io::Result<()> {
        self.show_with(it, &self.options())
    }

    /// Writes a result as JSON or, depending on `--format`, as text with these options.
    pub fn show_with(self, it: &(impl Serialize + Print), options: &TextOptions<'_>) -> io::Result<()> {
        if self.json { self.document(it) } else { self.print(it, options) }
    }

    /// Replaces the content of the terminal with a text. If stdout is not a terminal, use [`text`](Self::text).
    pub fn screen(self, text: impl Display) -> io::Result<()> {
        /// Moves the cursor to the upper left corner and clears the screen.
        const CLEAR: &str = "\x1b[H\x1b[J";
        self.text(format_args!("{CLEAR}{text}"))
    }

    /// Returns the width of a table on stdout in columns, or `None` if it is unlimited.
    pub fn columns(self) -> Option<usize> {
        stdout_columns()
    }

    /// Whether the result is text on a terminal.
    pub fn is_seen(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// Writes a JSON document, to stderr if stdout carries another result.
    pub fn document_on_free_stream(self, value: &impl Serialize, stdout_is_taken: bool) -> io::Result<()> {
        if !stdout_is_taken {
            return self.document(value);
        }
        json::write_document(&mut io::stderr().lock(), value)
    }

    /// Writes a result as text; styles are dropped if stdout is not a terminal. Text from the target must have been
    /// passed through [`Clean`].
    pub fn text(self, text: impl Display) -> io::Result<()> {
        let mut out = anstream::stdout().lock();
        write!(out, "{text}")?;
        out.flush()
    }

    /// Returns the options for text without a limit of rows.
    #[must_use]
    pub fn options(self) -> TextOptions<'static> {
        // The stream drops the styles if stdout is not a terminal.
        TextOptions { styled: true, ..TextOptions::default() }
    }

    /// Writes a result as text.
    pub fn print(self, it: &(impl Print + ?Sized), options: &TextOptions<'_>) -> io::Result<()> {
        let mut out = BufWriter::new(anstream::stdout().lock());
        it.print(&mut out, options)?;
        out.flush()
    }

    /// Writes lines of data from the target: unchanged to a pipe or file, without control characters to a terminal.
    pub fn data(self, lines: impl Iterator<Item = String>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        let terminal = out.is_terminal();
        for line in lines {
            if terminal {
                writeln!(out, "{}", Clean(&line))?;
            } else {
                writeln!(out, "{line}")?;
            }
        }
        out.flush()
    }

    /// Prints information for the user; silenced by `--quiet`.
    pub fn note(self, text: impl Display) {
        if !self.quiet {
            self.line(Clean(&text.to_string()));
        }
    }

    /// Prints messages of a library.
    pub fn messages(self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            match message {
                Message::Detail(text) => self.detail(text),
                Message::Note(text) => self.note(text),
                Message::Warning(text) => self.warning(text),
            }
        }
    }

    /// Prints text that the user needs to continue, even with `--quiet`.
    pub fn essential(self, text: impl Display) {
        self.line(Clean(&text.to_string()));
    }

    /// Prints an item of a list, truncated to the width of the terminal.
    pub fn item(self, text: impl Display) {
        self.line(cut(Clean(&text.to_string()).to_string(), stderr_columns()));
    }

    /// Prints a detail, only with `--verbose`.
    pub fn detail(self, text: impl Display) {
        if self.verbose > 0 {
            self.line(format_args!("{DIM}{}{DIM:#}", Clean(&text.to_string())));
        }
    }

    /// Prints a problem that may make the result useless; never silenced.
    pub fn warning(self, text: impl Display) {
        self.line(format_args!("{WARNING}warning{WARNING:#}: {}", Clean(&text.to_string())));
    }

    /// Prints an error, the items that it refers to, and the next step.
    pub fn error(self, error: impl Display, list: &[String], hint: Option<&str>) {
        close_screen();
        self.line(format_args!("{ERROR}error{ERROR:#}: {}", Clean(&error.to_string())));
        for item in list {
            self.item(item);
        }
        if let Some(hint) = hint {
            self.line(format_args!("  {HINT}hint{HINT:#}: {}", Clean(hint)));
        }
    }

    /// Replaces the progress line; the text is truncated to the width of the terminal.
    pub fn status(self, text: impl Display) {
        let mut err = io::stderr().lock();
        let columns = stderr_columns().unwrap_or(80);
        let text: String =
            Clean(&text.to_string()).to_string().chars().take(columns.saturating_sub(1)).collect();
        // A progress line that cannot be written is not an error.
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
        STATUS_SHOWN.store(!text.is_empty(), Ordering::Relaxed);
    }

    /// Clears the progress line.
    pub fn end_status(self) {
        if STATUS_SHOWN.load(Ordering::Relaxed) {
            self.status("");
        }
    }

    fn line(self, text: impl Display) {
        if held::add(&text) {
            return;
        }
        self.end_status();
        let mut err = anstream::stderr().lock();
        // If stderr is closed, there is nowhere to report the error.
        let _ = writeln!(err, "{text}");
    }
}

/// Whether a progress line is shown. It must be cleared before a message is printed.
static STATUS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Returns a text followed by the texts of a cause and of its causes, without those that are already contained.
pub fn with_causes(mut text: String, cause: Option<&(dyn Error + 'static)>) -> String {
    for cause in cause.into_iter().flat_map(causes) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Returns an error and its causes.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_the_text_contains_is_not_repeated() {
        let cause = io::Error::other("the disk is full");
        let text = |text: &str| with_causes(text.to_owned(), Some(&cause));
        assert_eq!(text("cannot write a.svg"), "cannot write a.svg: the disk is full");
        assert_eq!(text("a.svg: the disk is full"), "a.svg: the disk is full");
        assert_eq!(with_causes("stopped".to_owned(), None), "stopped");
    }
}
