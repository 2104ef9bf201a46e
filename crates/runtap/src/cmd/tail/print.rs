//! The events of one session as lines on stdout, as they come. Works on a thread of its own.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use runtap_diag::{Chunks, Error};
use runtap_nettrace::InOrder;

use crate::cmd::silence::Heard;
use runtap_ingest::lines::{Chooser, Lines, Style};

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
pub(super) fn print(mut chunks: Chunks, mut lines: Out) -> Printed {
    let mut reader = InOrder::new();
    let mut heard = Heard::default();
    let (mut write_error, mut read_error) = (None, None);
    loop {
        match chunks.blocking_next_within(PATIENCE) {
            Some(Ok(Some(chunk))) => reader.feed(&chunk),
            Some(Ok(None)) => break,
            Some(Err(error)) => {
                read_error = Some(error);
                break;
            }
            None => reader.hold_nothing_back(),
        }
        if let Err(error) = print_items(&mut reader, &mut heard, &mut lines) {
            write_error = Some(error);
            break;
        }
    }
    reader.finish();
    if write_error.is_none() {
        write_error = print_items(&mut reader, &mut heard, &mut lines).err();
    }
    Printed { lost: reader.lost(), heard, whole: reader.partial().is_none(), write_error, read_error }
}

/// Prints what can be decoded by now. The reader goes on behind a damaged block, and remembers the damage.
fn print_items(reader: &mut InOrder, heard: &mut Heard, lines: &mut Out) -> io::Result<()> {
    loop {
        match reader.next() {
            Ok(Some(item)) => {
                heard.item(&item);
                lines.item(&item)?;
            }
            Err(_) => {}
            Ok(None) => return lines.flush(),
        }
    }
}
