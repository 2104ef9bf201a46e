//! The only place that prints. stdout carries results, stderr everything else.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};
pub(crate) use runtap_text::{Clean, DIM};
use runtap_text::{Print, TextOptions, cut, json};
use serde::Serialize;

#[cfg_attr(unix, path = "output/unix.rs")]
#[cfg_attr(windows, path = "output/windows.rs")]
mod native;

use crate::cli::{Color, Global};
use crate::exit::ExpectedError;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();

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

    /// Whether more detail is asked for.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
    pub(crate) fn is_verbose(self) -> bool {
        self.verbose > 0
    }

    /// Whether nobody wants to be told more than the result.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// Whether a progress line may be shown: stderr is a terminal and nobody asked for silence.
    pub(crate) fn progress(self) -> bool {
        !self.quiet
            && io::stderr().is_terminal()
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
    }

    /// Whether stdout can be drawn on in place.
    #[cfg_attr(not(unix), allow(dead_code, reason = "for verbs that are not there"))]
    pub(crate) fn can_draw(self) -> bool {
        !self.quiet && self.is_seen() && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
    }

    /// For so many results: each of several is one line of JSON.
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

    /// A result as one JSON document with a long list, whose elements are written as they come.
    pub(crate) fn list<H: Serialize>(self, head: H, list: &'static str) -> List<H> {
        List { head, name: list, document: None }
    }

    /// Writes a result as one line of JSON: one of several.
    pub(crate) fn document_line(self, value: &impl Serialize) -> anyhow::Result<()> {
        Ok(json::write_line(&mut io::stdout().lock(), value)?)
    }

    /// Writes a result as it is asked for.
    pub(crate) fn show(self, it: &(impl Serialize + Print)) -> anyhow::Result<()> {
        if self.json { self.document(it) } else { self.print(it, &self.options()) }
    }

    /// Shows a text in place of what the terminal shows. Where stdout is no terminal, [`text`](Self::text) is meant.
    pub(crate) fn screen(self, text: impl Display) -> anyhow::Result<()> {
        /// To the upper left corner, and everything from there away.
        const CLEAR: &str = "\x1b[H\x1b[J";
        self.text(format_args!("{CLEAR}{text}"))
    }

    /// How many columns there are for a table that is a result; `None` where nobody minds.
    pub(crate) fn columns(self) -> Option<usize> {
        native::columns(io::stdout())
    }

    /// Whether a person sees the result as it comes.
    pub(crate) fn is_seen(self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// A document, on stderr where stdout carries another result.
    pub(crate) fn document_beside(self, value: &impl Serialize, stdout_is_taken: bool) -> anyhow::Result<()> {
        if !stdout_is_taken {
            return self.document(value);
        }
        Ok(json::write_document(&mut io::stderr().lock(), value)?)
    }

    /// Writes a result as text; styles are dropped where stdout is no terminal. What comes from the target must have
    /// gone through [`Clean`].
    pub(crate) fn text(self, text: impl Display) -> anyhow::Result<()> {
        let mut out = anstream::stdout().lock();
        write!(out, "{text}")?;
        Ok(out.flush()?)
    }

    /// How text looks on stdout, all of it.
    #[must_use]
    pub(crate) fn options(self) -> TextOptions<'static> {
        // They are dropped on the way where nobody sees them.
        TextOptions { styled: true, ..TextOptions::default() }
    }

    /// Writes a result as text.
    pub(crate) fn print(self, it: &(impl Print + ?Sized), options: &TextOptions<'_>) -> anyhow::Result<()> {
        let mut out = BufWriter::new(anstream::stdout().lock());
        it.print(&mut out, options)?;
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
        self.line(cut(Clean(&text.to_string()).to_string(), native::columns(io::stderr())));
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
        let columns = native::columns(io::stderr()).unwrap_or(80);
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

/// A JSON document with a long list on stdout. Nothing is printed before its first element, or its end: what can't be read at
/// all has no document.
pub(crate) struct List<H> {
    head: H,
    name: &'static str,
    document: Option<json::ListDocument<io::StdoutLock<'static>>>,
}

impl<H: Serialize> List<H> {
    fn document(&mut self) -> io::Result<&mut json::ListDocument<io::StdoutLock<'static>>> {
        let document = match self.document.take() {
            Some(document) => document,
            None => json::ListDocument::start(io::stdout().lock(), &self.head, self.name)?,
        };
        Ok(self.document.insert(document))
    }

    /// Writes the next element.
    pub(crate) fn element(&mut self, element: &impl Serialize) -> anyhow::Result<()> {
        Ok(self.document()?.element(element)?)
    }

    /// Writes the rest of the document.
    pub(crate) fn finish(mut self, tail: &impl Serialize) -> anyhow::Result<()> {
        self.document()?;
        Ok(self.document.map_or(Ok(()), |document| document.finish(tail))?)
    }
}

/// Stdout for several who write to it: all of a buffer is written before anybody else has a turn. Buffers are flushed
/// between lines only, which keeps each line in one piece.
pub(crate) fn stdout_in_turns() -> BufWriter<impl Write> {
    struct Stdout;

    impl Write for Stdout {
        fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
            io::stdout().lock().write_all(buffer)?;
            Ok(buffer.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            io::stdout().lock().flush()
        }
    }

    BufWriter::with_capacity(1 << 16, Stdout)
}

pub(crate) use self::native::size;

/// Whether a progress line stands on the terminal: a message must not be appended to it.
static STATUS_SHOWN: AtomicBool = AtomicBool::new(false);
