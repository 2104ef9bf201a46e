//! Graphs of heaps in files of any kind: heap dumps of JVMs (hprof), of .NET programs (gcdump), and recordings with the
//! events that describe a heap.

use std::fs::File;
use std::path::Path;

use runtap_clr::HeapEvents;
use runtap_heap::gcdump::{self, GcDumpReader};
use runtap_heap::hprof::{self, HprofReader, RepeatedTexts};
use runtap_heap::{Graph, Incomplete};

use super::{Error, Partial, Recording};

/// The kind of a file that contains a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapFormat {
    /// A heap dump of a JVM.
    Hprof,
    /// A heap graph of a .NET program.
    GcDump,
    /// A recording with events that describe a heap.
    Recording,
}

impl HeapFormat {
    /// Detects a file that contains only a heap, from its first bytes. `None` for other files.
    fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(hprof::MAGIC) {
            Some(Self::Hprof)
        } else if gcdump::is_gcdump(start) {
            Some(Self::GcDump)
        } else {
            None
        }
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hprof => "hprof",
            Self::GcDump => "gcdump",
            Self::Recording => "nettrace",
        }
    }

    /// Returns the kind of the runtime, `jvm` or `dotnet`.
    pub fn runtime(self) -> &'static str {
        if self == Self::Hprof { "jvm" } else { "dotnet" }
    }
}

/// A heap that was read from a file.
#[derive(Debug)]
pub struct Heap {
    /// The kind of the file.
    pub format: HeapFormat,
    /// The objects. [`Graph::incomplete`] states what is missing, for a recording also that it describes no heap.
    pub graph: Graph,
    /// The texts that occur more than once. `None` if the file does not contain the contents of objects.
    pub texts: Option<RepeatedTexts>,
    /// The number of events that the target dropped; 0 for other files than recordings.
    pub lost: u64,
    /// What is missing from the file. `None` if it is complete.
    pub partial: Option<Partial>,
}

/// Reads the heap in a file. [`Graph::incomplete`] states what is missing from it.
///
/// # Errors
/// If the file cannot be read, or is neither a heap dump nor a recording.
pub fn read_heap(path: &Path) -> Result<Heap, Error> {
    heap_of(Recording::open(path)?)
}

/// Reads the heap in an open file. `shown` is its path in messages.
///
/// # Errors
/// See [`read_heap`].
pub fn read_opened_heap(file: File, shown: &Path) -> Result<Heap, Error> {
    heap_of(Recording::of(file, shown.to_owned()))
}

fn heap_of(mut recording: Recording) -> Result<Heap, Error> {
    let path = recording.path().to_owned();
    let mut format = None;
    let (mut hprof, mut gcdump, mut events) = (HprofReader::new(), GcDumpReader::new(), HeapEvents::new());
    recording.chunks(|recording, chunk| {
        let format = *format.get_or_insert_with(|| HeapFormat::of(chunk).unwrap_or(HeapFormat::Recording));
        let fed = match format {
            HeapFormat::Hprof => hprof.feed(chunk),
            HeapFormat::GcDump => {
                gcdump.feed(chunk);
                Ok(())
            }
            HeapFormat::Recording => {
                use runtap_nettrace::Observe as _;
                return recording.items(chunk, &mut |item| events.item(item));
            }
        };
        fed.map_err(|error| Error::Heap { path: path.clone(), error })
    })?;
    let format = format.unwrap_or(HeapFormat::Recording);
    let (graph, texts) = match format {
        HeapFormat::Hprof => {
            let dump = hprof.finish();
            (dump.graph, Some(dump.texts))
        }
        HeapFormat::GcDump => {
            let graph = gcdump.finish().map_err(|error| Error::Heap { path, error })?;
            (graph, None)
        }
        HeapFormat::Recording => {
            recording.must_have_header()?;
            (events.finish().unwrap_or_else(|| Graph::missing(Incomplete::NoHeap)), None)
        }
    };
    let partial = match format {
        HeapFormat::Recording => recording.partial(),
        // A heap dump states in its graph that it is incomplete; the memory limit is known to the recording.
        _ => recording.stopped(),
    };
    Ok(Heap { format, graph, texts, lost: recording.lost(), partial })
}

/// Whether a file contains only a heap, according to its first bytes. False for files that can be read only once.
pub fn is_heap_file(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut start = vec![0; runtap_os::compressed::START_BYTES];
    let read = super::Input::new(file, super::MaxSize::BY_RATIO)
        .and_then(|mut input| std::io::Read::read(&mut input, &mut start));
    read.is_ok_and(|n| HeapFormat::of(start.get(..n).unwrap_or_default()).is_some())
}
