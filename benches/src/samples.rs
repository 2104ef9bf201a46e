//! The cost of sampling for a program: processor time of the whole process, including the sampling thread, for the same
//! work with and without sampling in alternation.
//!
//! The work is realistic: compressing, parsing, and a web service under load whose session is read by another process.
//! Bare loops are not: the sampler shares caches with real work, and wakes it out of real waits.

mod service;
mod work;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::time::{ClockId, clock_gettime};
use runtap_unwind::{Options, Sampler};

use self::service::Service;
use self::work::{Compress, Parse};
use crate::output::{self, Table, bar};
use crate::paired::{self, Cost};

const PAIRS: usize = 60;
/// Duration of one measurement.
const PIECE: Duration = Duration::from_millis(150);
/// Maximum additional processor time at 1 kHz, in percent of the work's own.
const MAX_COST: f64 = 3.0;
/// Stack depths: frames of the benchmark below the work.
const DEPTHS: [u32; 2] = [10, 100];

/// Runs the benchmark; `service` is the program of `examples/axum-service`.
pub(crate) fn run(service: &Path) -> Result<()> {
    output::machine();
    let mut table = Table::new(&["", "more processor time", "95 % of trials between", "a second"]);
    let mut row = |what: String, (cost, rate): (Cost, f64)| {
        let between = format!("{:.2} and {:.2} %", cost.low, cost.high);
        table.row(&[what, format!("{:.2} %", cost.median), between, format!("{rate:.0}")]);
        cost.median
    };
    let compress = Compress::new();
    row("only a thread that wakes up, no samples".to_owned(), measure_clock(&|| compress.piece())?);
    let mut worst = f64::MIN;
    for depth in DEPTHS {
        worst = worst.max(row(
            format!("a compressor, {depth} frames"),
            measure_sampling(depth, &|| compress.piece())?,
        ));
        let parse = Parse::new();
        worst = worst
            .max(row(format!("a JSON parser, {depth} frames"), measure_sampling(depth, &|| parse.piece())?));
    }
    let mut service = Service::start(service)?;
    worst = worst.max(row("a web service, its session read".to_owned(), service.measure(PAIRS)?));
    table.print("sampling at 1 kHz, medians of 60 pairs");
    bar(
        &format!("sampling takes at most {MAX_COST} % of a program's work"),
        worst <= MAX_COST,
        &format!("{worst:.2} %"),
    );
    output::machine();
    Ok(())
}

/// Samples this process while it works in a thread of this stack depth; returns the cost, and the samples per second.
fn measure_sampling(depth: u32, piece: &(dyn Fn() + Sync)) -> Result<(Cost, f64)> {
    let sampler = Sampler::start(Options::default(), |sample| {
        std::hint::black_box(sample.stack);
    });
    let sampler = sampler.context("cannot sample")?;
    measure_feature(depth, piece, &|active| sampler.set_active(active), &|| sampler.statistics().signals)
}

/// Measures a thread that only wakes up at the sampler's rate: the minimum cost of any sampler with its own thread.
fn measure_clock(piece: &(dyn Fn() + Sync)) -> Result<(Cost, f64)> {
    let [active, ended] = [const { AtomicBool::new(false) }; 2];
    let ticks = AtomicU64::new(0);
    thread::scope(|scope| {
        let clock = scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if active.load(Ordering::Relaxed) {
                    thread::sleep(Options::default().period);
                    ticks.fetch_add(1, Ordering::Relaxed);
                } else {
                    thread::park();
                }
            }
        });
        let switch = |on| {
            active.store(on, Ordering::Relaxed);
            clock.thread().unpark();
        };
        let measured = measure_feature(DEPTHS[0], piece, &switch, &|| ticks.load(Ordering::Relaxed));
        ended.store(true, Ordering::Relaxed);
        clock.thread().unpark();
        measured
    })
}

/// Measures the additional processor time of this process while the feature controlled by `switch` is active, and its
/// counted events per second.
fn measure_feature(
    depth: u32,
    piece: &(dyn Fn() + Sync),
    switch: &(dyn Fn(bool) + Sync),
    counted: &(dyn Fn() -> u64 + Sync),
) -> Result<(Cost, f64)> {
    let pieces = pieces_of(PIECE, piece);
    let (mut count, mut time) = (0, Duration::ZERO);
    let cost = thread::scope(|scope| {
        let work = || {
            paired::measure(PAIRS, |with| {
                switch(with);
                // Lazy initialization happens in this first round.
                descend(depth, piece);
                let (start, before) = (Instant::now(), counted());
                let used = process_time()?;
                for _ in 0..pieces {
                    descend(depth, piece);
                }
                let used = process_time()?.saturating_sub(used);
                if with {
                    count += counted() - before;
                    time += start.elapsed();
                }
                Ok(used)
            })
        };
        scope.spawn(work).join().map_err(|_panic| anyhow::anyhow!("the worker failed"))?
    })?;
    Ok((cost, rate(count, time)))
}

fn rate(count: u64, time: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / time.as_secs_f64()
}

/// Returns the number of pieces that take this long.
fn pieces_of(time: Duration, piece: &dyn Fn()) -> u32 {
    let (start, mut pieces) = (Instant::now(), 0);
    while start.elapsed() < time {
        piece();
        pieces += 1;
    }
    pieces
}

#[inline(never)]
fn descend(depth: u32, piece: &dyn Fn()) {
    if depth == 0 {
        return piece();
    }
    descend(std::hint::black_box(depth - 1), piece);
    // Prevents a tail call, which would need no frame.
    std::hint::black_box(depth);
}

/// Returns the processor time of all threads of this process.
fn process_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}
