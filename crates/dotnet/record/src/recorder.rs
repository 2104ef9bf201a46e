//! The thread that writes a received stream to disk and counts its events.
//!
//! A separate thread ensures that a slow disk or a blocked pipe does not delay a request to stop. A regular file is written by the
//! thread that reads the socket: the data is still in the processor's cache when it is written and counted, and no thread has to be
//! woken. A pipe may block for any time, so the session's own thread reads the socket in that case. Data is written before it is
//! decoded, so even a stream that can't be decoded is recorded completely.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use runtap_diag::{Chunk, Chunks, Direct, Error};
use runtap_nettrace::{Reader, StreamItem};
use tokio::sync::oneshot;

#[cfg_attr(unix, path = "recorder/unix.rs")]
#[cfg_attr(windows, path = "recorder/windows.rs")]
mod native;

use crate::consumer::StreamConsumer;
use crate::silence::Received;
use crate::stop_event::StopEventWatch;
use runtap_nettrace::Partial;

/// The number of bytes passed to the reader at once. The reader copies them; small pieces stay in the processor's cache and keep the
/// reader's memory small.
const PIECE: usize = 64 << 10;

/// The progress of a recording.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) bytes: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) lost: AtomicU64,
}

/// When events are counted.
#[derive(Debug)]
pub(crate) enum Counting {
    /// As they are received. The watch sees every item.
    Live(Option<Box<StopEventWatch>>),
    /// After the stream has ended, from its file, one recording at a time, because a decoder needs memory and there may be hundreds
    /// of streams. If the file can't be read, events are counted as they are received.
    Afterwards(Arc<Mutex<()>>),
}

/// The result of a recording.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// The number of bytes in the file.
    pub(crate) bytes: u64,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    /// Whether a header was read, without which the file can't be read.
    pub(crate) readable: bool,
    /// What the stream lacks. `None` if it has its end marker.
    pub(crate) partial: Option<Partial>,
    /// Statistics of the received events.
    pub(crate) received: Received,
    /// Whether the reader of the pipe closed it.
    pub(crate) is_unread: bool,
    /// The error that occurred while writing.
    pub(crate) write_error: Option<io::Error>,
    /// The error that occurred while receiving.
    pub(crate) read_error: Option<Error>,
}

/// A recording in progress.
pub(crate) struct Recorder {
    outcome: oneshot::Receiver<Recorded>,
}

impl Recorder {
    /// Starts writing a stream to `sink` up to its end, and updates `progress`.
    pub(crate) fn start(
        chunks: Chunks,
        sink: Sink,
        progress: Arc<Progress>,
        counting: Counting,
    ) -> io::Result<Self> {
        let (tell, outcome) = oneshot::channel();
        thread::Builder::new().name("recorder".into()).spawn(move || {
            // The receiver is gone if a stuck recorder was abandoned.
            let _ = tell.send(record(sink, chunks, &progress, counting));
        })?;
        Ok(Self { outcome })
    }

    /// Waits until the stream has ended or can't be written. Cancel safe.
    pub(crate) async fn ended(&mut self) -> Recorded {
        (&mut self.outcome).await.unwrap_or_default()
    }
}

/// The destination of the stream.
#[derive(Debug)]
pub(crate) enum Sink {
    File(File),
    Stdout,
    Consumer(Box<dyn StreamConsumer>),
}

impl Sink {
    /// Returns the file if it is a regular one.
    fn file(&self) -> Option<&File> {
        match self {
            Self::File(file) if file.metadata().is_ok_and(|meta| meta.is_file()) => Some(file),
            _ => None,
        }
    }

    /// Returns the file if it is a regular one that can also be read.
    fn readable(&self) -> Option<&File> {
        self.file().filter(|file| native::is_readable(file))
    }

    /// Writes as much as possible. Returns the number of bytes written.
    fn write(&mut self, mut bytes: &[u8]) -> (u64, io::Result<()>) {
        let mut written = 0;
        while !bytes.is_empty() {
            let result = match self {
                Self::File(file) => file.write(bytes),
                Self::Stdout => {
                    let mut out = io::stdout().lock();
                    out.write(bytes).and_then(|n| out.flush().map(|()| n))
                }
                Self::Consumer(consumer) => consumer.consume(bytes).map(|()| bytes.len()),
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

/// The source of the stream.
enum Source {
    /// The session's own thread reads the socket.
    Chunks(Chunks),
    /// This thread reads the socket.
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
    if let Sink::Consumer(consumer) = &mut sink
        && recorded.write_error.is_none()
    {
        recorded.write_error = consumer.consume(&[]).err();
    }
    match (live, turn, sink.readable()) {
        (Some(counter), ..) => counter.finish(&mut recorded),
        (None, Some(turn), Some(file)) => {
            // A poisoned lock is still exclusive.
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

/// Counts the events of a stream. After a damaged block, reading continues; the reader remembers the damage.
#[derive(Default)]
struct Counter {
    reader: Reader,
    events: u64,
    received: Received,
    watch: Option<Box<StopEventWatch>>,
}

impl Counter {
    /// Counts what can be decoded so far.
    fn feed(&mut self, bytes: &[u8]) {
        let Self { reader, events, received, watch } = self;
        let mut items = reader.items(bytes);
        let mut count = |item: &StreamItem<'_>| {
            received.item(item);
            *events += u64::from(matches!(item, StreamItem::Event(_)));
        };
        // Continue after damage. Separate loops avoid building items that are not needed.
        match watch {
            None => while items.for_each(|item| count(&item)).is_err() {},
            Some(watch) => {
                let mut see = |item: &StreamItem<'_>| {
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
