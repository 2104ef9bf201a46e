//! The thread that writes what arrives to disk and counts it on the way.
//!
//! It is a thread of its own so that a slow disk never keeps the socket from being drained, and so that Ctrl-C is
//! heard while a write hangs. What was received is in the file before it is decoded: a stream that we can't read is
//! still recorded whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use runtap_nettrace::{Item, Reader};
use tokio::sync::mpsc;

use crate::cmd::recording::Partial;
use crate::files::Destination;

/// Chunks that may wait for the disk; the session's own buffer waits behind them.
const WAITING: usize = 4;

/// What was recorded so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) bytes: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) lost: AtomicU64,
}

/// What was recorded in the end.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) lost: u64,
    /// What the stream lacks; `None` when it has its end marker.
    pub(super) partial: Option<Partial>,
    /// Why the file could not be written any further.
    pub(super) write_error: Option<io::Error>,
}

/// A recording in progress.
pub(super) struct Recorder<C> {
    chunks: mpsc::Sender<C>,
    thread: JoinHandle<Recorded>,
    progress: Arc<Progress>,
}

impl<C: AsRef<[u8]> + Send + 'static> Recorder<C> {
    /// Starts writing to `sink`.
    pub(super) fn start(sink: Sink) -> io::Result<Self> {
        let (chunks, waiting) = mpsc::channel(WAITING);
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let thread =
            thread::Builder::new().name("recorder".into()).spawn(move || record(sink, waiting, &shared))?;
        Ok(Self { chunks, thread, progress })
    }

    /// Hands a chunk over; waits while the disk is behind. `false` once nothing can be written any more.
    pub(super) async fn write(&self, chunk: C) -> bool {
        self.chunks.send(chunk).await.is_ok()
    }

    /// How far it is.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Writes what is waiting and ends.
    pub(super) fn finish(self) -> Recorded {
        drop(self.chunks);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Where the raw stream goes.
pub(super) enum Sink {
    File(File),
    Stdout,
}

impl Sink {
    /// Creates the file before anything is asked of the target.
    pub(super) fn create(to: &Destination) -> io::Result<Self> {
        Ok(match to {
            Destination::Stdout => Self::Stdout,
            Destination::File(path) => Self::File(create(path)?),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).open(path)
}

fn record<C: AsRef<[u8]>>(mut sink: Sink, mut chunks: mpsc::Receiver<C>, progress: &Progress) -> Recorded {
    let mut reader = Reader::new();
    let mut recorded = Recorded { bytes: 0, events: 0, lost: 0, partial: None, write_error: None };
    while let Some(chunk) = chunks.blocking_recv() {
        let bytes = chunk.as_ref();
        if let Err(error) = sink.write_all(bytes) {
            recorded.write_error = Some(error);
            break;
        }
        recorded.bytes += bytes.len() as u64;
        progress.bytes.store(recorded.bytes, Ordering::Relaxed);
        reader.feed(bytes);
        count(&mut reader, &mut recorded.events);
        progress.events.store(recorded.events, Ordering::Relaxed);
        progress.lost.store(reader.lost(), Ordering::Relaxed);
    }
    reader.finish();
    count(&mut reader, &mut recorded.events);
    recorded.lost = reader.lost();
    recorded.partial = reader.partial().map(Into::into);
    recorded
}

/// Counts what can be decoded by now. The reader goes on behind a damaged block, and remembers the damage.
fn count(reader: &mut Reader, events: &mut u64) {
    loop {
        match reader.next() {
            Ok(Some(Item::Event(_))) => *events += 1,
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => return,
        }
    }
}
