//! What has to be recorded to see something: the same advice wherever a recording has none of it.

use runtap_model::{Trace, View};

use crate::cli::ReportKind;
use crate::output::Output;
use crate::units::Count;

/// Names of methods, where a stream ended without them.
pub(super) const NAMES: &str = "the runtime tells them at the end of a recording that it lives to see (Ctrl-C on a terminal ends a launched command too, \
     --duration does not), not with '--rundown false', and while it runs with 'runtap trace --method-names'";

/// Says that a profile is mostly made of addresses, and how names are had.
pub(super) fn say_if_nameless(trace: &Trace, output: Output) {
    let (mut all, mut nameless) = (0_u64, 0_u64);
    for (_, frame) in trace.all_frames() {
        all += 1;
        nameless += u64::from(frame.module.is_none() && !frame.has_name());
    }
    if nameless > all / 4 {
        output.note(format_args!(
            "{} of {} frames are addresses without a name: {NAMES}",
            Count(nameless),
            Count(all)
        ));
    }
}

/// What fills a view.
pub(super) fn for_view(view: View) -> &'static str {
    match view {
        View::Alloc => "allocations come with 'runtap trace --profile gc-verbose'",
        View::Exceptions => "exceptions come with 'runtap trace --clrevents exception'",
        View::Contention => "locks come with 'runtap trace --clrevents contention'",
        View::Gc => "collections come with 'runtap trace --clrevents gc'",
        View::Jit => "compilations come with 'runtap trace --clrevents jit --clreventlevel verbose'",
        View::Async => {
            "tasks come with 'runtap trace --providers System.Threading.Tasks.TplEventSource:0x2b:4'"
        }
        View::Request => {
            "requests come with 'runtap trace --profile dotnet-sampled-thread-time --providers \
             Microsoft.AspNetCore.Hosting,System.Net.Http,System.Threading.Tasks.TplEventSource:0xcb:4'"
        }
        _ => {
            "CPU samples come with the default profiles of 'runtap trace', or with --profile dotnet-sampled-thread-time"
        }
    }
}

/// What a report is made of.
pub(super) fn for_report(kind: ReportKind, view: View) -> &'static str {
    match kind {
        ReportKind::Cpu => for_view(view),
        ReportKind::Gc => for_view(View::Gc),
        ReportKind::Alloc => for_view(View::Alloc),
        ReportKind::Exceptions => for_view(View::Exceptions),
        ReportKind::Contention => {
            "locks come with 'runtap trace --clrevents contention', other waits with \
             '--clrevents contention+waithandle --clreventlevel verbose' (.NET 9 and later)"
        }
        ReportKind::Jit => for_view(View::Jit),
        ReportKind::Threadpool => "the thread pool's events come with 'runtap trace --clrevents threading'",
        ReportKind::Http => {
            "requests come with 'runtap trace --providers Microsoft.AspNetCore.Hosting,System.Net.Http'"
        }
        ReportKind::Counters => {
            "event counters come with 'runtap trace --providers System.Runtime:0:4:EventCounterIntervalSec=1'"
        }
        ReportKind::Logs => {
            "log messages come with 'runtap trace --providers Microsoft-Extensions-Logging:4:4'"
        }
        ReportKind::Events | ReportKind::Loss => "any 'runtap trace' has events",
    }
}
