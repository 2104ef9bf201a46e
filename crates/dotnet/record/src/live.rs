//! Writes the events of one live session as lines. Runs on its own thread.

use std::io::{self, Write};
use std::time::Duration;

use runtap_clr::lines::{Lines, LiveLines, Matched};
use runtap_diag::{Chunks, Error};
use runtap_nettrace::StreamItem;

use crate::Received;

/// The runtime writes its buffers ten times per second. After a longer pause, no older events can follow.
const FLUSH_DELAY: Duration = Duration::from_millis(250);

/// The end of a session whose events were written as lines.
#[derive(Debug)]
pub struct LiveEnd {
    /// The number of events that the target dropped.
    pub lost: u64,
    /// Statistics of the received events.
    pub received: Received,
    /// Whether the stream is complete.
    pub is_whole: bool,
    /// The number of selected events, and the names of the selection that did not occur.
    pub matched: Matched,
    /// The error that occurred while writing lines.
    pub write_error: Option<io::Error>,
    /// The error that occurred while reading the stream.
    pub read_error: Option<Error>,
}

/// Writes events as lines until the stream ends or the output is closed. Blocks.
pub fn write_live<W: Write>(mut chunks: Chunks, lines: Lines<W>) -> LiveEnd {
    let mut lines = LiveLines::new(lines);
    let mut received = Received::default();
    let mut hear = |item: &StreamItem<'_>| received.item(item);
    let mut read_error = None;
    let mut written = loop {
        let written = match chunks.blocking_next_within(FLUSH_DELAY) {
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
