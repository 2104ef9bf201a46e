//! The work of the built-in program: requests whose cost is fixed by construction, 3 parts hot and 1 part warm.
//!
//! Each function stays one in every build, and does something after its last call, so that it is on the stack meanwhile.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Steps of a unit of work: some hundred microseconds.
const UNIT: u64 = 200_000;
const REST: Duration = Duration::from_millis(1);

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) requests: u64,
    pub(crate) hot_units: u64,
    pub(crate) warm_units: u64,
}

/// Starts the worker thread.
pub(crate) fn start(stop: Arc<AtomicBool>) -> std::io::Result<JoinHandle<Done>> {
    thread::Builder::new().name("demo-worker".into()).spawn(move || serve(&stop))
}

#[inline(never)]
fn serve(stop: &AtomicBool) -> Done {
    let mut done = Done::default();
    while !stop.load(Ordering::Relaxed) {
        handle_request(&mut done);
        wait_for_request();
    }
    done
}

#[inline(never)]
fn handle_request(done: &mut Done) {
    done.requests += 1;
    hot_work(3);
    done.hot_units += 3;
    warm_work(1);
    done.warm_units += 1;
}

#[inline(never)]
fn hot_work(units: u64) {
    black_box(burn(units));
}

#[inline(never)]
fn warm_work(units: u64) {
    parse(units);
    black_box(units);
}

#[inline(never)]
fn parse(units: u64) {
    black_box(burn(units));
}

#[inline(never)]
fn wait_for_request() {
    thread::sleep(REST);
    black_box(REST);
}

/// Work that takes the same time for every unit: steps of a xorshift generator, each needing the last.
#[expect(clippy::inline_always, reason = "the work is that of the function that is asked for it")]
#[inline(always)]
fn burn(units: u64) -> u64 {
    let mut x = 88_172_645_463_325_252_u64;
    let mut left = units * UNIT;
    // No iterator: in an unoptimized build it would be a function of its own.
    while left > 0 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        left -= 1;
    }
    x
}
