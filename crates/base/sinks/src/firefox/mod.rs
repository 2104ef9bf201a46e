//! Firefox Profiler's processed format, compressed with gzip, for <https://profiler.firefox.com>.
//!
//! | in the model | in the file |
//! |---|---|
//! | process | `meta.product`; `processName` and `pid` of each thread, by which the viewer groups threads; `meta.arguments` is the command line |
//! | start of the session | `meta.startTime`, in milliseconds since 1970 |
//! | sampling period | `meta.interval`, in milliseconds |
//! | thread with weight in the view | one of `threads`, named `Thread (TID) NAME`, in the order of first use |
//! | the thread with the most time in managed samples | `meta.initialSelectedThreads` |
//! | frame | an entry of the thread's `frameTable`, `funcTable` and `stringArray` |
//! | module | the category of the frame: `Framework` (blue), `Program` (orange), `Other` (gray) for an address without a name |
//! | stack | an entry of the thread's `stackTable` |
//! | a sample without a stack | a stack of the one frame `[no stack]` |
//! | a sample | one of `samples`: `time`, `stack`, `weight` |
//! | weight | milliseconds with six decimals (`tracing-ms`); bytes in the view `alloc`, a number in `exceptions` |
//! | kind | `threadCPUDelta`, nanoseconds: the duration of managed samples is processor time |
//! | end of a sample that no other sample follows immediately | a row without a stack and with weight 0 |
//! | view | selects the samples; `thread-time` by default |
//!
//! The format consists of a table per column, so the samples are visited once per column. It is not fully documented;
//! this is version 55, as written by the crate `fxprof-processed-profile`, with which a test compares the output. Newer
//! viewers upgrade older versions. That crate only supports integer weights and builds the file in memory.

mod tables;

use self::tables::{Tables, column};
use crate::json::{number, string};
use crate::processes::{Numbered, Processes};
use crate::{Error, Options};
use flate2::{Compression, GzBuilder};
use runtap_model::{Sample, SampleClass, StackHandle, Thread, Trace, Unit, View};
use std::io::{self, BufWriter, Write};

/// Version of the format.
const VERSION: u32 = 55;

/// Writes `trace` for Firefox Profiler.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    let threads = crate::threads(trace, options.view)?;
    let gzip = GzBuilder::new().write(BufWriter::with_capacity(1 << 16, w), Compression::default());
    let mut w = BufWriter::with_capacity(1 << 16, gzip);
    w.write_all(b"{\"meta\":{")?;
    write_meta(trace, &threads, options, &mut w)?;
    w.write_all(b"},\n\"libs\":[],\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\"threads\":[")?;
    let mut tables = Tables::new(trace);
    let processes = Processes::new(trace, &threads);
    // The viewer shows each process by its main thread.
    let main_threads = processes.main_threads(&threads);
    for (i, thread) in threads.iter().enumerate() {
        w.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        let whose = (processes.of(i), main_threads[i]);
        write_thread(trace, thread, whose, options.view, &mut tables, &mut w)?;
    }
    w.write_all(b"\n]}\n")?;
    w.into_inner().map_err(io::IntoInnerError::into_error)?.finish()?.flush()?;
    Ok(())
}

fn write_meta(trace: &Trace, threads: &[&Thread], options: &Options, w: &mut impl Write) -> io::Result<()> {
    write!(w, r#""version":24,"preprocessedProfileVersion":{VERSION},"processType":0,"product":"#)?;
    string(w, trace.process().name.as_deref().unwrap_or("a process"))?;
    w.write_all(br#","importedFrom":"#)?;
    string(w, &options.exporter)?;
    if let Some(arguments) = &trace.process().command_line {
        w.write_all(br#","arguments":"#)?;
        string(w, arguments)?;
    }
    w.write_all(br#","interval":"#)?;
    milliseconds(w, trace.period_ns())?;
    w.write_all(br#","startTime":"#)?;
    milliseconds(w, trace.start_unix_ns().and_then(|start| u64::try_from(start).ok()).unwrap_or(0))?;
    w.write_all(br#","sampleUnits":{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"}"#)?;
    w.write_all(br#","categories":["#)?;
    for (i, (name, color)) in tables::categories(trace).enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(w, r#"{comma}{{"name":"{name}","color":"{color}","subcategories":["Other"]}}"#)?;
    }
    let busiest = crate::busiest(threads, options.view);
    write!(w, r#"],"initialSelectedThreads":[{busiest}],"keepProfileThreadOrder":true,"#)?;
    w.write_all(br#""symbolicated":true,"usesOnlyOneStackType":true,"sourceCodeIsNotOnSearchfox":true,"#)?;
    w.write_all(br#""debug":false,"extensions":{"length":0,"id":[],"name":[],"baseURL":[]},"#)?;
    w.write_all(br#""pausedRanges":[],"markerSchema":[]"#)
}

fn write_thread(
    trace: &Trace,
    thread: &Thread,
    (process, is_main): (Numbered<'_>, bool),
    view: View,
    tables: &mut Tables,
    w: &mut impl Write,
) -> io::Result<()> {
    let (tid, pid) = (thread.tid(), process.pid);
    w.write_all(br#"{"name":"#)?;
    string(w, &thread.own_label())?;
    write!(w, r#","isMainThread":{is_main},"tid":"{tid}","pid":"{pid}","processName":"#)?;
    string(w, process.name())?;
    w.write_all(
        br#","processType":"default","processStartupTime":0,"processShutdownTime":null,"registerTime":"#,
    )?;
    milliseconds(w, thread.samples(view).next().map_or(0, |sample| sample.time_ns))?;
    w.write_all(br#","unregisterTime":null,"pausedRanges":[],"showMarkersInTimeline":false,"#)?;
    w.write_all(br#""markers":{"length":0,"category":[],"data":[],"endTime":[],"name":[],"phase":[],"startTime":[]},"#)?;
    w.write_all(br#""nativeSymbols":{"length":0,"address":[],"functionSize":[],"libIndex":[],"name":[]},"#)?;
    w.write_all(br#""resourceTable":{"length":0,"lib":[],"name":[],"host":[],"type":[]},"#)?;
    tables.choose(trace, thread, view);
    tables.write(trace, w)?;

    let weight_type = match view.unit() {
        Unit::Nanoseconds => "tracing-ms",
        Unit::Bytes => "bytes",
        _ => "samples",
    };
    let length = rows(thread, view).count();
    write!(w, r#","samples":{{"length":{length},"weightType":"{weight_type}""#)?;
    column(w, "stack", rows(thread, view), |w, row| {
        if row.is_sample { number(w, tables.index(row.stack)) } else { w.write_all(b"null") }
    })?;
    column(w, "time", rows(thread, view), |w, row| milliseconds(w, row.time_ns))?;
    column(w, "weight", rows(thread, view), |w, row| match view.unit() {
        Unit::Nanoseconds => milliseconds(w, row.weight),
        _ => number(w, row.weight),
    })?;
    if view.is_sampled() {
        column(w, "threadCPUDelta", rows(thread, view), |w, row| number(w, row.cpu_ns))?;
    }
    w.write_all(b"}}")
}

/// A row of the sample table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    time_ns: u64,
    /// False for the end of a sample.
    is_sample: bool,
    stack: Option<StackHandle>,
    weight: u64,
    /// Processor time in nanoseconds since the previous row.
    cpu_ns: u64,
}

/// Returns rows for the samples, and for the ends of samples that no other follows immediately.
fn rows(thread: &Thread, view: View) -> impl Iterator<Item = Row> + '_ {
    let mut samples = thread.samples(view).peekable();
    let mut before: Option<Sample> = None;
    std::iter::from_fn(move || {
        let end_ns = before.map(|b| b.time_ns.saturating_add(b.weight)).filter(|_| view.is_sampled());
        let ran_until = |before: Option<Sample>, time_ns: u64| {
            before
                .filter(|b| b.kind.class() == SampleClass::Running)
                .map_or(0, |b| time_ns.saturating_sub(b.time_ns))
        };
        match (end_ns, samples.peek().copied()) {
            (None, None) => None,
            (Some(end_ns), next) if next.is_none_or(|next| next.time_ns > end_ns) => {
                let cpu_ns = ran_until(before.take(), end_ns);
                Some(Row { time_ns: end_ns, is_sample: false, stack: None, weight: 0, cpu_ns })
            }
            (_, next) => {
                let sample = next?;
                samples.next();
                let cpu_ns = ran_until(before.replace(sample), sample.time_ns);
                Some(Row {
                    time_ns: sample.time_ns,
                    is_sample: true,
                    stack: sample.stack,
                    weight: sample.weight,
                    cpu_ns,
                })
            }
        }
    })
}

/// Writes nanoseconds as milliseconds with as many decimals as necessary.
fn milliseconds(w: &mut impl Write, ns: u64) -> io::Result<()> {
    number(w, ns / 1_000_000)?;
    let mut rest = ns % 1_000_000;
    if rest == 0 {
        return Ok(());
    }
    let mut digits = *b".000000";
    for digit in digits[1..].iter_mut().rev() {
        *digit = b"0123456789"[usize::try_from(rest % 10).unwrap_or_default()];
        rest /= 10;
    }
    let end = digits.iter().rposition(|digit| *digit != b'0').unwrap_or_default();
    w.write_all(&digits[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_model::{SampleKind, TraceBuilder};

    #[test]
    fn milliseconds_are_exact() {
        let of = |ns| {
            let mut text = Vec::new();
            milliseconds(&mut text, ns).expect("a Vec takes all");
            String::from_utf8(text).expect("digits")
        };
        assert_eq!([of(0), of(1), of(1_000_000), of(1_500_000)], ["0", "0.000001", "1", "1.5"]);
        assert_eq!([of(123_456_789), of(20_100)], ["123.456789", "0.0201"]);
        assert_eq!(of(u64::MAX), "18446744073709.551615");
    }

    #[test]
    fn a_sample_without_a_successor_ends_with_an_extra_row() {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        let stack = builder.frame(None, "a");
        let stack = builder.stack(None, stack);
        let [runs, waits] = [SampleKind::MANAGED, SampleKind::EXTERNAL];
        for (time, kind) in [(10, runs), (20, waits), (30, waits), (40, runs)] {
            builder.add_sample(thread, time, kind, Some(stack));
        }
        let trace = builder.finish();
        let of = |view| -> Vec<_> {
            let row = |r: Row| (r.time_ns, r.is_sample, r.weight, r.cpu_ns);
            rows(trace.thread(thread), view).map(row).collect()
        };
        assert_eq!(
            of(View::ThreadTime),
            [(10, true, 10, 0), (20, true, 20, 10), (40, true, 10, 0), (50, false, 0, 10)]
        );
        assert_eq!(
            of(View::Cpu),
            [(10, true, 10, 0), (20, false, 0, 10), (40, true, 10, 0), (50, false, 0, 10)]
        );
    }
}
