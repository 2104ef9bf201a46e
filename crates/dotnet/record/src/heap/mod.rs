//! Takes the heaps of running programs.
//!
//! - [`take_heap`]: of a .NET process from the events of a collection that a session induces, of a Java program from the
//!   heap dump that its JVM writes (on Linux).
//! - [`HeapFile`]: an output that is opened before the program is disturbed, and written afterwards.
//! - [`class_histogram`]: only the sums by class of a JVM.
//! - [`take_async_snapshot`]: the async methods of a .NET process that wait.
//!
//! The module prints nothing and does not search for processes.

mod async_methods;
#[cfg(target_os = "linux")]
mod java;
mod session;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runtap_convert::HeapFileFormat;
use runtap_convert::source::Heap;
use runtap_heap::gcdump::GcDumpSource;
use runtap_os::output::{Destination, NAMES_TRIED, OutputSink, is_free, numbered, plain_name};
use runtap_target::{ManagedTarget, ResolvedTarget, local_name};

use crate::Error;
use crate::stops::Stops;

pub use self::async_methods::{AsyncSnapshot, take_async_snapshot};
#[cfg(target_os = "linux")]
pub use self::java::class_histogram;

/// How a heap is taken.
#[derive(Debug, Clone, Copy)]
pub struct HeapRequest {
    /// .NET: the size of the runtime's buffer in MB.
    pub buffer_mb: u32,
    /// .NET: the longest time without any data from the runtime.
    pub patience: Duration,
    /// Whether the objects are needed apart from the file.
    pub needs_graph: bool,
}

impl Default for HeapRequest {
    fn default() -> Self {
        Self { buffer_mb: 1024, patience: Duration::from_secs(30), needs_graph: true }
    }
}

/// The process whose heap is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapProcess {
    /// The process id; 0 if unknown.
    pub pid: u64,
    /// The name of the program.
    pub name: String,
}

impl HeapProcess {
    /// Returns the id and the name of a process, for which a .NET process is queried.
    pub async fn of(target: &ManagedTarget) -> Self {
        match target {
            ManagedTarget::Dotnet(target) => Self::of_dotnet(target).await,
            ManagedTarget::Jvm(target) => Self { pid: target.pid().into(), name: target.name() },
        }
    }

    async fn of_dotnet(target: &ResolvedTarget) -> Self {
        // .NET Core 3 does not support the command.
        let info = target.client.process_info().await.ok();
        let own = || info.as_ref().map(|info| info.process_id);
        let pid = target.pid().map(u64::from).or_else(own).unwrap_or(0);
        let name = info.as_ref().and_then(|info| info.entry_assembly.clone()).filter(|name| !name.is_empty());
        let local = || target.process.as_ref().map(local_name);
        Self { pid, name: name.or_else(local).unwrap_or_else(|| "process".to_owned()) }
    }
}

/// What happens while a heap is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapSignal {
    /// The runtime has dropped events, so a second session is started.
    Again {
        /// The size of the buffer of the second session in MB.
        buffer_mb: u32,
    },
    /// A part of the heap has been received or written.
    Progress {
        /// The number of bytes.
        bytes: u64,
    },
}

/// A heap that was taken.
#[derive(Debug)]
pub struct TakenHeap {
    /// The process.
    pub process: HeapProcess,
    /// The objects. [`Graph::incomplete`](runtap_heap::Graph::incomplete) states what is missing. `None` if they were not
    /// needed.
    pub heap: Option<Heap>,
    /// The file that was written already.
    pub written: Option<WrittenHeap>,
    /// The time from the request to the last object.
    pub duration: Duration,
}

/// A file that was written.
#[derive(Debug, Clone)]
pub struct WrittenHeap {
    /// The format.
    pub format: HeapFileFormat,
    /// The path. `None` for standard output.
    pub path: Option<PathBuf>,
    /// The size in bytes.
    pub bytes: u64,
}

/// Why there is no heap.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeapError {
    /// The session failed, or a file cannot be written.
    #[error(transparent)]
    Session(#[from] Error),
    /// The JVM cannot be attached to, or does not write its heap.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Attach(#[from] runtap_jvm_attach::AttachError),
    /// The sums by class have another format.
    #[error("the JVM replied in an unknown format: {0}")]
    Histogram(runtap_heap::DecodeError),
    /// The heaps of Java programs can be taken only on Linux.
    #[error("the heap of a Java program can be taken only on Linux")]
    JavaNotSupported,
    /// Only JVMs write this format.
    #[error("only Java programs have heap dumps in the format hprof; choose another format")]
    NotHprof,
    /// The runtime has not described its heap.
    #[error("the runtime sent no objects within {} s: it does not collect garbage now, or it is too busy", .0.as_secs())]
    NoHeap(Duration),
    /// The session has ended without a heap.
    #[error(
        "the session ended without a heap: the process has exited, or its runtime does not support heap events"
    )]
    Ended,
    /// A stop was requested.
    #[error("interrupted")]
    Interrupted,
}

/// Takes the heap of a process. A file in the format of JVMs is written and taken out of `file`; other files are to be
/// [written](HeapFile::write) from the objects.
///
/// # Errors
/// Returns an error if there is no heap at all. A heap of which a part is missing states that.
pub async fn take_heap(
    target: &ManagedTarget,
    process: HeapProcess,
    request: HeapRequest,
    file: &mut Option<HeapFile>,
    stops: &Stops,
    tell: &dyn Fn(HeapSignal),
) -> Result<TakenHeap, HeapError> {
    match target {
        ManagedTarget::Dotnet(target) => {
            if file.as_ref().is_some_and(|file| file.format == HeapFileFormat::Hprof) {
                return Err(HeapError::NotHprof);
            }
            session::take(target, process, request, stops, tell).await
        }
        #[cfg(target_os = "linux")]
        ManagedTarget::Jvm(target) => {
            java::take(target, process, file, request.needs_graph, stops, tell).await
        }
        #[cfg(not(target_os = "linux"))]
        ManagedTarget::Jvm(_) => Err(HeapError::JavaNotSupported),
    }
}

/// An open output for a heap.
#[derive(Debug)]
pub struct HeapFile {
    format: HeapFileFormat,
    sink: OutputSink,
}

impl HeapFile {
    /// Opens an output: the given path, a file named after the process and the time in the given directory or the current
    /// one, or standard output (`-`). Without a format, the extension of the path or the kind of the process determines it.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn open(
        output: Option<&Path>,
        format: Option<HeapFileFormat>,
        target: &ManagedTarget,
        process: &HeapProcess,
        time: &str,
    ) -> Result<Self, Error> {
        let default = match target {
            ManagedTarget::Dotnet(_) => HeapFileFormat::GcDump,
            ManagedTarget::Jvm(_) => HeapFileFormat::Hprof,
        };
        let format = format.or_else(|| HeapFileFormat::of_path(output?)).unwrap_or(default);
        let to = match output {
            Some(path) if path == Path::new("-") => Destination::Stdout,
            path => Destination::File(path_of(path, process, time, format)),
        };
        Ok(Self { format, sink: OutputSink::open(&to)? })
    }

    /// Writes a heap. Sizes that a format cannot contain are its greatest ones.
    ///
    /// # Errors
    /// Returns an error if writing fails, or if the format cannot contain the heap.
    pub fn write(self, heap: &Heap, process: &HeapProcess, now: SystemTime) -> Result<WrittenHeap, Error> {
        let since_1970 = now.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() / 100);
        let source = GcDumpSource {
            process: &process.name,
            process_id: i32::try_from(process.pid).unwrap_or(0),
            ticks: i64::try_from(UNIX_EPOCH_TICKS + since_1970).unwrap_or(0),
            is_64_bit: true,
            ..GcDumpSource::default()
        };
        let mut out = self.sink.begin()?;
        self.format.write(&heap.graph, &source, &mut out).map_err(|error| out.failed(error))?;
        let (path, bytes) = out.finish()?;
        Ok(WrittenHeap { format: self.format, path, bytes })
    }
}

/// The time from the year 1 to 1970 in units of 100 ns.
const UNIX_EPOCH_TICKS: u128 = 621_355_968_000_000_000;

/// Returns the path of an output: the given one, or an unused name in the given directory or the current one.
fn path_of(output: Option<&Path>, process: &HeapProcess, time: &str, format: HeapFileFormat) -> PathBuf {
    let folder = match output {
        Some(path) if !path.is_dir() => return path.to_owned(),
        Some(folder) => folder,
        None => Path::new(""),
    };
    let HeapProcess { name, pid } = process;
    let base = folder.join(format!("{}_{pid}_{time}", plain_name(name)));
    let path = |n| numbered(&base, n, format.extension());
    (1..=NAMES_TRIED).map(path).find(|path| is_free(path)).unwrap_or_else(|| path(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_the_process_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let process = HeapProcess { pid: 7, name: "my app".to_owned() };
        let path = || path_of(Some(folder.path()), &process, "20260101_000000", HeapFileFormat::GcDump);
        let first = path();
        assert!(first.to_str().unwrap().ends_with("_7_20260101_000000.gcdump"), "{first:?}");
        std::fs::write(&first, "").unwrap();
        assert!(path().to_str().unwrap().ends_with("_7_20260101_000000_2.gcdump"));
        let given = Path::new("x/y.gcdump");
        assert_eq!(path_of(Some(given), &process, "", HeapFileFormat::Json), given);
    }
}
