//! A file with the heap of a process that was written: `runtap.heap.file/1` and its text.

use std::io;
use std::path::Path;
use std::time::Duration;

use runtap_convert::source::Heap;
use serde::Serialize;

use crate::document::HeapDocument;
use crate::units::{Bytes, Things};
use crate::{Clean, Print, TextOptions};

/// The document `runtap.heap.file/1`.
#[derive(Debug, Serialize)]
pub struct HeapFileDocument {
    schema: &'static str,
    pid: Option<u64>,
    name: String,
    kind: &'static str,
    /// Path of the file. `None` for standard output.
    pub path: Option<String>,
    format: &'static str,
    bytes: u64,
    /// `None`, like the size of the objects, if the file was not read.
    objects: Option<u64>,
    heap_bytes: Option<u64>,
    complete: bool,
    /// Why the file does not contain the whole heap. `None` if it does.
    pub incomplete_reason: Option<String>,
    duration_ns: u64,
}

impl HeapFileDocument {
    /// Creates the document for a complete heap. `kind` is `dotnet` or `jvm`; `pid` is 0 if unknown; `duration` is the time
    /// until the process had described its heap.
    pub fn new(kind: &'static str, pid: u64, name: String, duration: Duration) -> Self {
        Self {
            schema: "runtap.heap.file/1",
            pid: Some(pid).filter(|pid| *pid > 0),
            name,
            kind,
            path: None,
            format: "",
            bytes: 0,
            objects: None,
            heap_bytes: None,
            complete: true,
            incomplete_reason: None,
            duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Sets the file.
    pub fn set_file(&mut self, path: Option<&Path>, format: &'static str, bytes: u64) {
        self.path = path.map(|path| path.display().to_string());
        (self.format, self.bytes) = (format, bytes);
    }

    /// Sets the numbers of the heap, and what is missing.
    pub fn set_heap(&mut self, heap: &Heap) {
        self.objects = Some(heap.graph.object_count().into());
        self.heap_bytes = Some(heap.graph.total_bytes());
        self.incomplete_reason = HeapDocument::incomplete_reason(heap);
        self.complete = self.incomplete_reason.is_none();
    }
}

impl Print for HeapFileDocument {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        let path = self.path.as_deref().unwrap_or("(stdout)");
        write!(out, "{}  {} as {}", Clean(path), Bytes(self.bytes), self.format)?;
        if let (Some(objects), Some(bytes)) = (self.objects, self.heap_bytes) {
            write!(out, "  {} of {}", Things(objects, "object"), Bytes(bytes))?;
        }
        writeln!(out, "  in {:.1} s", Duration::from_nanos(self.duration_ns).as_secs_f64())
    }
}
