//! How fast recordings are read, beside TraceEvent (`tebench`) in one run: the decoder alone on one core and on all, and
//! `runtap events --count` from start to exit; then how time and memory grow with the file.
//!
//! The files are recordings of the shared folder, repeated by the project's own writer. Ours and theirs take turns, and
//! of each the best time counts, as tebench itself has it: what else the machine does makes nothing faster.

use std::fs::{self, File};
use std::io::BufWriter;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use runtap_nettrace::{Item, Reader, Scan};
use runtap_testkit::{Peer, shared_data};
use serde_json::Value;

use crate::output::{self, Table, bar, line, median};
use crate::{cost, repeat};

const MEGABYTE: u64 = 1_000_000;
const SIZE: u64 = 256 * MEGABYTE;
const GROWTH: [u64; 5] = [10, 50, 250, 1_000, 2_000];
const ROUNDS: usize = 5;
const DECODER_ROUNDS: usize = 15;

const ONE_CORE: f64 = 6.0;
const TWO_CORES: f64 = 10.0;
const PROCESS: f64 = 12.0;

/// Recordings with many samples, and what is peculiar to them.
const SHAPES: [(&str, &str); 3] = [
    ("nettrace/eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.zst", "large events, a third samples"),
    ("nettrace/net10/cpu-spin.nettrace.zst", "dotnet-trace's default, 42 % samples"),
    ("nettrace/dotnet-5.0-SampleProfiler-single-thread.golden.nettrace.zst", "tiny events, a fifth samples"),
];

pub(crate) fn run(runtap: &Path) -> Result<()> {
    let tebench = match Peer::available("tebench") {
        Ok(tebench) => tebench,
        Err(skip) => {
            line(skip);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir_in(runtap_testkit::workspace_root().join("target"))?;
    output::machine();
    for (recording, what) in SHAPES {
        let short = match shared_data(recording) {
            Ok(short) => short,
            Err(skip) => {
                line(skip);
                return Ok(());
            }
        };
        let file = folder.path().join("repeated.nettrace");
        let events = repeat::repeat(&short, SIZE, BufWriter::new(File::create(&file)?))?;
        compare(runtap, &tebench, &file, events, recording, what)?;
        output::machine();
    }
    grow(runtap, folder.path())
}

fn compare(
    runtap: &Path,
    tebench: &Peer,
    file: &Path,
    events: u64,
    recording: &str,
    what: &str,
) -> Result<()> {
    let bytes = fs::read(file)?;
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let (mut one, mut all, mut loops) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for _ in 0..DECODER_ROUNDS / ROUNDS {
            one.push(timed(|| decode(&bytes), events)?);
            all.push(timed(|| decode_on(cores, &bytes), events)?);
        }
        loops.push(parse(tebench, file, events, &["--warmup", "3", "--runs", "4"])?);
        ours.push(process({
            let mut command = Command::new(runtap);
            command.args(["events", "--count"]).arg(file);
            command
        })?);
        theirs.push(process({
            let mut command = tebench.command();
            command.arg(file).args(["--mode", "parse", "--runs", "1"]);
            command
        })?);
    }
    let best = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    let mut table = Table::new(&["", "best", "median", "ns an event", "MB/s", "ratio", "bar"]);
    let mut row = |name: &str, times: &[Duration], peer: Option<(&[Duration], f64)>| {
        let time = best(times).as_secs_f64();
        let ratio = peer.map(|(peer, least)| (best(peer).as_secs_f64() / time, least));
        table.row(&[
            name.to_owned(),
            milliseconds(best(times)),
            milliseconds(median(times.to_vec())),
            format!("{:.1}", time * 1e9 / float(events)),
            format!("{:.0}", float(bytes.len() as u64) / time / 1e6),
            ratio.map_or_else(String::new, |(ratio, _)| format!("{ratio:.1}")),
            ratio.map_or_else(String::new, |(_, least)| format!("≥ {least}")),
        ]);
        ratio
    };
    row("TraceEvent's event loop, warm", &loops, None);
    let bars = [
        ("one core", row("decoder, one core", &one, Some((&loops, ONE_CORE)))),
        ("two cores", row(&format!("decoder, {cores} cores"), &all, Some((&loops, TWO_CORES)))),
        ("start to exit", {
            row("tebench --mode parse --runs 1", &theirs, None);
            row("runtap events --count", &ours, Some((&theirs, PROCESS)))
        }),
    ];
    let name = Path::new(recording).file_name().unwrap_or_default().to_string_lossy();
    table.print(&format!("{name} × n: {} events, {} bytes; {what}", events, bytes.len()));
    for (what, ratio) in bars {
        if let Some((ratio, least)) = ratio {
            let (what, measured) = (format!("{what}: at least {least} × TraceEvent"), format!("{ratio:.1}"));
            bar(&what, ratio >= least, &measured);
        }
    }
    Ok(())
}

/// How long one reading took; it has to find all events.
fn timed(read: impl FnOnce() -> Result<u64>, events: u64) -> Result<Duration> {
    let start = Instant::now();
    let found = read()?;
    let time = start.elapsed();
    if found != events {
        bail!("{found} events were read, not {events}");
    }
    Ok(time)
}

/// What a reader has to do for each event: the whole header, the definition, losses.
#[derive(Default)]
struct Seen {
    events: u64,
    check: u64,
}

impl Seen {
    #[inline]
    fn see(&mut self, item: &Item<'_>) {
        if let Item::Event(event) = item {
            self.events += u64::from(event.metadata.is_some());
            self.check = self.check.wrapping_add(event.timestamp).wrapping_add(event.payload.len() as u64);
        }
    }
}

fn decode(bytes: &[u8]) -> Result<u64> {
    let (mut reader, mut seen) = (Reader::new(), Seen::default());
    reader.items(bytes).for_each(|item| seen.see(&item))?;
    std::hint::black_box(seen.check);
    if !reader.is_complete() || reader.lost() > 0 {
        bail!("the recording is not whole");
    }
    Ok(seen.events)
}

fn decode_on(cores: usize, bytes: &[u8]) -> Result<u64> {
    let parts = Scan::of(bytes, bytes.len() as u64 / (cores as u64 * 8));
    let next = AtomicUsize::new(0);
    let work = || -> Result<u64> {
        let mut seen = Seen::default();
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut reader = part.reader();
            for piece in part.pieces() {
                reader.go_to(piece.start);
                let (start, end) = (usize::try_from(piece.start)?, usize::try_from(piece.end)?);
                reader.items(bytes.get(start..end).unwrap_or_default()).for_each(|item| seen.see(&item))?;
            }
        }
        std::hint::black_box(seen.check);
        Ok(seen.events)
    };
    thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut events = work()?;
        for other in others {
            events += other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(events)
    })
}

/// tebench's own figure for its best run.
fn parse(tebench: &Peer, file: &Path, events: u64, options: &[&str]) -> Result<Duration> {
    let mut command = tebench.command();
    command.arg(file).args(["--mode", "parse"]).args(options);
    let output = command.stderr(Stdio::inherit()).output()?;
    let answer: Value = serde_json::from_slice(&output.stdout).context("tebench printed no JSON")?;
    if answer["events"] != events || !answer["error"].is_null() {
        bail!("tebench reads something else: {answer}");
    }
    let ms = answer["ms"].as_f64().context("tebench tells no time")?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}

/// From start to exit.
fn process(mut command: Command) -> Result<Duration> {
    let start = Instant::now();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let time = start.elapsed();
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(time)
}

/// `runtap events --count` on files of several sizes.
fn grow(runtap: &Path, folder: &Path) -> Result<()> {
    let Ok(short) = shared_data(SHAPES[1].0) else { return Ok(()) };
    let file: PathBuf = folder.join("growing.nettrace");
    let mut table = Table::new(&["file", "events", "time", "ns an event", "processor time", "peak resident"]);
    for megabytes in GROWTH {
        let events = repeat::repeat(&short, megabytes * MEGABYTE, BufWriter::new(File::create(&file)?))?;
        let command = || {
            let mut command = Command::new(runtap);
            command.args(["events", "--count"]).arg(&file);
            command
        };
        let times = (0..ROUNDS).map(|_| process(command())).collect::<Result<Vec<_>>>()?;
        let cost = cost::of(&command())?;
        let time = times.into_iter().min().unwrap_or_default();
        table.row(&[
            format!("{megabytes} MB"),
            events.to_string(),
            milliseconds(time),
            format!("{:.1}", time.as_secs_f64() * 1e9 / float(events)),
            milliseconds(cost.cpu),
            format!("{:.1} MB", float(cost.peak) / 1e6),
        ]);
    }
    table.print("runtap events --count, files of growing size (cpu-spin × n)");
    output::machine();
    Ok(())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn float(n: u64) -> f64 {
    n as f64
}
