//! The metrics and log messages of the program: the meter `runtap.demo` and one log category.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtap_diag_server::EventPipe;
use runtap_events::{Counter, Histogram, InstrumentSpec, Logger, Logs, MeterSpec, Metrics};

use crate::Error;

/// The name of the meter.
const METER: &str = "runtap.demo";
/// The category of the log messages.
const CATEGORY: &str = "Runtap.Demo";
/// One log message for this many requests.
const REQUESTS_PER_LOG: u64 = 100;

/// The program's instruments. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Telemetry {
    requests: Counter,
    latency: Histogram,
    logger: Logger,
    logged: Arc<AtomicU64>,
}

impl Telemetry {
    /// Creates the instruments, which write to the sessions of `pipe`.
    pub(crate) fn new(pipe: &EventPipe) -> Result<Self, Error> {
        let metrics = Metrics::new(pipe).map_err(Error::define("the meter runtap.demo"))?;
        let meter = metrics.meter(MeterSpec::new(METER));
        let requests = InstrumentSpec::new("requests").unit("{request}").description("Requests handled");
        let latency = InstrumentSpec::new("latency").unit("ms").description("Time to handle a request");
        let logs = Logs::new(pipe).map_err(Error::define("the log"))?;
        Ok(Self {
            requests: meter.counter(requests),
            latency: meter.histogram(latency),
            logger: logs.logger(CATEGORY),
            logged: Arc::default(),
        })
    }

    /// Records request number `n` (counted from 1), which took `latency`.
    pub(crate) fn record_request(&self, n: u64, latency: Duration) {
        let milliseconds = latency.as_secs_f64() * 1000.0;
        self.requests.add(1, &[]);
        self.latency.record(milliseconds, &[]);
        if n.is_multiple_of(REQUESTS_PER_LOG) {
            self.logged.fetch_add(1, Ordering::Relaxed);
            let milliseconds = format!("{milliseconds:.3}");
            self.logger.information(
                "Handled {Requests} requests; the last one took {Latency} ms",
                &[("Requests", &n), ("Latency", &milliseconds)],
            );
        }
    }

    /// The number of messages logged, whether or not a session received them.
    pub(crate) fn logged(&self) -> u64 {
        self.logged.load(Ordering::Relaxed)
    }
}
