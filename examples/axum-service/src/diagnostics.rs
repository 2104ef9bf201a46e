//! Makes the service diagnosable. Any program needs only [`start`]; [`Instruments`] are the metrics of this service.

use std::error::Error;
use std::time::Duration;

use runtap_diag_server::{Builder, ProcessDescription, ServerThread};
use runtap_events::{
    Counter, CounterSpec, CpuSamples, EventCounter, EventCounters, EventLayer, EventPipe, Histogram,
    IncrementingEventCounter, InstrumentSpec, Logs, Meter, MeterSpec, Metrics, process_counters,
};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The endpoint for diagnostic tools. Sessions are closed properly when it is dropped.
pub(crate) struct Diagnostics {
    _samples: CpuSamples,
    /// `None` if the environment disables diagnostics.
    _server: Option<ServerThread>,
}

pub(crate) fn start() -> Result<(Instruments, Diagnostics), Box<dyn Error>> {
    let pipe = EventPipe::new();
    let layer = EventLayer::new(&pipe).logs(&Logs::new(&pipe)?).build();
    tracing_subscriber::registry().with(layer).init();
    process_counters(&pipe)?;
    let counters = EventCounters::new(&pipe, "Example-Counters")?;
    let meter = Metrics::new(&pipe)?.meter(MeterSpec::new("Example.Service").version("1.0"));
    let instruments = Instruments::new(&meter, &counters);
    let samples = CpuSamples::start(&pipe)?;
    let server = Builder::new(ProcessDescription::of_this_process()).pipe(pipe).with_environment();
    let server = server.map(Builder::spawn).transpose()?;
    // Returns at once, unless a tool has requested to start before the program.
    server.iter().for_each(ServerThread::wait_until_resumed);
    Ok((instruments, Diagnostics { _samples: samples, _server: server }))
}

/// The service's own metrics and counters.
#[derive(Clone)]
pub(crate) struct Instruments {
    pub(crate) orders: Counter,
    requests: Counter,
    duration: Histogram,
    request_count: IncrementingEventCounter,
    request_time: EventCounter,
}

impl Instruments {
    fn new(meter: &Meter, counters: &EventCounters) -> Self {
        Self {
            orders: meter.counter(InstrumentSpec::new("orders").unit("{order}").description("Orders taken")),
            requests: meter.counter(InstrumentSpec::new("requests").unit("{request}")),
            duration: meter.histogram(InstrumentSpec::new("request.duration").unit("ms")),
            request_count: counters.incrementing(CounterSpec::new("request-count").display_name("Requests")),
            request_time: counters.event_counter(CounterSpec::new("request-time").units("ms")),
        }
    }

    pub(crate) fn request(&self, route: &str, status: u16, took: Duration) {
        let milliseconds = took.as_secs_f64() * 1000.0;
        self.requests.add(1, &[("route", route.into()), ("status", status.into())]);
        self.duration.record(milliseconds, &[("route", route.into())]);
        self.request_count.increment(1.0);
        self.request_time.record(milliseconds);
    }
}
