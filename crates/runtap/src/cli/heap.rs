//! The options of `runtap heap`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use runtap_convert::HeapFileFormat;
use runtap_heap::TypeOrder;
use runtap_text::units::{parse_duration, parse_megabytes, parse_rows};

use super::choices::choice;
use super::{All, ResultFormat, Target};

#[derive(Debug, Args)]
#[command(after_help = "\
The program is suspended while its runtime collects all garbage and describes the remaining objects: 60 ms per \
million objects in .NET, more in a JVM. Exit code 5: a part of the heap is missing.

Examples:
  runtap heap 1234                      .NET: a .gcdump file, Java: .hprof
  runtap heap 1234 --report             the objects by type
  runtap heap 1234 --report --path MyApp.Cache
  runtap heap -n MyService -o my.heapsnapshot
  runtap heap 1234 --quick              Java: number and size by class")]
pub(crate) struct Heap {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) all: All,
    /// Show the objects by type; without -o and --to, no file is written
    #[arg(long, help_heading = "Result")]
    pub(crate) report: bool,
    /// Java: show only number and size by class, which needs no heap dump
    #[arg(long, conflicts_with_all = ["output", "to", "path", "report"], help_heading = "Result")]
    pub(crate) quick: bool,
    /// The number by which types are sorted [default: bytes]
    #[arg(long, value_name = "WHAT", value_parser = choice::<TypeOrder>(), help_heading = "Result")]
    pub(crate) sort: Option<TypeOrder>,
    /// With --report: show a shortest path from a root to an object of this type, or at this address (0x…)
    #[arg(long, value_name = "TYPE", requires = "report", help_heading = "Result")]
    pub(crate) path: Option<String>,
    /// Maximum number of rows of each list [default: 30 in a table, all in JSON]
    #[arg(long, value_name = "N", value_parser = parse_rows, help_heading = "Result")]
    pub(crate) number: Option<usize>,
    /// Output file, or a directory for it; '-' is stdout [default: `NAME_PID_yyyyMMdd_HHmmss`]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the file [default: by the extension of -o; otherwise gcdump for .NET and hprof for Java]
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_parser = choice::<HeapFileFormat>(), help_heading = "Output")]
    pub(crate) to: Option<HeapFileFormat>,
    /// .NET: size of the target's buffer
    #[arg(long, value_name = "MB", default_value = "1024", value_parser = parse_megabytes, help_heading = "Session")]
    pub(crate) buffersize: u32,
    /// .NET: give up if the runtime sends nothing for this time
    #[arg(short, long, value_name = "TIME", default_value = "30s", value_parser = parse_duration, help_heading = "Session")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) format: ResultFormat,
}
