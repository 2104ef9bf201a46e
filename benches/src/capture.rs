//! Live recording of a program that writes its own events: runtap beside Microsoft's dotnet-trace.
//!
//! The program (`storm`) numbers the events that each thread writes while a session is active, and prints their total
//! at the end. A number that is missing below the last one received was lost. Later numbers came too late: they were
//! written between the stop of the session and the moment at which the program is notified. The program runs longer
//! than the session, so the session is equally long for both tools. The tools run alternately, so that other load
//! affects both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_nettrace::StreamItem;
use runtap_testkit::{Peer, RealRuntime};

use crate::cost::{self, Cost};
use crate::output::{self, Table, bar, line, median};
use crate::stages;

const RUNS: usize = 5;
const SESSION: Duration = Duration::from_secs(5);
/// Run time of the program beyond the session; includes the startup of a tool.
const EXTRA_TIME: Duration = Duration::from_secs(5);
const PROVIDERS: &str = "Demo-Storm:7:5";
const THREADS: u64 = 2;

/// The load: events written by each thread.
struct Case {
    title: &'static str,
    /// Events per second; 0 is as fast as possible.
    rate: u64,
    /// Bytes per event.
    size: u64,
    /// Maximum share of dotnet-trace's processor time.
    bar: f64,
}

const CASES: [Case; 2] = [
    Case {
        title: "20 MB/s: 2 threads × 10,000 events/s × 1,000 bytes", rate: 10_000, size: 1_000, bar: 0.2
    },
    Case { title: "as fast as the target can write: 2 threads, 100 bytes", rate: 0, size: 100, bar: 0.5 },
];
const MAX_RESIDENT: u64 = 20_000_000;

const RUNTAP: &str = "runtap";
const DOTNET_TRACE: &str = "dotnet-trace";

/// The result of one recording.
#[derive(Debug, Clone, Copy)]
struct Run {
    cost: Cost,
    /// Size of the file in bytes.
    bytes: u64,
    /// Events that the target wrote, by its own count.
    written: u64,
    /// Events in the file.
    received: u64,
    /// Events missing in the file before the last received one.
    lost: u64,
}

impl Run {
    fn late(&self) -> u64 {
        self.written.saturating_sub(self.received + self.lost)
    }

    /// Returns the processor time per million received events, in seconds.
    fn cpu_a_million(&self) -> f64 {
        self.cost.cpu.as_secs_f64() / (float(self.received) / 1e6)
    }
}

pub(crate) fn run(runtap: &Path) -> Result<()> {
    let (runtime, dotnet_trace) = match (RealRuntime::available(10), Peer::available(DOTNET_TRACE)) {
        (Ok(runtime), Ok(tool)) => (runtime, tool),
        (Err(skip), _) | (_, Err(skip)) => {
            line(skip);
            return Ok(());
        }
    };
    if let Err(skip) = runtime.program("storm", &[]) {
        line(skip);
        return Ok(());
    }
    output::machine();
    let folder = tempfile::tempdir_in(runtap_testkit::workspace_root().join("target"))?;
    let file = folder.path().join("storm.nettrace");
    for case in &CASES {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..RUNS {
            ours.push(record(case, &runtime, &file, |pid| {
                let mut command = Command::new(runtap);
                command.args(["trace", "--quiet", "-p", pid, "--providers", PROVIDERS, "--rundown", "false"]);
                command.args(["--duration", "5s", "-o"]).arg(&file);
                command
            })?);
            theirs.push(record(case, &runtime, &file, |pid| {
                let mut command = dotnet_trace.command();
                command.args(["collect", "-p", pid, "--providers", PROVIDERS, "--rundown", "false"]);
                command.args(["--duration", "00:00:00:05", "-o"]).arg(&file);
                command
            })?);
        }
        report(case, &ours, &theirs);
    }
    output::machine();
    Ok(())
}

/// Makes one recording with the tool that `command` starts for a process id.
fn record(
    case: &Case,
    runtime: &RealRuntime,
    file: &Path,
    command: impl FnOnce(&str) -> Command,
) -> Result<Run> {
    let life = SESSION + EXTRA_TIME;
    let arguments = [THREADS, case.rate, case.size, life.as_secs()].map(|number| number.to_string());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Ok(launch) = runtime.program("storm", &arguments) else { bail!("the shared folder is gone") };
    let mut storm = launch.spawn();
    let start = Instant::now();
    let cost = cost::of(&command(&storm.id().to_string()))?;
    if start.elapsed() >= life {
        bail!("the target ended before the session: the machine is too busy to measure anything");
    }
    let truth = storm.truth();
    let written = truth["total"].as_u64().context("the target did not say how many events it wrote")?;
    storm.wait();

    let recorded = fs::read(file)?;
    fs::remove_file(file)?;
    let mut received = 0;
    let mut numbered = BTreeMap::new();
    stages::read(&recorded, |item| {
        if let StreamItem::Event(event) = item
            && event.metadata.is_some_and(|metadata| metadata.provider == "Demo-Storm")
            && let Some((thread, number)) = thread_and_number(event.payload)
        {
            received += 1;
            let last = numbered.entry(thread).or_insert(0);
            *last = number.max(*last);
        }
    })?;
    // Numbers start at 0.
    let up_to_the_last: u64 = numbered.values().map(|last| last + 1).sum();
    Ok(Run { cost, bytes: recorded.len() as u64, written, received, lost: up_to_the_last - received })
}

/// Returns the first two fields of storm's event: `int thread, long seq`.
fn thread_and_number(payload: &[u8]) -> Option<(u32, u64)> {
    let (thread, rest) = payload.split_first_chunk()?;
    Some((u32::from_le_bytes(*thread), u64::from_le_bytes(*rest.first_chunk()?)))
}

fn report(case: &Case, ours: &[Run], theirs: &[Run]) {
    let mut table =
        Table::new(&["", "CPU", "a million events", "peak resident", "file", "received", "lost", "too late"]);
    for (name, runs) in [(RUNTAP, ours), (DOTNET_TRACE, theirs)] {
        let count = |of: fn(&Run) -> u64| median(runs.iter().map(of).collect());
        table.row(&[
            name.to_owned(),
            format!("{:.3} s", cpu(runs)),
            format!("{:.3} s", median(runs.iter().map(Run::cpu_a_million).collect())),
            megabytes(peak(runs)),
            megabytes(count(|run| run.bytes)),
            count(|run| run.received).to_string(),
            count(|run| run.lost).to_string(),
            count(Run::late).to_string(),
        ]);
    }
    let per_event = |runs: &[Run]| median(runs.iter().map(Run::cpu_a_million).collect());
    table.row(&[
        "ratio".to_owned(),
        format!("{:.3}", cpu(ours) / cpu(theirs)),
        format!("{:.3}", per_event(ours) / per_event(theirs)),
        format!("{:.3}", float(peak(ours)) / float(peak(theirs))),
    ]);
    table.print(&format!("{}, {} s; medians of {RUNS}", case.title, SESSION.as_secs()));
    let ratio = cpu(ours) / cpu(theirs);
    bar(&format!("at most {} of dotnet-trace's CPU", case.bar), ratio <= case.bar, &format!("{ratio:.3}"));
    let lost = |runs: &[Run]| median(runs.iter().map(|run| run.lost).collect());
    let (our_loss, their_loss) = (lost(ours), lost(theirs));
    bar("no more lost events", our_loss <= their_loss, &format!("{our_loss} and {their_loss}"));
    bar("resident memory at most 20 MB", peak(ours) <= MAX_RESIDENT, &megabytes(peak(ours)));
}

fn cpu(runs: &[Run]) -> f64 {
    median(runs.iter().map(|run| run.cost.cpu.as_secs_f64()).collect())
}

/// Returns the maximum of all runs, since a limit on memory applies to each run.
fn peak(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.cost.peak).max().unwrap_or_default()
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", float(bytes) / 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn float(n: u64) -> f64 {
    n as f64
}
