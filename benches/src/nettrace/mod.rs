//! Speed of reading recordings, beside TraceEvent (`tebench`) and dotnet-trace: the library in memory, on one core and
//! on all; `runtap events --count` and `runtap convert` from start to exit; then the growth of time and memory with the
//! file.
//!
//! The files are recordings of the shared folder, repeated by the project's own writer. The compared programs run
//! alternately, and the best time of each counts, as in tebench itself: other load never makes a program faster. Modes
//! of the other tools that take many seconds run only once.

mod cores;
mod growth;
mod peers;
mod readings;

use std::fs::{self, File};
use std::io::BufWriter;
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use runtap_testkit::{Peer, shared_data};

use self::cores::on_all;
pub(crate) use self::cores::on_one;
use self::peers::Recording;
use self::readings::Events;
pub(crate) use self::readings::{Fields, Stacks};
use crate::cost::{self, Cost};
use crate::output::{self, Table, bar, line, median};
use crate::repeat;

const MEGABYTE: u64 = 1_000_000;
const SIZE: u64 = 256 * MEGABYTE;
const ROUNDS: usize = 5;
/// Readings in memory per round.
const TURNS: usize = 3;

const ONE_CORE: f64 = 6.0;
const TWO_CORES: f64 = 10.0;
const FIELDS: f64 = 8.0;
const STACKS: f64 = 50.0;
const PROCESS: f64 = 12.0;
const CONVERT: f64 = 50.0;

/// Recordings with many samples, and their characteristics.
const SHAPES: [(&str, &str); 3] = [
    ("nettrace/eventpipe-dotnetcore3.0-win-x64-objver4.nettrace.zst", "large events, a third samples"),
    ("nettrace/net10/cpu-spin.nettrace.zst", "dotnet-trace's default, 42 % samples"),
    ("nettrace/dotnet-5.0-SampleProfiler-single-thread.golden.nettrace.zst", "tiny events, a fifth samples"),
];
/// The typical recording.
const TYPICAL: &str = SHAPES[1].0;

struct Programs<'a> {
    runtap: &'a Path,
    tebench: Peer,
    dotnet_trace: Peer,
}

pub(crate) fn run(runtap: &Path) -> Result<()> {
    let (tebench, dotnet_trace) = match (Peer::available("tebench"), Peer::available("dotnet-trace")) {
        (Ok(tebench), Ok(dotnet_trace)) => (tebench, dotnet_trace),
        (Err(skip), _) | (_, Err(skip)) => {
            line(skip);
            return Ok(());
        }
    };
    let programs = Programs { runtap, tebench, dotnet_trace };
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
        let name = Path::new(recording).file_name().unwrap_or_default().to_string_lossy();
        let title = format!("{name} × n: {events} events, {} bytes; {what}", fs::metadata(&file)?.len());
        compare(&programs, Recording { file: &file, events }, folder.path(), &title)?;
        output::machine();
    }
    growth::run(runtap, folder.path(), TYPICAL)
}

/// Measured times of one reading.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn best(&self) -> Duration {
        self.0.iter().min().copied().unwrap_or_default()
    }

    /// Times a reading in memory, which has to find exactly `events` events.
    fn read(&mut self, events: u64, read: impl FnOnce() -> Result<u64>) -> Result<()> {
        let start = Instant::now();
        let found = read()?;
        self.0.push(start.elapsed());
        if found != events {
            bail!("{found} events were read, not {events}");
        }
        Ok(())
    }
}

#[derive(Default)]
struct Measured {
    parse: Times,
    one: Times,
    all: Times,
    dynamic: Times,
    fields_one: Times,
    fields_all: Times,
    tracelog: Times,
    stacks_one: Times,
    stacks_all: Times,
    process: Times,
    count: Times,
    dotnet_trace: Times,
    convert: Times,
    compat: Times,
}

fn compare(programs: &Programs<'_>, recording: Recording<'_>, folder: &Path, title: &str) -> Result<()> {
    let Programs { runtap, tebench, dotnet_trace } = programs;
    let Recording { file, events } = recording;
    let bytes = fs::read(file)?;
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let te = |mode, runs: &[&str]| peers::tebench(tebench, recording, mode, runs, folder);
    let output = folder.join("converted.json");
    let common = runtap_clr::Stacks::default();
    let mut m = Measured::default();
    // Results, printed to show that both programs do equal work.
    let (mut fields, mut stacks, mut written) = (0, [0; 3], [0; 3]);
    let mut costs = None;
    let (mut their_fields, mut their_stacks) = (String::new(), String::new());
    for round in 0..ROUNDS {
        for _ in 0..TURNS {
            m.one.read(events, || Ok(Events::sum(&on_one(&bytes, Events::default)?)))?;
            m.all.read(events, || Ok(Events::sum(&on_all(cores, &bytes, Events::default)?)))?;
        }
        let mut sum = |parts: Vec<Fields>| {
            let (events, found) = Fields::sum(&parts);
            fields = found;
            events
        };
        m.fields_one.read(events, || Ok(sum(on_one(&bytes, Fields::default)?)))?;
        m.fields_all.read(events, || Ok(sum(on_all(cores, &bytes, Fields::default)?)))?;
        let mut sum = |parts| -> Result<u64> {
            let (events, found) = Stacks::sum(parts)?;
            stacks = found;
            Ok(events)
        };
        m.stacks_one.read(events, || sum(on_one(&bytes, Stacks::default)?))?;
        m.stacks_all.read(events, || sum(on_all(cores, &bytes, || Stacks::of_part(&common))?))?;
        m.parse.0.push(te("parse", &["--warmup", "3", "--runs", "4"])?.0);
        m.count.0.push(peers::process(peers::count(runtap, file))?);
        m.process.0.push({
            let mut command = tebench.command();
            command.arg(file).args(["--mode", "parse", "--runs", "1"]);
            peers::process(command)?
        });
        m.convert.0.push(peers::process(peers::convert(runtap, file, &[], &output))?);
        written[0] = fs::metadata(&output)?.len();
        if round > 0 {
            continue;
        }
        let (time, detail) = te("dynamic", &["--warmup", "2", "--runs", "3"])?;
        m.dynamic.0.push(time);
        their_fields = detail;
        let (time, detail) = te("tracelog", &["--runs", "2"])?;
        m.tracelog.0.push(time);
        their_stacks = detail;
        let ours = cost::of(&peers::convert(runtap, file, &[], &output))?;
        let (time, theirs, bytes) = peers::dotnet_trace(dotnet_trace, file, folder)?;
        costs = Some((ours, theirs));
        m.dotnet_trace.0.push(time);
        written[1] = bytes;
        m.compat.0.push(peers::process(peers::convert(
            runtap,
            file,
            &["--compat", "dotnet-trace"],
            &output,
        ))?);
        written[2] = fs::metadata(&output)?.len();
    }
    let mut table = Table::new(&["", "best", "median", "ns an event", "MB/s", "ratio", "bar"]);
    let mut bars = Vec::new();
    let mut row = |name: &str, times: &Times, peer: Option<&Times>, least: Option<f64>| {
        let time = times.best().as_secs_f64();
        let ratio = peer.map(|peer| peer.best().as_secs_f64() / time);
        table.row(&[
            name.to_owned(),
            milliseconds(times.best()),
            milliseconds(median(times.0.clone())),
            format!("{:.1}", time * 1e9 / float(events)),
            format!("{:.0}", float(bytes.len() as u64) / time / 1e6),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.1}")),
            least.map_or_else(String::new, |least| format!("≥ {least}")),
        ]);
        if let (Some(ratio), Some(least)) = (ratio, least) {
            bars.push((name.to_owned(), ratio, least));
        }
    };
    let on_all_cores = |what: &str| format!("{what}, {cores} cores");
    row("TraceEvent's event loop, warm", &m.parse, None, None);
    row("decoder, one core", &m.one, Some(&m.parse), Some(ONE_CORE));
    row(&on_all_cores("decoder"), &m.all, Some(&m.parse), Some(TWO_CORES));
    row("TraceEvent, every field, warm", &m.dynamic, None, None);
    row("every field, one core", &m.fields_one, Some(&m.dynamic), None);
    row(&on_all_cores("every field"), &m.fields_all, Some(&m.dynamic), Some(FIELDS));
    row("TraceEvent, all stacks named", &m.tracelog, None, None);
    row("all stacks named, one core", &m.stacks_one, Some(&m.tracelog), None);
    row(&on_all_cores("all stacks named"), &m.stacks_all, Some(&m.tracelog), Some(STACKS));
    row("tebench --mode parse --runs 1", &m.process, None, None);
    row("runtap events --count", &m.count, Some(&m.process), Some(PROCESS));
    row("dotnet-trace convert", &m.dotnet_trace, None, None);
    row("runtap convert --to speedscope", &m.convert, Some(&m.dotnet_trace), Some(CONVERT));
    row("the same with --compat dotnet-trace", &m.compat, Some(&m.dotnet_trace), None);
    table.print(title);
    let [named_stacks, frames, named] = stacks;
    line(format_args!("fields: {fields}; TraceEvent: {their_fields}"));
    line(format_args!(
        "stacks: {named_stacks} stacks, {frames} frames, {named} named; TraceEvent: {their_stacks}"
    ));
    let [ours, theirs, compat] = written;
    line(format_args!("written by convert: {ours} bytes, with --compat {compat}; dotnet-trace: {theirs}"));
    if let Some((ours, theirs)) = costs {
        let told =
            |cost: Cost| format!("{}, {:.1} MB resident", milliseconds(cost.cpu), float(cost.peak) / 1e6);
        let ratio = theirs.cpu.as_secs_f64() / ours.cpu.as_secs_f64();
        let (ours, theirs) = (told(ours), told(theirs));
        line(format_args!("processor time of convert: {ours}; dotnet-trace: {theirs}; {ratio:.1} × as much"));
    }
    for (what, ratio, least) in bars {
        bar(&format!("{what}: at least {least} × as fast"), ratio >= least, &format!("{ratio:.1}"));
    }
    Ok(())
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn float(n: u64) -> f64 {
    n as f64
}
