//! Files that are often taken for recordings: recognized by their first bytes. Refuses to read them.

use runtap_os::compressed::LOOKED_AT;

/// A kind of file that is no recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForeignFile {
    /// A heap graph of dotnet-gcdump.
    GcDump,
    /// A recording that PerfView has converted for itself.
    Etlx,
    /// A trace of Event Tracing for Windows.
    Etl,
    /// A profile for speedscope.
    Speedscope,
    /// A trace for Chromium's viewer or Perfetto.
    Chrome,
    /// A web page, or a flame graph.
    Html,
    /// An archive, such as PerfView's and Visual Studio's.
    Zip,
    /// A core dump, or a program.
    Elf,
    /// A minidump of Windows.
    Minidump,
    /// A recording of `perf`.
    Perf,
    /// A recording of Java Flight Recorder.
    Jfr,
}

impl ForeignFile {
    /// The kind of a file that begins like this; `None` if it is none of these kinds.
    pub fn of(start: &[u8]) -> Option<Self> {
        let start = start.get(..LOOKED_AT).unwrap_or(start);
        let has = |text: &[u8]| start.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text));
        let magics: [(&[u8], Self); 6] = [
            (b"PK\x03\x04", Self::Zip),
            (b"\x7fELF", Self::Elf),
            (b"MDMP", Self::Minidump),
            (b"PERFILE2", Self::Perf),
            (b"FLR\0", Self::Jfr),
            (b"\x48\0\0\0\x02\0", Self::Etl),
        ];
        if let Some((_, kind)) = magics.into_iter().find(|(magic, _)| start.starts_with(magic)) {
            return Some(kind);
        }
        // Both have the container of NetPerf, and other objects in it.
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

    /// What it is, with an article.
    pub fn name(self) -> &'static str {
        match self {
            Self::GcDump => "a heap graph (gcdump)",
            Self::Etlx => "a file that PerfView has converted for itself (etlx)",
            Self::Etl => "a trace of Event Tracing for Windows (etl)",
            Self::Speedscope => "a speedscope profile",
            Self::Chrome => "a trace for Chromium's viewer",
            Self::Html => "a web page or a flame graph",
            Self::Zip => "a zip archive",
            Self::Elf => "a core dump or a program (ELF)",
            Self::Minidump => "a minidump of Windows",
            Self::Perf => "a recording of perf",
            Self::Jfr => "a recording of Java Flight Recorder",
        }
    }

    /// What to do with it, or instead.
    pub fn advice(self) -> &'static str {
        match self {
            Self::GcDump => "'dotnet-gcdump report', PerfView or Visual Studio open it",
            Self::Etlx => "give the .nettrace file that it was made from",
            Self::Etl => "PerfView and Windows Performance Analyzer open it",
            Self::Speedscope => {
                "https://www.speedscope.app opens it; give the .nettrace file that it was made from"
            }
            Self::Chrome => "https://ui.perfetto.dev opens it; give the .nettrace file that it was made from",
            Self::Html => "a browser opens it; give the .nettrace file that it was made from",
            Self::Zip => "unpack it, and give the .nettrace file in it",
            Self::Elf | Self::Minidump => "dotnet-dump, lldb, WinDbg or Visual Studio open a dump",
            Self::Perf => "perf opens it",
            Self::Jfr => "JDK Mission Control and 'jfr' open it",
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
