//! The events of one session as lines, as they come. Works on a thread of its own.

use std::io::{self, Write};
use std::time::Duration;

use runtap_clr::lines::{Lines, Live, Matched};
use runtap_diag::{Chunks, Error};
use runtap_nettrace::Item;

use crate::Received;

/// The runtime writes what it has gathered ten times a second. When nothing came for longer, nothing older will.
const PATIENCE: Duration = Duration::from_millis(250);

/// How a session ended whose events were written as lines.
#[derive(Debug)]
pub struct LiveEnd {
    /// How many events the target dropped.
    pub lost: u64,
    /// Whose events came, and when.
    pub received: Received,
    /// Whether the stream has an end.
    pub is_whole: bool,
    /// How many events were written, and which names that were asked for no event has.
    pub matched: Matched,
    /// Why the lines could not be written.
    pub write_error: Option<io::Error>,
    /// Why the stream could not be read.
    pub read_error: Option<Error>,
}

/// Writes events as lines until the stream ends or nobody takes them. Blocks.
pub fn write_live<W: Write>(mut chunks: Chunks, lines: Lines<W>) -> LiveEnd {
    let mut lines = Live::new(lines);
    let mut received = Received::default();
    let mut hear = |item: &Item<'_>| received.item(item);
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
    let is_whole = lines.partial().is_none();
    LiveEnd {
        lost: lines.lost(),
        received,
        is_whole,
        matched: lines.matched(),
        write_error: written.err(),
        read_error,
    }
}
