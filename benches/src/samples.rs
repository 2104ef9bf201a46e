//! What sampling costs: the thread that is sampled, and the thread that samples.
//!
//! A thread does the same work over and over, on a stack of known depth, while the sampler is switched on and off. What
//! counts is processor time of the thread in question, and medians, so that whatever else runs does not.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use runtap_unwind::{Options, Sample, Sampler};

use crate::output::{self, Table, bar, median};

/// How often the sampler is switched on and off, and pieces of work in between.
const SWITCHES: u32 = 60;
const PIECES: u32 = 20;
/// Steps of a piece of work: some milliseconds.
const STEPS: u64 = 4_000_000;
/// Frames of ours on the worker's stack.
const DEPTHS: [u32; 3] = [5, 40, 200];

pub(crate) fn run() -> Result<()> {
    output::machine();
    let mut table =
        Table::new(&["frames", "overhead at 1 kHz", "a sample on its thread", "a round of the sampler"]);
    let mut worst = 0.0_f64;
    for depth in DEPTHS {
        let (overhead, sample, round) = measure(depth)?;
        worst = worst.max(overhead);
        table.row(&[
            depth.to_string(),
            format!("{overhead:.2} %"),
            format!("{sample:.1} µs"),
            format!("{round:.1} µs"),
        ]);
    }
    table.print("one busy thread, processor time, medians");
    bar("sampling takes at most 3 % of a busy thread", worst <= 3.0, &format!("{worst:.2} %"));
    output::machine();
    Ok(())
}

/// Overhead in percent, a sample on its thread and a round of the sampler in microseconds.
fn measure(depth: u32) -> Result<(f64, f64, f64)> {
    // In microseconds, as of the last sample: the closure is called on the sampler's thread.
    let spent = Arc::new(AtomicU64::new(0));
    let note = Arc::clone(&spent);
    let on_sample = move |sample: &Sample<'_>| {
        black_box(sample.stack);
        if let Ok(time) = thread_time() {
            note.store(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    };
    let sampler = Sampler::start(Options::default(), on_sample).context("cannot sample")?;
    let worker = std::thread::spawn(move || {
        let mut times = [Vec::new(), Vec::new()];
        let mut signals = 0;
        for switch in 0..SWITCHES {
            let on = switch % 2 == 1;
            sampler.set_active(on);
            let before = sampler.statistics().signals;
            for _ in 0..PIECES {
                let start = thread_time()?;
                black_box(descend(depth));
                times[usize::from(on)].push(thread_time()?.saturating_sub(start).as_secs_f64());
            }
            if on {
                signals += sampler.statistics().signals - before;
            }
        }
        Ok::<_, anyhow::Error>((times, signals, sampler.statistics().rounds))
    });
    let (times, signals, rounds) = worker.join().map_err(|_panic| anyhow!("the worker failed"))??;
    let [without, with] = times.map(median);
    let samples_of_a_piece = count(signals) / f64::from(SWITCHES / 2 * PIECES);
    let more = with - without;
    let round = count(spent.load(Ordering::Relaxed)) / count(rounds);
    Ok((more / without * 100.0, more / samples_of_a_piece * 1e6, round))
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX)).max(1.0)
}

#[inline(never)]
fn descend(depth: u32) -> u64 {
    let place = black_box([u64::from(depth); 8]);
    if depth == 0 {
        return burn();
    }
    descend(depth - 1).wrapping_add(black_box(place)[0])
}

fn burn() -> u64 {
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..STEPS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// Processor time of the calling thread.
fn thread_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    let microseconds = |time: TimeVal| u64::try_from(time.num_microseconds());
    Ok(Duration::from_micros(microseconds(usage.user_time())? + microseconds(usage.system_time())?))
}
