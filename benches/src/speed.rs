//! Elapsed time of the stages, over a recording in memory. Reported only: the limits apply to instructions.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::output::{self, Table, median};
use crate::{recording, stages};

const SAMPLES: u64 = 200_000;
const ROUNDS: usize = 9;

pub(crate) fn run() -> Result<()> {
    let bytes = recording::make(SAMPLES)?;
    let mut times = vec![Vec::new(); stages::ALL.len()];
    // Alternately, so that other load affects all stages.
    for _ in 0..ROUNDS {
        for ((_, stage), times) in stages::ALL.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(stage(black_box(&bytes))?);
            times.push(start.elapsed());
        }
    }
    output::machine();
    let mut table = Table::new(&["stage", "MB/s", "events/s", "ns an event"]);
    for ((name, _), times) in stages::ALL.iter().zip(times) {
        let time = median(times);
        table.row(&[
            (*name).to_owned(),
            format!("{:.0}", per_second(bytes.len() as u64, time) / 1e6),
            format!("{:.1} million", per_second(SAMPLES, time) / 1e6),
            format!("{:.0}", 1e9 / per_second(SAMPLES, time)),
        ]);
    }
    table.print(&format!(
        "a made-up recording of {SAMPLES} samples of 24 frames, {} bytes, in memory; medians of {ROUNDS}",
        bytes.len()
    ));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn per_second(n: u64, time: Duration) -> f64 {
    n as f64 / time.as_secs_f64()
}
