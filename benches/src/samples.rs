//! What sampling costs: the thread that is sampled, and the thread that samples.
//!
//! The same work is done alternately without and with a sampler, on a stack of known depth. Time is processor time of the
//! thread in question, so that whatever else runs does not count.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use runtap_unwind::{Options, Sample, Sampler};

use crate::output::{self, Table, bar, median};

const RUNS: usize = 9;
/// Steps of the work: about half a second.
const STEPS: u64 = 400_000_000;
/// Frames of ours on the worker's stack, and bytes that each keeps there.
const DEPTHS: [(u32, &str); 3] = [(5, "10 frames"), (40, "45 frames"), (200, "205 frames")];

/// What one run took.
#[derive(Debug, Clone, Copy)]
struct Run {
    worker: Duration,
    sampler: Duration,
    signals: u64,
    rounds: u64,
}

pub(crate) fn run() -> Result<()> {
    output::machine();
    let mut table =
        Table::new(&["stack", "overhead at 1 kHz", "a sample on its thread", "a round of the sampler"]);
    let mut worst = 0.0_f64;
    for (depth, name) in DEPTHS {
        let mut overheads = Vec::new();
        let mut samples = Vec::new();
        let mut rounds = Vec::new();
        for _ in 0..RUNS {
            let without = work(depth, None)?.worker.as_secs_f64();
            let with = work(depth, Some(Options::default()))?;
            let more = with.worker.as_secs_f64() - without;
            overheads.push(more / without * 100.0);
            samples.push(more / count(with.signals) * 1e6);
            rounds.push(with.sampler.as_secs_f64() / count(with.rounds) * 1e6);
        }
        let overhead = median(overheads);
        worst = worst.max(overhead);
        table.row(&[
            name.to_owned(),
            format!("{overhead:.2} %"),
            format!("{:.1} µs", median(samples)),
            format!("{:.1} µs", median(rounds)),
        ]);
    }
    table.print(&format!("one busy thread, processor time, medians of {RUNS} runs"));
    bar("sampling takes at most 3 % of a busy thread", worst <= 3.0, &format!("{worst:.2} %"));
    output::machine();
    Ok(())
}

fn count(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX)).max(1.0)
}

/// Does the work on a thread of its own.
fn work(depth: u32, options: Option<Options>) -> Result<Run> {
    // In microseconds, as of the last sample: it is called on the sampler's thread.
    let spent = Arc::new(AtomicU64::new(0));
    let note = Arc::clone(&spent);
    let sampler = options.map(|options| {
        let on_sample = move |sample: &Sample<'_>| {
            black_box(sample.stack);
            if let Ok(time) = thread_time() {
                note.store(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        };
        Sampler::start(options, on_sample)
    });
    let sampler = sampler.transpose().context("cannot sample")?;
    if let Some(sampler) = &sampler {
        sampler.set_active(true);
    }
    let worker = std::thread::spawn(move || {
        let before = thread_time()?;
        black_box(descend(depth));
        Ok::<_, anyhow::Error>(thread_time()?.saturating_sub(before))
    });
    let worker = worker.join().map_err(|_panic| anyhow!("the worker failed"))??;
    let statistics = sampler.map(|sampler| sampler.statistics()).unwrap_or_default();
    let sampler = Duration::from_micros(spent.load(Ordering::Relaxed));
    Ok(Run { worker, sampler, signals: statistics.signals, rounds: statistics.rounds })
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
