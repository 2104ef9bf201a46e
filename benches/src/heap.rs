//! Heaps of .NET programs: from the bytes of a runtime's events to the graph, its dominators, and the memory in use.
//!
//! The heap is made up: objects of 24 to 56 bytes with two references each, most of them to the neighborhood and every
//! eighth to any object, which is what makes dominators expensive. Every thousandth object is a root.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::BufWriter;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::ClockId;
use runtap_clr::HeapEvents;
use runtap_clr::clr::RUNTIME;
use runtap_heap::gcdump::{GcDumpReader, GcDumpSource, write};
use runtap_heap::{Dominators, Graph};
use runtap_nettrace::{EventToWrite, Metadata, Observe as _, Reader, TraceHeader, Writer};
use runtap_testkit::Peer;

use crate::cost;
use crate::output::{self, Table, bar, line, median};

const OBJECTS: u64 = 10_000_000;
/// Objects in a file that the peer reads too.
const IN_FILE: u64 = 2_000_000;
const ROUNDS: usize = 3;
/// Objects per event. A runtime's events have up to 64 KiB.
const BLOCK: u64 = 2_000;
const REFERENCES: u64 = 2;
const BASE: u64 = 0x7f00_0000_0000;
/// The distance of objects in bytes.
const DISTANCE: u64 = 56;
const TYPES: u64 = 500;

/// With `objects`: reads that many objects while they are made, and prints the memory in use.
pub(crate) fn run(objects: Option<u64>) -> Result<()> {
    match objects {
        Some(objects) => memory(objects),
        None => speed(),
    }
}

fn speed() -> Result<()> {
    let mut stream = Vec::new();
    make(OBJECTS, |bytes| stream.extend_from_slice(bytes))?;
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        let (graph, building) = timed(|| read(|feed| feed(&stream)))?;
        let (dominators, time) = timed(|| Ok(black_box(Dominators::new(&graph))))?;
        if dominators.reachable_count() == 0 {
            bail!("no object is reachable");
        }
        let [reading, dominating] = &mut times;
        reading.push(building);
        dominating.push(time);
    }
    output::machine();
    let mut table = Table::new(&["stage", "seconds", "million objects/s", "MB/s"]);
    let [reading, dominating] = times.map(median);
    for (name, time, bytes) in [("events to graph", reading, stream.len()), ("dominators", dominating, 0)] {
        table.row(&[
            name.to_owned(),
            format!("{:.2}", time.as_secs_f64()),
            format!("{:.1}", per_second(OBJECTS, time) / 1e6),
            if bytes == 0 { String::new() } else { format!("{:.0}", per_second(bytes as u64, time) / 1e6) },
        ]);
    }
    let title =
        "a made-up heap of 10 million objects and 20 million references; processor time, medians of 3";
    table.print(title);
    let rate = per_second(OBJECTS, reading) / 1e6;
    bar("at least 16 million objects/s", rate >= 16.0, &format!("{rate:.1}"));
    let seconds = dominating.as_secs_f64();
    bar("dominators in at most 5 s", seconds <= 5.0, &format!("{seconds:.2} s"));
    files()
}

/// Reads a file of a heap, and has the peer read it.
fn files() -> Result<()> {
    let peer = match Peer::available("mspipe") {
        Ok(peer) => peer,
        Err(skip) => {
            line(skip);
            return Ok(());
        }
    };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("heap.gcdump");
    let graph = read(|feed| make(IN_FILE, feed).expect("the limits of the format are kept"))?;
    let source = GcDumpSource { is_64_bit: true, ..GcDumpSource::default() };
    write(&graph, &source, &mut BufWriter::new(File::create(&path)?))?;
    drop(graph);
    let bytes = fs::read(&path)?;
    let (graph, ours) = timed(|| {
        let mut reader = GcDumpReader::new();
        reader.feed(&bytes);
        Ok(black_box(reader.finish()?))
    })?;
    let mut command = peer.command();
    command.arg("heap").arg(&path);
    let theirs = cost::of(&command)?;
    line(format_args!(
        "\na .gcdump file of {} objects, {} bytes, read once: runtap {:.2} s, {} bytes of memory for the graph; mspipe {:.2} s, {} bytes",
        graph.object_count(),
        bytes.len(),
        ours.as_secs_f64(),
        graph.memory_bytes(),
        theirs.cpu.as_secs_f64(),
        theirs.peak,
    ));
    let ratio = theirs.cpu.as_secs_f64() / ours.as_secs_f64();
    bar("a tenth of the peer's time at most", ratio >= 10.0, &format!("{ratio:.1} times as fast"));
    Ok(())
}

fn memory(objects: u64) -> Result<()> {
    let before = peak()?;
    let graph = read(|feed| make(objects, feed).expect("the limits of the format are kept"))?;
    let during = peak()?.saturating_sub(before);
    let count = u64::from(graph.object_count()).max(1);
    let kept = graph.memory_bytes() as u64;
    line(format_args!(
        "{count} objects, {} references: the graph has {kept} bytes, {:.1} per object; at most {during} were in use",
        graph.reference_count(),
        per(kept, count),
    ));
    bar("at most 40 bytes per object", kept <= 40 * count, &format!("{:.1}", per(kept, count)));
    bar(
        "at most 50 bytes per object while reading",
        during <= 50 * count,
        &format!("{:.1}", per(during, count)),
    );
    Ok(())
}

/// Reads the heap in the chunks that `chunks` passes on.
fn read(chunks: impl FnOnce(&mut dyn FnMut(&[u8]))) -> Result<Graph> {
    let (mut reader, mut events) = (Reader::new(), HeapEvents::new());
    let mut failed = None;
    chunks(&mut |bytes| {
        for bytes in bytes.chunks(256 << 10) {
            reader.feed(bytes);
            loop {
                match reader.next() {
                    Ok(Some(item)) => events.item(&item),
                    Ok(None) => break,
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    let graph = events.finish().context("no heap was found")?;
    if let Some(why) = graph.incomplete() {
        bail!("incomplete: {why}");
    }
    Ok(graph)
}

/// Makes the events of a heap, and passes their bytes on as they are made.
fn make(objects: u64, mut out: impl FnMut(&[u8])) -> Result<()> {
    let mut writer = Writer::new(&TraceHeader::new(1_700_000_000_000_000_000, 0, 1_000_000_000));
    let mut random = 1_u64;
    let mut block = 0;
    let ids = Ids::define(&mut writer)?;
    event(&mut writer, ids.start, collection())?;
    let mut first = 0;
    while first < objects {
        let count = BLOCK.min(objects - first);
        let mut nodes = numbered(block, count)?;
        let mut edges = numbered(block, count * REFERENCES)?;
        for object in first..first + count {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = random >> 16;
            nodes.u64(address(object)).u64(24 + 8 * (bits & 3)).u64(1 + bits % TYPES).u64(REFERENCES);
            let far = (random >> 20) % objects;
            let near = |shift: u32| (object + 1 + ((bits >> shift) & 15)) % objects;
            for target in [near(4), if bits.trailing_zeros() >= 3 { far } else { near(8) }] {
                edges.u64(address(target)).u32(0);
            }
        }
        event(&mut writer, ids.nodes, nodes)?;
        event(&mut writer, ids.edges, edges)?;
        out(&writer.take_output());
        (first, block) = (first + count, block + 1);
    }
    for (block, first) in (0..objects.div_ceil(1_000)).step_by(1_000).enumerate() {
        let roots: Vec<u64> = (first..objects.div_ceil(1_000)).take(1_000).collect();
        let mut payload = numbered(u32::try_from(block)?, roots.len() as u64)?;
        for root in roots {
            payload.u64(address(root * 1_000)).u8(2).u32(0).u64(0);
        }
        event(&mut writer, ids.roots, payload)?;
    }
    event(&mut writer, ids.end, collection())?;
    out(&writer.finish());
    Ok(())
}

/// The events of a heap, by the numbers with which they were defined.
struct Ids {
    start: u32,
    end: u32,
    roots: u32,
    nodes: u32,
    edges: u32,
}

impl Ids {
    fn define(writer: &mut Writer) -> Result<Self> {
        let mut define = |id| writer.define_event(&Metadata::new(RUNTIME, id, ""));
        Ok(Self {
            start: define(1)?,
            end: define(2)?,
            roots: define(16)?,
            nodes: define(18)?,
            edges: define(19)?,
        })
    }
}

fn event(writer: &mut Writer, metadata_id: u32, payload: runtap_wire::Writer) -> Result<()> {
    let payload = payload.into_bytes();
    let event = EventToWrite { metadata_id, capture_thread_id: 1, payload: &payload, ..Default::default() };
    Ok(writer.event(&event)?)
}

fn collection() -> runtap_wire::Writer {
    let mut payload = runtap_wire::Writer::new();
    payload.u32(1).u32(2).u32(1).u32(0);
    payload
}

/// Begins the payload of a numbered block with this number of entries.
fn numbered(block: u32, count: u64) -> Result<runtap_wire::Writer> {
    let mut payload = runtap_wire::Writer::new();
    payload.u32(block).u32(u32::try_from(count)?).u16(0);
    Ok(payload)
}

fn address(object: u64) -> u64 {
    BASE + object * DISTANCE
}

/// Returns the result of `work`, and the processor time that it takes.
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let now = || -> Result<Duration> { Ok(ClockId::CLOCK_PROCESS_CPUTIME_ID.now()?.into()) };
    let start = now()?;
    let result = work()?;
    Ok((result, now()?.saturating_sub(start)))
}

/// Returns the peak resident memory of this process in bytes.
fn peak() -> Result<u64> {
    Ok(u64::try_from(getrusage(UsageWho::RUSAGE_SELF)?.max_rss())? * 1024)
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn per_second(n: u64, time: Duration) -> f64 {
    n as f64 / time.as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn per(n: u64, count: u64) -> f64 {
    n as f64 / count as f64
}
