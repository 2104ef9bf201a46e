//! Advice on the options that record the data of a view or report, for recordings that lack this data.

use std::error::Error;
use std::path::Path;

use runtap_clr::report::ReportKind;
use runtap_convert::failure::{Failure, SinkError};
use runtap_model::{Message, Trace, View};

use crate::Missing;
use crate::output::causes;
use crate::units::{Count, Things};

/// Why a recording has no method names, and how to record them.
pub const NAMES: &str = "The runtime sends them only if the process is still running when the recording stops, and not with \
     '--rundown false'; a truncated recording lacks them. Stop the recording first with --duration, or record with --method-names \
     (which covers methods that are compiled during the recording, but not precompiled code).";

/// If the view `cpu` shows less than one in this number of all samples, a note mentions the others.
const FEW_SAMPLES_RATIO: u64 = 10;

/// Returns the view that shows the CPU samples of a trace if none was requested, and what to know about it: all samples if
/// the view `cpu` has almost none.
pub fn default_view(trace: &Trace) -> (View, Option<Message>) {
    let (shown, all) = (trace.ticks(View::Cpu), trace.ticks(View::ThreadTime));
    if trace.shows_little_in(View::Cpu) {
        let view = View::Cpu;
        let text = format!(
            "only {} of {} samples are in the view '{view}', so all of them are shown; use --view cpu to show only those",
            Count(shown),
            Count(all)
        );
        return (View::ThreadTime, Some(Message::Warning(text)));
    }
    let message = if let Some(doubtful) = trace.doubtful_ticks() {
        Some(Message::Warning(doubtful_samples(shown, doubtful)))
    } else if shown > 0 && shown.saturating_mul(FEW_SAMPLES_RATIO) < all {
        Some(Message::Note(few_samples(shown, all)))
    } else {
        None
    };
    (View::Cpu, message)
}

/// Returns the view in which two recordings are compared if none was requested, and what to know about it: all samples if the
/// view `cpu` has almost none of one recording.
pub fn compared_view(recordings: [(&Trace, &Path); 2]) -> (View, Vec<Message>) {
    if recordings.iter().any(|(trace, _)| trace.shows_little_in(View::Cpu)) {
        let text = "Less than 1% of the samples are in view 'cpu', so all samples are compared; use --view cpu to compare only those in \
                    that view.";
        return (View::ThreadTime, vec![Message::Warning(text.to_owned())]);
    }
    let doubt = |(trace, file): (&Trace, &Path)| {
        let doubt = doubtful_samples(trace.ticks(View::Cpu), trace.doubtful_ticks()?);
        Some(Message::Warning(format!("{}: {doubt}", file.display())))
    };
    (View::Cpu, recordings.into_iter().filter_map(doubt).collect())
}

/// Formats the warning that the view 'cpu' shows only some of the samples.
fn few_samples(shown: u64, all: u64) -> String {
    format!(
        "View 'cpu' shows {} of {} samples; the runtime marked the others as waiting. Use --view thread-time to include them.",
        Count(shown),
        Count(all)
    )
}

/// Why a target dropped events although its buffer was never full.
pub const TOO_LARGE: &str = "because their size was above 64 KiB: its buffer was never full, and .NET drops events of that size with any \
     --buffersize; only the program can make them smaller";

/// Why a target dropped events, if both reasons are possible.
pub const FULL_OR_TOO_LARGE: &str = "because its buffer was full (use a larger --buffersize, or record fewer events), or because their size was above \
     64 KiB (.NET drops such events with any --buffersize)";

/// Formats the warning that the view 'cpu' may lack many samples.
pub(crate) fn doubtful_samples(shown: u64, doubtful: u64) -> String {
    format!(
        "View 'cpu' shows {} and excludes {} in these same methods because the runtime marked them as waiting. .NET 8 and 9 mark \
         some running threads this way; use --view thread-time to include them (--view cpu suppresses this warning).",
        Things(shown, "sample"),
        Things(doubtful, "sample")
    )
}

/// How to record where operations resume after an await.
pub const RESUMPTIONS: &str =
    "'--providers System.Threading.Tasks.TplEventSource:0xeb:4' records where it ran (keyword 0x20)";

/// Returns the next step after an error, from the first of its causes that has one. `None` if unknown.
pub fn next_step(error: &(dyn Error + 'static)) -> Option<&'static str> {
    causes(error).filter_map(Failure::of).find_map(|failure| match failure {
        Failure::Sink(error) => of_sink(error),
        failure => failure.hint(),
    })
}

/// Returns the next step after a sink failed to write a file.
fn of_sink(error: &SinkError) -> Option<&'static str> {
    match error {
        SinkError::NoSamples { left_out: 1.., .. } => None,
        SinkError::NoSamples { view, recorded, .. } if view.is_sampled() => Some(match recorded {
            0 => {
                "'runtap trace' records CPU samples by default, or with --profile dotnet-sampled-thread-time, once the program \
                 runs managed code; allocations, collections, lock contention and more have views of their own, such as \
                 'runtap convert --view alloc'"
            }
            _ => "--view thread-time shows waiting threads too",
        }),
        SinkError::NoSamples { view, .. } => Some(for_view(*view)),
        SinkError::NoTimeAxis(_) => Some("Choose speedscope, firefox, pprof, folded or flamegraph."),
        _ => None,
    }
}

/// Returns how to record the samples of a view.
pub fn for_view(view: View) -> &'static str {
    match view {
        View::Alloc => {
            "'runtap trace --profile gc-verbose' records allocations (of programs compiled ahead of time, NativeAOT, on \
             .NET 9 and later)"
        }
        View::Exceptions => "'runtap trace --clrevents exception' records exceptions",
        View::Contention => {
            "'runtap trace --clrevents contention' records lock contention (of programs compiled ahead of time, \
             NativeAOT, on .NET 9 and later)"
        }
        View::Gc => "'runtap trace --clrevents gc' records collections",
        View::Jit => {
            "'runtap trace --clrevents jit --clreventlevel verbose' records JIT compilation; programs compiled ahead of \
             time (NativeAOT) have none"
        }
        View::Async => {
            "'runtap trace --providers System.Threading.Tasks.TplEventSource:0x2b:4' records tasks"
        }
        View::Request => {
            "'runtap trace --profile dotnet-sampled-thread-time --providers \
             Microsoft.AspNetCore.Hosting,System.Net.Http,System.Threading.Tasks.TplEventSource:0xeb:4' records requests"
        }
        _ => {
            "'runtap trace' records CPU samples by default, or with --profile dotnet-sampled-thread-time; programs that \
             were compiled ahead of time (NativeAOT) have no sampler: use perf for them"
        }
    }
}

/// Returns how to record the data of a report.
pub fn for_report(kind: ReportKind, view: View) -> &'static str {
    match kind {
        ReportKind::Cpu => for_view(view),
        ReportKind::Gc => for_view(View::Gc),
        ReportKind::Alloc => for_view(View::Alloc),
        ReportKind::Exceptions => for_view(View::Exceptions),
        ReportKind::Contention => {
            "'runtap trace --clrevents contention' records lock contention, \
             '--clrevents contention+waithandle --clreventlevel verbose' other waits too (.NET 9 and later; \
             programs compiled ahead of time, NativeAOT, send both only there). A wait that began before the recording, \
             such as an older deadlock, sends no event: 'runtap trace --to speedscope --view thread-time' shows where its \
             threads wait"
        }
        ReportKind::Jit => for_view(View::Jit),
        ReportKind::Threadpool => "'runtap trace --clrevents threading' records the thread pool",
        ReportKind::Http => {
            "'runtap trace --providers \
             Microsoft.AspNetCore.Hosting,System.Net.Http,System.Threading.Tasks.TplEventSource:0x80:4' records requests"
        }
        ReportKind::Counters => {
            "'runtap trace --providers System.Runtime:0:4:EventCounterIntervalSec=1' records event counters"
        }
        ReportKind::Logs => {
            "'runtap trace --providers Microsoft-Extensions-Logging:4:4' records log messages"
        }
        ReportKind::Heap => {
            "'runtap trace --providers Microsoft-Windows-DotNETRuntime:0x1980001:5' records the heap, during a collection that it \
             requests"
        }
        ReportKind::Events | ReportKind::Loss => "any 'runtap trace' records events",
    }
}

/// Formats why a report is empty, in the view that was requested. A recording does not state which events were enabled, so the
/// cause is unknown.
pub fn empty_report(kind: ReportKind, requested: Option<View>) -> String {
    let view = requested.unwrap_or(View::Cpu);
    let of_view = if kind == ReportKind::Cpu { format!(" in view '{view}'") } else { String::new() };
    let advice = match view {
        // Without an explicit view, all samples are shown.
        View::Cpu if kind == ReportKind::Cpu && requested.is_some() => {
            "--view thread-time shows waiting threads too"
        }
        view => for_report(kind, view),
    };
    format!(
        "No {}{of_view} in this recording: either none occurred, or their events were not enabled ({advice}).",
        report_subject(kind)
    )
}

/// Returns the subject of a report as a plural noun for use in a sentence.
fn report_subject(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Cpu => "samples",
        ReportKind::Gc => "garbage collections",
        ReportKind::Alloc => "allocations",
        ReportKind::Exceptions => "exceptions",
        ReportKind::Contention => "waits for locks",
        ReportKind::Jit => "compiled methods",
        ReportKind::Threadpool => "thread pool events",
        ReportKind::Http => "HTTP requests",
        ReportKind::Events | ReportKind::Loss => "events",
        ReportKind::Counters => "counters",
        ReportKind::Logs => "log messages",
        ReportKind::Heap => "objects of a heap",
    }
}

/// Returns how to record the data for an empty part of a report.
pub fn missing(what: Missing) -> &'static str {
    match what {
        Missing::LockWaits => {
            "'runtap trace --clrevents contention' records it; a wait that began before the recording sends no event"
        }
        Missing::HandleWaits => {
            "'runtap trace --clrevents contention+waithandle --clreventlevel verbose' records them (.NET 9 and later)"
        }
        Missing::CompiledMethods => "all its code was precompiled, or compiled before the recording began",
        Missing::ThreadPoolAdjustments => "'runtap trace --clrevents threading' records adjustments",
        Missing::LogExceptions => {
            "'runtap trace --providers Microsoft-Extensions-Logging:0xe:4' records them"
        }
        Missing::RequestIds => {
            "one more provider, System.Threading.Tasks.TplEventSource:0x80:4, records them"
        }
        Missing::Events => "the recording is empty",
    }
}
