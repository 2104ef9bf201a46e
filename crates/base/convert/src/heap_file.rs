//! The formats of files with a heap, and writing them.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use runtap_heap::gcdump::{self, GcDumpSource};
use runtap_heap::writers::{dot, heapsnapshot, json};
use runtap_heap::{Dominators, Graph};

/// The format of a file with a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapFileFormat {
    /// The format of dotnet-gcdump and `PerfView`.
    GcDump,
    /// The format of JVMs, which only a JVM writes.
    Hprof,
    /// The document `runtap.heap.graph/1`.
    Json,
    /// The largest part of the dominator tree, for Graphviz.
    Dot,
    /// The format of V8.
    HeapSnapshot,
}

impl HeapFileFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::GcDump, Self::Hprof, Self::Json, Self::Dot, Self::HeapSnapshot];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::GcDump => "gcdump",
            Self::Hprof => "hprof",
            Self::Json => "json",
            Self::Dot => "dot",
            Self::HeapSnapshot => "heapsnapshot",
        }
    }

    /// Describes the purpose of the format in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::GcDump => "PerfView, Visual Studio, dotnet-gcdump",
            Self::Hprof => "Eclipse MAT, VisualVM and other tools for Java; only of Java programs",
            Self::Json => "All objects, references and roots as JSON, for scripts",
            Self::Dot => "The objects that keep most memory alive, for Graphviz",
            Self::HeapSnapshot => "Memory panel of the developer tools of Chromium",
        }
    }

    /// Returns the file name extension, including the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::GcDump => ".gcdump",
            Self::Hprof => ".hprof",
            Self::Json => ".heap.json",
            Self::Dot => ".dot",
            Self::HeapSnapshot => ".heapsnapshot",
        }
    }

    /// Returns the format that the extension of an output implies. `None` if unknown.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.into_iter().find(|format| format.name() == extension)
    }

    /// Writes a graph in this format. [`Self::Hprof`] contains values that a graph has not.
    ///
    /// # Errors
    /// If writing fails, or the format cannot contain the graph.
    pub fn write(self, graph: &Graph, source: &GcDumpSource<'_>, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::GcDump => gcdump::write(graph, source, out),
            Self::Json => json::write(graph, out),
            Self::Dot => dot::write(graph, &Dominators::new(graph), dot::DEFAULT_OBJECTS, out),
            Self::HeapSnapshot => heapsnapshot::write(graph, out),
            Self::Hprof => Err(io::Error::other("only a JVM writes hprof files")),
        }
    }
}

impl fmt::Display for HeapFileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
