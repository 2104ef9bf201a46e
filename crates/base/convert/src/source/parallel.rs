//! Reads a recording on disk with several threads: each reads one part after another, and the results are joined in
//! file order. Files that are too small or have a single part are read sequentially instead.
//!
//! Parts are read into small buffers that stay in the processor's cache instead of being mapped: this avoids page
//! faults, signals if the file is truncated meanwhile, and memory use that grows with the file.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use runtap_nettrace::{Join, Part, Reader, Scan, StreamItem};

use crate::source::budget::Exceeded;

/// Number of bytes per read.
const PIECE: usize = 1 << 20;
/// Minimum size of a part in bytes.
const MIN_PART: u64 = 2 << 20;
/// Maximum size of a part in bytes; results wait in memory for preceding parts.
const MAX_PART: u64 = 16 << 20;
/// Number of parts per thread, so that all threads finish at about the same time.
const PARTS_PER_THREAD: u64 = 8;
/// Maximum number of results per thread that wait for preceding parts.
const WAITING_PER_THREAD: usize = 2;

/// The result of reading a file.
pub(crate) struct ReadResult {
    /// The joined reader of all parts read.
    pub(crate) reader: Reader,
    /// The offset at which reading stopped before the end of the file, and the reason.
    pub(crate) exceeded: Option<(u64, Exceeded)>,
}

/// Reads a file into `whole` with `threads` threads. `part` creates the observer of a part. Stops when
/// `exceeded_limit` returns a limit. Returns `None` and does nothing if the file is not suitable.
pub(crate) fn read<T: Join + Send>(
    file: &File,
    threads: usize,
    whole: &mut T,
    part: impl Fn() -> T + Sync,
    exceeded_limit: impl Fn() -> Option<Exceeded> + Sync,
) -> io::Result<Option<ReadResult>> {
    let length = file.metadata().map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 });
    if threads < 2 || length < 2 * MIN_PART {
        return Ok(None);
    }
    let size = (length / (threads as u64 * PARTS_PER_THREAD)).clamp(MIN_PART, MAX_PART);
    let parts = scan(file, length, size)?;
    if parts.len() < 2 {
        return Ok(None);
    }

    let next = AtomicUsize::new(0);
    let queue = JoinQueue {
        state: Mutex::new(JoinState {
            whole,
            reader: None,
            joined: 0,
            waiting: BTreeMap::new(),
            is_stopped: false,
            exceeded: None,
        }),
        changed: Condvar::new(),
        max_ahead: threads * WAITING_PER_THREAD,
    };
    let work = || -> io::Result<()> {
        let guard = WorkerGuard { queue: &queue, is_done: Cell::new(false) };
        let mut buffer = vec![0; PIECE];
        while let Some((index, range)) = take(&parts, &next).filter(|(index, _)| queue.wait_for_turn(*index))
        {
            if let Some(exceeded) = exceeded_limit() {
                queue.stop(exceeded);
                break;
            }
            let mut part = part();
            let reader = read_part(file, range, &mut buffer, |item| part.item(item))?;
            queue.put(index, part, reader);
        }
        guard.is_done.set(true);
        Ok(())
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut result = work();
        for other in others {
            let joined = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(joined);
        }
        result
    })?;

    let JoinState { whole, mut reader, joined, mut exceeded, .. } =
        queue.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut buffer = vec![0; PIECE];
    let mut end = 0;
    for (index, part) in parts.iter().enumerate() {
        end = part.range().start;
        if index < joined {
            continue;
        }
        // Read at least one part, so that the header is known.
        exceeded = exceeded.or_else(&exceeded_limit).filter(|_| index > 0);
        if exceeded.is_some() {
            break;
        }
        join(&mut reader, read_part(file, part, &mut buffer, |item| whole.item(item))?);
    }
    Ok(reader.map(|reader| ReadResult { reader, exceeded: exceeded.map(|exceeded| (end, exceeded)) }))
}

/// Collects the results of parts and joins them in file order.
struct JoinQueue<'a, T> {
    state: Mutex<JoinState<'a, T>>,
    /// Signals that a part was joined or that reading is over.
    changed: Condvar,
    /// Maximum number of parts ahead of the last joined one.
    max_ahead: usize,
}

struct JoinState<'a, T> {
    whole: &'a mut T,
    reader: Option<Reader>,
    /// Number of joined parts.
    joined: usize,
    /// Results that wait for preceding parts.
    waiting: BTreeMap<usize, (T, Reader)>,
    /// Whether the remaining parts are read sequentially or not at all.
    is_stopped: bool,
    /// The exceeded limit, if reading was stopped by it.
    exceeded: Option<Exceeded>,
}

impl<T: Join + Send> JoinQueue<'_, T> {
    /// Waits until a part may be started. Returns false if no more parts are needed.
    fn wait_for_turn(&self, index: usize) -> bool {
        let mut state = self.lock();
        while !state.is_stopped && index >= state.joined + self.max_ahead {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_stopped
    }

    /// Stores the result of a part and joins all results that are ready.
    fn put(&self, index: usize, part: T, reader: Reader) {
        let mut state = self.lock();
        state.waiting.insert(index, (part, reader));
        while !state.is_stopped {
            let next = state.joined;
            let Some((part, reader)) = state.waiting.remove(&next) else { break };
            if state.whole.join(part) {
                join(&mut state.reader, reader);
                state.joined += 1;
            } else {
                state.is_stopped = true;
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl<'a, T> JoinQueue<'a, T> {
    /// Prevents further parts from being started.
    fn stop(&self, exceeded: Exceeded) {
        let mut state = self.lock();
        state.is_stopped = true;
        state.exceeded.get_or_insert(exceeded);
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinState<'a, T>> {
        // A panicking thread is reported when the threads are joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops the other threads when it is dropped before its thread is done: they may wait for a part of that thread.
struct WorkerGuard<'a, 'b, T> {
    queue: &'a JoinQueue<'b, T>,
    is_done: Cell<bool>,
}

impl<T> Drop for WorkerGuard<'_, '_, T> {
    fn drop(&mut self) {
        if !self.is_done.get() {
            self.queue.lock().is_stopped = true;
            self.queue.changed.notify_all();
        }
    }
}

fn join(whole: &mut Option<Reader>, next: Reader) {
    match whole {
        None => *whole = Some(next),
        Some(whole) => whole.join(next),
    }
}

/// Returns the next part that has not been started.
fn take<'a>(parts: &'a [Part], next: &AtomicUsize) -> Option<(usize, &'a Part)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, parts.get(index)?))
}

fn scan(file: &File, length: u64, size: u64) -> io::Result<Vec<Part>> {
    let mut scan = Scan::new(length, size);
    let mut buffer = Vec::new();
    while let Some(range) = scan.next_range() {
        buffer.resize(usize::try_from(range.end - range.start).unwrap_or(usize::MAX), 0);
        let n = read_at(file, &mut buffer, range.start)?;
        scan.handle(buffer.get(..n).unwrap_or_default());
    }
    Ok(scan.finish())
}

fn read_part(
    file: &File,
    part: &Part,
    buffer: &mut [u8],
    mut visit: impl FnMut(&StreamItem<'_>),
) -> io::Result<Reader> {
    let mut reader = part.reader();
    for range in part.feed_ranges() {
        reader.seek(range.start);
        let Range { mut start, end } = range;
        while start < end {
            let left = usize::try_from(end - start).unwrap_or(usize::MAX);
            let most = buffer.len().min(left);
            let n = read_at(file, buffer.get_mut(..most).unwrap_or_default(), start)?;
            if n == 0 {
                break;
            }
            let mut items = reader.items(buffer.get(..n).unwrap_or_default());
            // The reader continues after damage and records it.
            while items.for_each(|item| visit(&item)).is_err() {}
            start += n as u64;
        }
    }
    reader.finish();
    let mut rest = reader.items(&[]);
    while rest.for_each(|item| visit(&item)).is_err() {}
    drop(rest);
    Ok(reader)
}

/// Fills the buffer from an offset, as far as the file goes.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    #[cfg(unix)]
    let read_once = std::os::unix::fs::FileExt::read_at;
    #[cfg(windows)]
    let read_once = std::os::windows::fs::FileExt::seek_read;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read_once(file, rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use runtap_nettrace::{EventToWrite, Metadata, Observe, TraceHeader, Writer};

    use super::*;

    /// Records the times of all events.
    #[derive(Debug, Default)]
    struct Seen {
        times: Vec<u64>,
        joined: usize,
        /// Rejects further parts after this number.
        most: usize,
    }

    impl Observe for Seen {
        fn item(&mut self, item: &StreamItem<'_>) {
            if let StreamItem::Event(event) = item {
                self.times.push(event.timestamp);
            }
        }
    }

    impl Join for Seen {
        fn join(&mut self, next: Self) -> bool {
            let takes = self.joined < self.most;
            if takes {
                self.joined += 1;
                self.times.extend(next.times);
            }
            takes
        }
    }

    /// A file with several parts, and the number of its events.
    fn recording() -> (File, u64) {
        let mut writer = Writer::new(&TraceHeader::new(0, 0, 1_000_000_000));
        let metadata_id = writer.define_event(&Metadata::new("Made-Up", 1, "")).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let events = 12_000;
        for timestamp in 0..events {
            let payload = &[7; 1000];
            let event =
                EventToWrite { metadata_id, timestamp, payload, thread_id: 1, ..EventToWrite::default() };
            writer.event(&event).unwrap();
            file.write_all(&writer.take_output()).unwrap();
        }
        file.write_all(&writer.finish()).unwrap();
        (file, events)
    }

    #[test]
    fn parts_are_joined_in_file_order_and_rejected_ones_are_read_again() {
        let (file, events) = recording();
        for most in [usize::MAX, 0, 1, 3] {
            let made = AtomicUsize::new(0);
            let mut whole = Seen { most, ..Seen::default() };
            let part = || {
                made.fetch_add(1, Ordering::Relaxed);
                Seen::default()
            };
            let ReadResult { reader, .. } = read(&file, 2, &mut whole, part, || None).unwrap().unwrap();
            assert!(reader.is_complete() && reader.lost() == 0);
            assert_eq!(whole.times, (0..events).collect::<Vec<_>>());
            assert_eq!(whole.joined, made.load(Ordering::Relaxed).min(most));
            assert!(whole.joined > 3 || whole.joined == most);
        }
    }

    #[test]
    fn reading_stops_at_the_memory_limit() {
        let (file, events) = recording();
        let mut whole = Seen { most: usize::MAX, ..Seen::default() };
        let asked = AtomicUsize::new(0);
        let exceeded_limit = || (asked.fetch_add(1, Ordering::Relaxed) >= 3).then_some(Exceeded { most: 1 });
        let read = read(&file, 2, &mut whole, Seen::default, exceeded_limit).unwrap().unwrap();
        let (offset, _) = read.exceeded.unwrap();
        let seen = whole.times.len() as u64;
        assert!(seen > 0 && seen < events, "{seen} of {events}");
        assert_eq!(whole.times, (0..seen).collect::<Vec<_>>(), "the beginning of the file");
        assert!(offset > 0 && offset < file.metadata().unwrap().len());
    }

    #[test]
    fn a_failing_thread_stops_the_others() {
        let (file, _) = recording();
        let made = AtomicUsize::new(0);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut whole = Seen { most: usize::MAX, ..Seen::default() };
            let part = || {
                assert_ne!(made.fetch_add(1, Ordering::Relaxed), 0, "the first part is never joined");
                Seen::default()
            };
            read(&file, 2, &mut whole, part, || None).map(drop)
        }));
        assert!(result.is_err());
    }
}
