//! The events of one session as lines on stdout, as they come. Works on a thread of its own.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use runtap_diag::{Chunks, Error};
use runtap_nettrace::Item;
use runtap_record::Heard;

use runtap_clr::lines::{Chooser, Lines, Live, Style};

/// The runtime writes what it has gathered ten times a second. When nothing came for longer, nothing older will.
const PATIENCE: Duration = Duration::from_millis(250);

/// What was printed.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) lost: u64,
    /// Whose events came, and when.
    pub(super) heard: Heard,
    /// Whether the stream has an end.
    pub(super) whole: bool,
    pub(super) write_error: Option<io::Error>,
    pub(super) read_error: Option<Error>,
}

/// Lines for stdout, to which others may write too.
pub(super) type Out = Lines<BufWriter<Stdout>>;

/// Lines of the events that are chosen.
pub(super) fn lines(chooser: Chooser, style: Style) -> Out {
    Lines::new(chooser, style, false, BufWriter::with_capacity(1 << 16, Stdout))
}

/// Writes all of a buffer before anybody else has a turn. Buffers are flushed between lines only: that keeps each line
/// in one piece.
pub(super) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        io::stdout().lock().write_all(buffer)?;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}

/// Prints events as they come.
pub(super) fn print(mut chunks: Chunks, lines: Out) -> Printed {
    let mut lines = Live::new(lines);
    let mut heard = Heard::default();
    let mut hear = |item: &Item<'_>| heard.item(item);
    let mut read_error = None;
    let mut written = loop {
        let written = match chunks.blocking_next_within(PATIENCE) {
            Some(Ok(Some(chunk))) => lines.feed(&chunk, &mut hear),
            Some(Ok(None)) => break Ok(()),
            Some(Err(error)) => {
                read_error = Some(error);
                break Ok(());
            }
            None => lines.nothing_older_comes(&mut hear),
        };
        if written.is_err() {
            break written;
        }
    };
    if written.is_ok() {
        written = lines.finish(&mut hear);
    }
    let whole = lines.partial().is_none();
    Printed { lost: lines.lost(), heard, whole, write_error: written.err(), read_error }
}
