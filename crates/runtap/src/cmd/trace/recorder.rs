//! The thread that writes what arrives to disk and counts it on the way.
//!
//! It is a thread of its own so that a slow disk, or a pipe that nobody reads, keeps neither the socket from being
//! drained nor Ctrl-C from being heard. What was received is in the file before it is decoded: a stream that we can't
//! read is still recorded whole.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use runtap_diag::{Chunks, Error};
use runtap_nettrace::{Item, Reader};
use tokio::sync::oneshot;

use super::stopping::Lookout;
use crate::cmd::recording::Partial;

/// Bytes that the reader gets at a time. It copies them; what is copied in small pieces stays in the processor's cache,
/// and the reader's memory stays small.
const PIECE: usize = 64 << 10;

/// What was recorded so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) bytes: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) lost: AtomicU64,
}

/// What was recorded in the end.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Bytes in the file.
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    /// Whether a header was read: without one nobody can read the file.
    pub(super) readable: bool,
    /// What the stream lacks; `None` when it has its end marker.
    pub(super) partial: Option<Partial>,
    /// Why the file could not be written any further.
    pub(super) write_error: Option<io::Error>,
    /// Why no more could be received.
    pub(super) read_error: Option<Error>,
}

/// A recording in progress.
pub(super) struct Recorder {
    outcome: oneshot::Receiver<Recorded>,
}

impl Recorder {
    /// Starts writing a stream to `sink`, up to the stream's end, and tells `progress` how far it is. `lookout` sees
    /// every item.
    pub(super) fn start(
        chunks: Chunks,
        sink: Sink,
        progress: Arc<Progress>,
        lookout: Option<Lookout>,
    ) -> io::Result<Self> {
        let (tell, outcome) = oneshot::channel();
        thread::Builder::new().name("recorder".into()).spawn(move || {
            // Nobody listens any more when a stuck recorder was given up.
            let _ = tell.send(record(sink, chunks, &progress, lookout));
        })?;
        Ok(Self { outcome })
    }

    /// What was recorded, when the stream has ended or can't be written any further. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self) -> Recorded {
        (&mut self.outcome).await.unwrap_or_default()
    }
}

/// Where the raw stream goes.
#[derive(Debug)]
pub(super) enum Sink {
    File(File),
    Stdout,
}

impl Sink {
    /// Writes as much as can be; returns how much that was.
    fn write(&mut self, mut bytes: &[u8]) -> (u64, io::Result<()>) {
        let mut written = 0;
        while !bytes.is_empty() {
            let result = match self {
                Self::File(file) => file.write(bytes),
                Self::Stdout => {
                    let mut out = io::stdout().lock();
                    out.write(bytes).and_then(|n| out.flush().map(|()| n))
                }
            };
            match result {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(n) => {
                    written += n as u64;
                    bytes = bytes.get(n..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (written, Err(error)),
            }
        }
        (written, Ok(()))
    }
}

fn record(mut sink: Sink, mut chunks: Chunks, progress: &Progress, mut lookout: Option<Lookout>) -> Recorded {
    let mut reader = Reader::new();
    let mut recorded = Recorded::default();
    loop {
        let chunk = match chunks.blocking_next() {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => {
                recorded.read_error = Some(error);
                break;
            }
        };
        let bytes: &[u8] = &chunk;
        let (written, result) = sink.write(bytes);
        recorded.bytes += written;
        progress.bytes.store(recorded.bytes, Ordering::Relaxed);
        if let Err(error) = result {
            recorded.write_error = Some(error);
            break;
        }
        for piece in bytes.chunks(PIECE) {
            reader.feed(piece);
            count(&mut reader, &mut recorded.events, lookout.as_mut());
        }
        progress.events.store(recorded.events, Ordering::Relaxed);
        progress.lost.store(reader.lost(), Ordering::Relaxed);
    }
    reader.finish();
    count(&mut reader, &mut recorded.events, None);
    recorded.readable = reader.header().is_some();
    recorded.lost = reader.lost();
    recorded.partial = reader.partial().map(Into::into);
    recorded
}

/// Counts what can be decoded by now. The reader goes on behind a damaged block, and remembers the damage.
fn count(reader: &mut Reader, events: &mut u64, mut lookout: Option<&mut Lookout>) {
    loop {
        match reader.next() {
            Ok(Some(item)) => {
                if let Some(lookout) = &mut lookout {
                    lookout.item(&item);
                }
                *events += u64::from(matches!(item, Item::Event(_)));
            }
            Err(_) => {}
            Ok(None) => return,
        }
    }
}
