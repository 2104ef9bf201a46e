//! What has to be recorded to see something: the same advice wherever a recording has none of it.

use runtap_clr::report::Kind;
use runtap_model::{Trace, View};

use super::convert;
use crate::output::Output;
use crate::units::{Count, Things};

/// Names of methods, where a stream ended without them.
pub(super) const NAMES: &str = "the runtime sends them when a recording ends while the program still runs (with --duration, or Ctrl-C, which on a \
     terminal ends a launched command too), unless '--rundown false' is given; 'runtap trace --method-names' records them all \
     along";

/// Says that the view 'cpu' may lack much.
pub(super) fn doubtful(shown: u64, doubtful: u64) -> String {
    format!(
        "the view 'cpu' shows {}; {} more ended in the same methods and are marked as waiting: the threads waited there, or \
         this runtime marks running threads as waiting (.NET 8 and 9 do). --view thread-time shows all of them, --view cpu \
         is silent about it",
        Things(shown, "sample"),
        Count(doubtful)
    )
}

/// Says that a profile is mostly made of addresses, and how names are had.
pub(super) fn say_if_nameless(trace: &Trace, output: Output) {
    if let Some(note) = runtap_convert::nameless(trace) {
        convert::say(&note, output);
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
pub(super) fn for_report(kind: Kind, view: View) -> &'static str {
    match kind {
        Kind::Cpu => for_view(view),
        Kind::Gc => for_view(View::Gc),
        Kind::Alloc => for_view(View::Alloc),
        Kind::Exceptions => for_view(View::Exceptions),
        Kind::Contention => {
            "locks come with 'runtap trace --clrevents contention', other waits with \
             '--clrevents contention+waithandle --clreventlevel verbose' (.NET 9 and later)"
        }
        Kind::Jit => for_view(View::Jit),
        Kind::Threadpool => "the thread pool's events come with 'runtap trace --clrevents threading'",
        Kind::Http => {
            "requests come with 'runtap trace --providers Microsoft.AspNetCore.Hosting,System.Net.Http'"
        }
        Kind::Counters => {
            "event counters come with 'runtap trace --providers System.Runtime:0:4:EventCounterIntervalSec=1'"
        }
        Kind::Logs => "log messages come with 'runtap trace --providers Microsoft-Extensions-Logging:4:4'",
        Kind::Events | Kind::Loss => "any 'runtap trace' has events",
    }
}

/// What a report tells of, as it stands in a sentence.
pub(super) fn subject(kind: Kind) -> &'static str {
    match kind {
        Kind::Cpu => "samples",
        Kind::Gc => "collections",
        Kind::Alloc => "allocations",
        Kind::Exceptions => "exceptions",
        Kind::Contention => "waits for locks",
        Kind::Jit => "compiled methods",
        Kind::Threadpool => "events of the thread pool",
        Kind::Http => "HTTP requests",
        Kind::Events | Kind::Loss => "events",
        Kind::Counters => "counters",
        Kind::Logs => "log messages",
    }
}
