//! Threads of Nettrace 6, by the index that events refer to. Source: nettrace format, "V6, blocks".

use std::sync::Arc;

use hashbrown::HashMap;
use runtap_wire::{DecodeError, DecodeErrorKind, Reader, Writer};

use crate::text::{string, write_string};

/// A thread that a stream of Nettrace 6 describes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// The index that events use until the stream removes the thread.
    pub index: u64,
    /// The name of the thread.
    pub name: Option<String>,
    /// The operating system's id of its process.
    pub process_id: Option<u64>,
    /// The operating system's id of the thread.
    pub thread_id: Option<u64>,
    /// Further names and values.
    pub attributes: Vec<(String, String)>,
}

/// The kinds of items in the description of a thread.
mod item {
    pub(super) const NAME: u8 = 1;
    pub(super) const PROCESS_ID: u8 = 2;
    pub(super) const THREAD_ID: u8 = 3;
    pub(super) const KEY_VALUE: u8 = 4;
}

impl Thread {
    /// Creates a thread without a description.
    pub fn new(index: u64) -> Self {
        Self { index, ..Self::default() }
    }

    /// Reads a row, without its size. Items after one of an unknown kind are ignored.
    pub(crate) fn decode(mut r: Reader<'_>) -> Result<Self, DecodeError> {
        let mut thread = Self::new(r.varu64("thread index")?);
        while !r.is_empty() {
            match r.u8("kind of a thread's item")? {
                item::NAME => thread.name = Some(string(&mut r, "thread name")?.into_owned()),
                item::PROCESS_ID => thread.process_id = Some(r.varu64("process id")?),
                item::THREAD_ID => thread.thread_id = Some(r.varu64("thread id")?),
                item::KEY_VALUE => {
                    let key = string(&mut r, "name of an attribute")?.into_owned();
                    thread.attributes.push((key, string(&mut r, "value of an attribute")?.into_owned()));
                }
                _ => break,
            }
        }
        Ok(thread)
    }

    /// Writes a row with its size. `None` if the row is too long.
    pub(crate) fn encode(&self, w: &mut Writer) -> Option<()> {
        let mut row = Writer::new();
        row.varu64(self.index);
        if let Some(name) = &self.name {
            write_string(name, row.u8(item::NAME));
        }
        for (kind, id) in [(item::PROCESS_ID, self.process_id), (item::THREAD_ID, self.thread_id)] {
            if let Some(id) = id {
                row.u8(kind).varu64(id);
            }
        }
        for (key, value) in &self.attributes {
            write_string(key, row.u8(item::KEY_VALUE));
            write_string(value, &mut row);
        }
        w.u16(u16::try_from(row.len()).ok()?).bytes(row.as_bytes());
        Some(())
    }
}

/// The approximate memory of a thread besides its texts, in bytes.
const OVERHEAD: usize = 192;

/// The threads that events can refer to at the current position of the stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadTable {
    /// Each thread with its approximate size in memory, shared to make copies of the table cheap.
    threads: HashMap<u64, (Arc<Thread>, usize), foldhash::fast::RandomState>,
    /// The sum of these sizes.
    bytes: usize,
}

impl ThreadTable {
    #[inline]
    pub(crate) fn get(&self, index: u64) -> Option<&Thread> {
        self.threads.get(&index).map(|(thread, _)| &**thread)
    }

    /// Adds a thread whose row has `size` bytes. The result tells whether its index was in use.
    pub(crate) fn insert(
        &mut self,
        thread: Thread,
        size: usize,
        max_bytes: usize,
    ) -> Result<bool, DecodeErrorKind> {
        let size = size + OVERHEAD + thread.attributes.len() * size_of::<(String, String)>();
        let bytes = self.bytes + size;
        if bytes > max_bytes {
            return Err(DecodeErrorKind::TooLarge { value: bytes as u64, limit: max_bytes as u64 });
        }
        let old = self.threads.insert(thread.index, (Arc::new(thread), size));
        self.bytes = bytes - old.as_ref().map_or(0, |(_, size)| *size);
        Ok(old.is_some())
    }

    pub(crate) fn remove(&mut self, index: u64) {
        if let Some((_, size)) = self.threads.remove(&index) {
            self.bytes -= size;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.threads.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip() {
        let mut thread = Thread::new(300);
        for step in 0..5 {
            match step {
                1 => thread.name = Some("wörker".into()),
                2 => thread.process_id = Some(1 << 40),
                3 => thread.thread_id = Some(0),
                4 => thread.attributes = vec![("k".into(), "v".into()), (String::new(), String::new())],
                _ => {}
            }
            let mut w = Writer::new();
            assert_eq!(thread.encode(&mut w), Some(()));
            assert_eq!(usize::from(w.as_bytes()[0]), w.len() - 2);
            let row = &w.as_bytes()[2..];
            assert_eq!(Thread::decode(Reader::new(row)).unwrap(), thread);
            for n in 0..row.len() {
                let cut = Thread::decode(Reader::new(&row[..n]));
                assert!(cut.map_or_else(|error| error.is_incomplete(), |cut| cut != thread));
            }
        }
        thread.name = Some("x".repeat(70_000));
        assert_eq!(thread.encode(&mut Writer::new()), None);
        let unknown = [7, 3, 9, 99, 1];
        assert_eq!(Thread::decode(Reader::new(&unknown)).unwrap().thread_id, Some(9));
    }

    #[test]
    fn the_table_counts_its_bytes() {
        let mut table = ThreadTable::default();
        // Two threads, and half of one.
        let limit = 2 * (OVERHEAD + 10) + 50;
        assert_eq!(table.insert(Thread::new(1), 10, limit), Ok(false));
        assert_eq!(table.insert(Thread::new(2), 10, limit), Ok(false));
        assert!(table.insert(Thread::new(3), 10, limit).is_err());
        table.remove(1);
        assert_eq!(table.insert(Thread::new(2), 15, limit), Ok(true));
        assert_eq!(table.insert(Thread::new(3), 10, limit), Ok(false));
        assert!(table.get(1).is_none() && table.get(3).is_some());
        let mut many = Thread::new(4);
        many.attributes = vec![Default::default(); 10];
        table.remove(3);
        assert!(table.insert(many, 10, limit).is_err(), "what it holds counts, not what it was sent as");
    }
}
