//! Detects files of other tools that are commonly mistaken for recordings.

use runtap_os::compressed::START_BYTES;

/// A file format that is not a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignFile {
    /// A heap graph of dotnet-gcdump.
    GcDump,
    /// A heap dump of a JVM.
    Hprof,
    /// PerfView's converted form of a recording.
    Etlx,
    /// A trace of Event Tracing for Windows.
    Etl,
    /// A speedscope profile.
    Speedscope,
    /// A trace for Chromium's viewer or Perfetto.
    Chrome,
    /// A web page, or a flame graph.
    Html,
    /// An archive, for example of PerfView or Visual Studio.
    Zip,
    /// A core dump or program.
    Elf,
    /// A minidump of Windows.
    Minidump,
    /// A `perf` recording.
    Perf,
    /// A Java Flight Recorder recording.
    Jfr,
}

impl ForeignFile {
    /// Detects the format from the first bytes of a file. `None` if unknown.
    pub fn of(start: &[u8]) -> Option<Self> {
        let start = start.get(..START_BYTES).unwrap_or(start);
        let has = |text: &[u8]| start.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text));
        let magics: [(&[u8], Self); 7] = [
            (b"PK\x03\x04", Self::Zip),
            (b"\x7fELF", Self::Elf),
            (b"MDMP", Self::Minidump),
            (b"PERFILE2", Self::Perf),
            (b"FLR\0", Self::Jfr),
            (runtap_heap::hprof::MAGIC, Self::Hprof),
            (b"\x48\0\0\0\x02\0", Self::Etl),
        ];
        if let Some((_, kind)) = magics.into_iter().find(|(magic, _)| start.starts_with(magic)) {
            return Some(kind);
        }
        // Both use the container format of NetPerf, with other objects in it.
        if start.starts_with(b"\x14\0\0\0!FastSerialization.1") {
            return if has(b"MemoryGraph") || has(b"GCHeapDump") {
                Some(Self::GcDump)
            } else if has(b"TraceLog") {
                Some(Self::Etlx)
            } else {
                None
            };
        }
        match start.trim_ascii_start().first()? {
            b'<' if has(b"<html") || has(b"<!doctype html") || has(b"<svg") => Some(Self::Html),
            b'{' if has(b"speedscope") => Some(Self::Speedscope),
            b'{' | b'[' if has(b"\"traceEvents\"") || has(b"\"ph\"") => Some(Self::Chrome),
            _ => None,
        }
    }

    /// Returns the name of the format, with an article.
    pub fn name(self) -> &'static str {
        match self {
            Self::GcDump => "a heap graph (gcdump)",
            Self::Hprof => "a heap dump (hprof)",
            Self::Etlx => "PerfView's converted form of a recording (etlx)",
            Self::Etl => "a trace of Event Tracing for Windows (etl)",
            Self::Speedscope => "a speedscope profile",
            Self::Chrome => "a trace for Chromium's viewer",
            Self::Html => "a web page or a flame graph",
            Self::Zip => "a ZIP archive",
            Self::Elf => "a core dump or a program (ELF)",
            Self::Minidump => "a Windows minidump",
            Self::Perf => "a perf recording",
            Self::Jfr => "a Java Flight Recorder recording",
        }
    }

    /// Suggests what to do with the file.
    pub fn advice(self) -> &'static str {
        match self {
            Self::GcDump | Self::Hprof => "'runtap report FILE heap' reports on heaps",
            Self::Etlx => "specify the .nettrace file that it was converted from",
            Self::Etl => "open it with PerfView or Windows Performance Analyzer",
            Self::Speedscope => {
                "open it at https://www.speedscope.app, or specify the .nettrace file that it was converted from"
            }
            Self::Chrome => {
                "open it at https://ui.perfetto.dev, or specify the .nettrace file that it was converted from"
            }
            Self::Html => "open it in a browser, or specify the .nettrace file that it was converted from",
            Self::Zip => "extract it, and specify the .nettrace file in it",
            Self::Elf | Self::Minidump => "open dumps with dotnet-dump, lldb, WinDbg or Visual Studio",
            Self::Perf => "open it with perf",
            Self::Jfr => "open it with JDK Mission Control or 'jfr'",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_tools_are_recognized() {
        let object =
            |name: &str| [&b"\x14\0\0\0!FastSerialization.1\x05\x05\x01"[..], name.as_bytes()].concat();
        for (start, kind) in [
            (&b"PK\x03\x04"[..], Some(ForeignFile::Zip)),
            (&object("Graphs.MemoryGraph"), Some(ForeignFile::GcDump)),
            (&object("GCHeapDump"), Some(ForeignFile::GcDump)),
            (&object("Microsoft.Diagnostics.Tracing.Etlx.TraceLog"), Some(ForeignFile::Etlx)),
            (&object("Trace"), None),
            (b"\n<!DOCTYPE html>", Some(ForeignFile::Html)),
            (b"<svg>", Some(ForeignFile::Html)),
            (
                br#"{"exporter":"x","$schema":"https://www.speedscope.app/file-format-schema.json"}"#,
                Some(ForeignFile::Speedscope),
            ),
            (br#"{"traceEvents":[]}"#, Some(ForeignFile::Chrome)),
            (br#"{"kind":"header"}"#, None),
            (b"Nettrace", None),
            (b"", None),
        ] {
            assert_eq!(ForeignFile::of(start), kind, "{}", String::from_utf8_lossy(start));
        }
    }
}
