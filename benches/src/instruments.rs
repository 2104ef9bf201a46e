//! The cost of the instruments of `runtap-events` for the program that uses them: events, spans, metrics and log
//! messages, without a session, and with a session whose reader keeps up.
//!
//! As in `events.rs`: bursts that fit into the session's buffer, in processor time of the writing thread.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};
use runtap_diag::{Level, Provider};
use runtap_diag_server::{Builder, ProcessDescription, ServerThread};
use runtap_events::{EventLayer, EventPipe, EventSpec, Logs, MeterSpec, Metrics, provider};
use runtap_transport::Endpoint;
use tracing::{info, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::output::{self, Table, bar, median};
use crate::session::CountedSession;

const BURST: u32 = 10_000;
const BURSTS: usize = 30;
const IDLE_BURST: u32 = 10_000_000;
const PAUSE: Duration = Duration::from_millis(30);

provider! {
    struct Orders("Bench-Orders") {
        fn placed(number: u64, customer: &str) => EventSpec::new(1, "OrderPlaced").keywords(1);
    }
}

pub(crate) fn run() -> Result<()> {
    output::machine();
    let pipe = EventPipe::new();
    let orders = Orders::new(&pipe)?;
    let logs = Logs::new(&pipe)?;
    let log = logs.logger("Bench");
    let meter = Metrics::new(&pipe)?.meter(MeterSpec::new("Bench"));
    let (counter, histogram) = (meter.counter("count"), meter.histogram("time"));
    let bound = counter.with(&[("route", "/a".into()), ("status", 200.into())]);
    let layer = EventLayer::new(&pipe).logs(&logs).build();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
    let directory = tempfile::tempdir()?;
    let builder = Builder::new(ProcessDescription::of_this_process()).pipe(pipe);
    let server = builder.path(directory.path().join("s")).spawn()?;

    let event = |n: u32| orders.placed(u64::from(n), "ten letters");
    let traced = |n: u32| info!(number = n, customer = "ten letters");
    let span = |n: u32| drop(info_span!("request", number = n, path = "/orders").entered());
    let counted = |n: u32| counter.add(n, &[("route", "/a".into()), ("status", 200.into())]);
    let counted_bound = |n: u32| bound.add(n);
    let timed = |n: u32| histogram.record(n % 100, &[("route", "/a".into())]);
    let logged = |n: u32| log.information("Order {OrderId} of {User}", &[("OrderId", &n), ("User", &"anna")]);
    let all: [Trial<'_>; 8] = [
        ("event of an API provider, two fields", &event, "Bench-Orders:1", Some(100.0)),
        ("event of tracing, two fields", &traced, "runtap_benches:0", Some(250.0)),
        ("span of tracing, two fields: start, enter, stop", &span, "runtap_benches:0", None),
        (
            "event of tracing as a log message (JSON and text)",
            &traced,
            "Microsoft-Extensions-Logging:c",
            None,
        ),
        ("log message of the API (JSON and text)", &logged, "Microsoft-Extensions-Logging:c", None),
        ("counter with two tags", &counted, METRICS, None),
        ("counter whose tags are bound", &counted_bound, METRICS, None),
        ("histogram with one tag", &timed, METRICS, None),
    ];
    // The cost of the loop itself is subtracted.
    let empty = median(bursts(
        &|n| {
            black_box(n);
        },
        5,
        IDLE_BURST,
    ));
    let mut table = Table::new(&["", "no session", "session"]);
    for (what, act, provider_spec, most) in all {
        let idle = median(bursts(act, 5, IDLE_BURST)) - empty;
        let session = start(&server, provider_spec)?;
        let busy = median(bursts(act, BURSTS, BURST)) - empty;
        let lost = session.stop()?;
        table.row(&[what.to_owned(), format!("{idle:.1}"), format!("{busy:.0}")]);
        if let Some(most) = most {
            bar(&format!("{what}: at most 2 ns without a session"), idle <= 2.0, &format!("{idle:.2} ns"));
            bar(&format!("{what}: at most {most} ns"), busy <= most, &format!("{busy:.0} ns"));
        }
        bar(&format!("{what}: none was lost"), lost == 0, &lost.to_string());
    }
    table.print(&format!("nanoseconds of the thread's time, without the {empty:.1} that the loop takes"));
    server.shut_down();
    output::machine();
    Ok(())
}

/// A name, the operation, the provider that a session enables, and the maximum cost in nanoseconds with a session.
type Trial<'a> = (&'a str, &'a dyn Fn(u32), &'a str, Option<f64>);

const METRICS: &str = "System.Diagnostics.Metrics:2:SessionId=SHARED;Metrics=Bench;RefreshInterval=1";

/// Starts a session with `Provider:keywords[:arguments]`, the keywords in hexadecimal.
fn start(server: &ServerThread, provider_spec: &str) -> Result<CountedSession> {
    let mut parts = provider_spec.splitn(3, ':');
    let (name, keywords) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut provider = Provider::new(name, u64::from_str_radix(keywords, 16)?, Level::Verbose);
    provider.arguments = parts.next().map(str::to_owned);
    CountedSession::start(Endpoint::unix(server.path()), provider)
}

fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Returns nanoseconds per call for each burst.
fn bursts(act: &dyn Fn(u32), count: usize, size: u32) -> Vec<f64> {
    let one = |_| {
        let start = thread_time();
        for n in 0..size {
            black_box(act)(black_box(n));
        }
        let took = thread_time().saturating_sub(start).as_secs_f64() * 1e9 / f64::from(size);
        if size == BURST {
            thread::sleep(PAUSE);
        }
        took
    };
    (0..count).map(one).collect()
}
