//! The work of the built-in program: requests whose cost is fixed by construction, 3 parts hot and 1 part warm.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::code::Function;
use crate::shadow::ShadowStack;

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
pub(crate) fn start(stack: Arc<ShadowStack>, stop: Arc<AtomicBool>) -> std::io::Result<JoinHandle<Done>> {
    thread::Builder::new().name("demo-worker".into()).spawn(move || {
        let worker = Worker { stack: &stack };
        worker.main(&stop)
    })
}

struct Worker<'a> {
    stack: &'a ShadowStack,
}

impl Worker<'_> {
    fn main(&self, stop: &AtomicBool) -> Done {
        self.stack.rest(false);
        let _main = self.stack.enter(Function::Main);
        self.serve(stop)
    }

    fn serve(&self, stop: &AtomicBool) -> Done {
        let _serve = self.stack.enter(Function::Serve);
        let mut done = Done::default();
        while !stop.load(Ordering::Relaxed) {
            self.handle_request(&mut done);
            self.wait_for_request();
        }
        done
    }

    fn handle_request(&self, done: &mut Done) {
        let _handle_request = self.stack.enter(Function::HandleRequest);
        done.requests += 1;
        self.hot_work(3);
        done.hot_units += 3;
        self.warm_work(1);
        done.warm_units += 1;
    }

    fn hot_work(&self, units: u64) {
        let _hot_work = self.stack.enter(Function::HotWork);
        burn(units);
    }

    fn warm_work(&self, units: u64) {
        let _warm_work = self.stack.enter(Function::WarmWork);
        self.parse(units);
    }

    fn parse(&self, units: u64) {
        let _parse = self.stack.enter(Function::Parse);
        burn(units);
    }

    fn wait_for_request(&self) {
        let _wait = self.stack.enter(Function::WaitForRequest);
        self.stack.rest(true);
        thread::sleep(REST);
        self.stack.rest(false);
    }
}

/// Work that takes the same time for every unit: steps of a xorshift generator, each needing the last.
fn burn(units: u64) {
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..units * UNIT {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}
