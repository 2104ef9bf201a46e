//! The thread that writes what arrives to disk and counts it on the way.
//!
//! It is a thread of its own so that a slow disk, or a pipe that nobody reads, does not delay a request to stop. A
//! file is written by the thread that reads the socket: what it has read is still in the processor's cache when it is
//! written and counted, and no thread has to be woken. A pipe may stand still for as long as its reader likes: there the
//! session's own thread goes on reading. What was received is in the file before it is decoded: a stream that we can't read
//! is still recorded whole.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use runtap_diag::{Chunk, Chunks, Direct, Error};
use runtap_nettrace::{Item, Reader};
use tokio::sync::oneshot;

#[cfg_attr(unix, path = "recorder/unix.rs")]
#[cfg_attr(windows, path = "recorder/windows.rs")]
mod native;

use crate::silence::Received;
use crate::stop_event::StopEventWatch;
use runtap_nettrace::Partial;

/// Bytes that the reader gets at a time. It copies them; what is copied in small pieces stays in the processor's cache,
/// and the reader's memory stays small.
const PIECE: usize = 64 << 10;

/// What was recorded so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) bytes: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// When events are counted.
#[derive(Debug)]
pub(crate) enum Counting {
    /// As they come. The watch sees every item.
    Live(Option<Box<StopEventWatch>>),
    /// When the stream has ended, out of its file, one recording after the other: a decoder takes memory, and of
    /// hundreds of streams only the bytes are to be held. As they come where the file can't be read.
    Afterwards(Arc<Mutex<()>>),
}

/// What was recorded in the end.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Bytes in the file.
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    /// Whether a header was read: without one nobody can read the file.
    pub(crate) readable: bool,
    /// What the stream lacks; `None` when it has its end marker.
    pub(crate) partial: Option<Partial>,
    /// Whose events came, and when.
    pub(crate) received: Received,
    /// Nobody reads the pipe that it went into.
    pub(crate) is_unread: bool,
    /// Why the file could not be written any further.
    pub(crate) write_error: Option<io::Error>,
    /// Why no more could be received.
    pub(crate) read_error: Option<Error>,
}

/// A recording in progress.
pub(crate) struct Recorder {
    outcome: oneshot::Receiver<Recorded>,
}

impl Recorder {
    /// Starts writing a stream to `sink`, up to the stream's end, and tells `progress` how far it is.
    pub(crate) fn start(
        chunks: Chunks,
        sink: Sink,
        progress: Arc<Progress>,
        counting: Counting,
    ) -> io::Result<Self> {
        let (tell, outcome) = oneshot::channel();
        thread::Builder::new().name("recorder".into()).spawn(move || {
            // Nobody listens any more when a stuck recorder was given up.
            let _ = tell.send(record(sink, chunks, &progress, counting));
        })?;
        Ok(Self { outcome })
    }

    /// What was recorded, when the stream has ended or can't be written any further. Dropping the future loses nothing.
    pub(crate) async fn ended(&mut self) -> Recorded {
        (&mut self.outcome).await.unwrap_or_default()
    }
}

/// Where the raw stream goes.
#[derive(Debug)]
pub(crate) enum Sink {
    File(File),
    Stdout,
}

impl Sink {
    /// An ordinary file.
    fn file(&self) -> Option<&File> {
        match self {
            Self::File(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => Some(file),
            _ => None,
        }
    }

    /// An ordinary file that can also be read.
    fn readable(&self) -> Option<&File> {
        self.file().filter(|file| native::is_readable(file))
    }

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

/// Where the stream comes from.
enum Source {
    /// The session's own thread reads it.
    Chunks(Chunks),
    /// We do.
    Direct(Direct),
}

impl Source {
    fn next(&mut self) -> Result<Option<Chunk>, Error> {
        match self {
            Self::Chunks(chunks) => chunks.blocking_next(),
            Self::Direct(direct) => direct.blocking_next(),
        }
    }
}

fn record(mut sink: Sink, chunks: Chunks, progress: &Progress, counting: Counting) -> Recorded {
    let mut recorded = Recorded::default();
    let (mut live, turn) = match counting {
        Counting::Afterwards(turn) if sink.readable().is_some() => (None, Some(turn)),
        Counting::Afterwards(_) => (Some(Counter::default()), None),
        Counting::Live(watch) => (Some(Counter { watch, ..Counter::default() }), None),
    };
    let mut source =
        if sink.file().is_some() { Source::Direct(chunks.direct()) } else { Source::Chunks(chunks) };
    loop {
        let chunk = match source.next() {
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
        if let Some(counter) = &mut live {
            counter.feed(bytes);
            progress.events.store(counter.events, Ordering::Relaxed);
            progress.lost.store(counter.reader.lost(), Ordering::Relaxed);
        }
    }
    drop(source);
    match (live, turn, sink.readable()) {
        (Some(counter), ..) => counter.finish(&mut recorded),
        (None, Some(turn), Some(file)) => {
            // Poisoned or not, it is held by one at a time.
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = count_file(file, &mut recorded) {
                recorded.write_error.get_or_insert(error);
            }
        }
        _ => {}
    }
    recorded
}

fn count_file(file: &File, recorded: &mut Recorded) -> io::Result<()> {
    let mut counter = Counter::default();
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        match native::read_at(file, &mut piece, at) {
            Ok(0) => break,
            Ok(n) => {
                counter.feed(piece.get(..n).unwrap_or_default());
                at += n as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    counter.finish(recorded);
    Ok(())
}

/// Counts what is in a stream. Its reader goes on behind a damaged block, and remembers the damage.
#[derive(Default)]
struct Counter {
    reader: Reader,
    events: u64,
    received: Received,
    watch: Option<Box<StopEventWatch>>,
}

impl Counter {
    /// Counts what can be decoded by now.
    fn feed(&mut self, bytes: &[u8]) {
        let Self { reader, events, received, watch } = self;
        let mut items = reader.items(bytes);
        let mut count = |item: &Item<'_>| {
            received.item(item);
            *events += u64::from(matches!(item, Item::Event(_)));
        };
        // Behind each damage it goes on. Two loops: what nobody looks at needs not be put together.
        match watch {
            None => while items.for_each(|item| count(&item)).is_err() {},
            Some(watch) => {
                let mut see = |item: &Item<'_>| {
                    watch.item(item);
                    count(item);
                };
                while items.for_each(|item| see(&item)).is_err() {}
            }
        }
    }

    fn finish(mut self, recorded: &mut Recorded) {
        self.reader.finish();
        self.feed(&[]);
        recorded.events = self.events;
        recorded.received = self.received;
        recorded.readable = self.reader.header().is_some();
        recorded.lost = self.reader.lost();
        recorded.partial = self.reader.partial().cloned();
    }
}
