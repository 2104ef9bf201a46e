//! The work of the program: requests with a fixed cost, of which 3 parts are hot and 1 part is warm.
//!
//! The functions are never inlined, and each does something after its last call, so that it stays on the stack.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::native::at;
use crate::telemetry::Telemetry;

/// The number of steps per unit of work, which take some hundred microseconds.
const UNIT: u64 = 200_000;
const REST: Duration = Duration::from_millis(1);

/// The function that the worker is in, for systems on which its stack can't be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerPosition {
    Serving = 1,
    Hot,
    Warm,
    Waiting,
}

/// The amount of work done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WorkDone {
    pub(crate) requests: u64,
    pub(crate) hot_units: u64,
    pub(crate) warm_units: u64,
}

/// Starts the worker thread.
pub(crate) fn start(stop: Arc<AtomicBool>, telemetry: Telemetry) -> std::io::Result<JoinHandle<WorkDone>> {
    thread::Builder::new().name("demo-worker".into()).spawn(move || serve(&stop, &telemetry))
}

#[inline(never)]
fn serve(stop: &AtomicBool, telemetry: &Telemetry) -> WorkDone {
    let mut done = WorkDone::default();
    at(WorkerPosition::Serving);
    while !stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        handle_request(&mut done);
        telemetry.record_request(done.requests, start.elapsed());
        wait_for_request();
    }
    done
}

#[inline(never)]
fn handle_request(done: &mut WorkDone) {
    done.requests += 1;
    hot_work(3);
    done.hot_units += 3;
    warm_work(1);
    done.warm_units += 1;
}

#[inline(never)]
fn hot_work(units: u64) {
    at(WorkerPosition::Hot);
    black_box(burn(units));
}

#[inline(never)]
fn warm_work(units: u64) {
    parse(units);
    black_box(units);
}

#[inline(never)]
fn parse(units: u64) {
    at(WorkerPosition::Warm);
    black_box(burn(units));
}

#[inline(never)]
fn wait_for_request() {
    at(WorkerPosition::Waiting);
    thread::sleep(REST);
    black_box(REST);
}

/// Work that takes equal time for every unit: steps of a xorshift generator, each depending on the previous one.
#[expect(clippy::inline_always, reason = "the work is that of the function that is asked for it")]
#[inline(always)]
fn burn(units: u64) -> u64 {
    let mut x = 88_172_645_463_325_252_u64;
    let mut left = units * UNIT;
    // Without an iterator, which would be a separate function in an unoptimized build.
    while left > 0 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        left -= 1;
    }
    x
}

/// A function of the worker and its name.
#[cfg(windows)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    address: fn() -> u64,
}

#[cfg(windows)]
impl Function {
    pub(crate) fn address(&self) -> u64 {
        (self.address)()
    }
}

/// All functions of the worker.
#[cfg(windows)]
pub(crate) static FUNCTIONS: [Function; 6] = [
    Function { name: "serve", address: || serve as *const () as u64 },
    Function { name: "handle_request", address: || handle_request as *const () as u64 },
    Function { name: "hot_work", address: || hot_work as *const () as u64 },
    Function { name: "warm_work", address: || warm_work as *const () as u64 },
    Function { name: "parse", address: || parse as *const () as u64 },
    Function { name: "wait_for_request", address: || wait_for_request as *const () as u64 },
];

#[cfg(windows)]
impl WorkerPosition {
    pub(crate) fn of(number: u8) -> Option<Self> {
        [Self::Serving, Self::Hot, Self::Warm, Self::Waiting].into_iter().find(|place| *place as u8 == number)
    }

    /// Returns the stack at this position, leaf first.
    #[expect(clippy::unnecessary_to_owned, reason = "the list lives in this function")]
    pub(crate) fn functions(self) -> impl Iterator<Item = &'static Function> {
        let [serve, handle_request, hot_work, warm_work, parse, wait_for_request] = &FUNCTIONS;
        let stack: &[&'static Function] = match self {
            Self::Serving => &[serve],
            Self::Hot => &[hot_work, handle_request, serve],
            Self::Warm => &[parse, warm_work, handle_request, serve],
            Self::Waiting => &[wait_for_request, serve],
        };
        stack.to_vec().into_iter()
    }
}
