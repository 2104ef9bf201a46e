//! Chrome's trace event format: what `chrome://tracing`, `edge://tracing` and Perfetto's page open.
//!
//! | in the model | in the file |
//! |---|---|
//! | process, or each of several | `pid`; a metadata event `process_name`: its name |
//! | thread with weight in the view | `tid`; metadata events `thread_name`: `Thread (TID) NAME`, and `thread_sort_index` in the order of first use |
//! | frame | `name` of a pair of events: `"ph":"B"` where it opens, `"ph":"E"` where it closes |
//! | consecutive samples with the same frame in the same position | one such pair |
//! | overlapping events of a thread | pairs of `"ph":"b"` and `"ph":"e"` (async events), with an `id` for each further track |
//! | a sample without a stack | a pair named `[no stack]` |
//! | time, weight | `ts`: microseconds since the session's start with three decimals, so whole nanoseconds |
//! | start of the session | `otherData.start_unix_ns`, a text, as JSON's numbers are too short for it |
//! | view | selects the samples; `thread-time` by default. Omitted samples are gaps |
//! | kind | not in the file |
//! | a sample without duration | not in the file: its time is part of the others |
//!
//! The events of a thread are consecutive and in order, and those of different threads follow each other: readers sort
//! by time, and keep the order of equal times. Ends of spans have names because speedscope matches them by name.
//! Processes with equal ids get different ones, see `processes.rs`. Specification: "Trace Event Format" of the Chromium
//! project.

mod dotnet_trace;

use crate::processes::Processes;
use crate::spans::{self, Change};
use crate::{Error, Options, json};
use runtap_model::{Trace, Unit};
use std::io::{self, BufWriter, Write};

/// Writes `trace` as Chrome trace events.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    if options.view.unit() != Unit::Nanoseconds {
        return Err(Error::NoTimeAxis(options.view));
    }
    let threads = crate::threads(trace, options.view)?;
    if options.dotnet_trace {
        let mut w = BufWriter::with_capacity(1 << 16, w);
        dotnet_trace::write(trace, &threads, options.view, &options.exporter, &mut w)?;
        w.flush()?;
        return Ok(());
    }
    let names = json::Names::new(trace)?;
    let processes = Processes::new(trace, &threads);

    let mut w = BufWriter::with_capacity(1 << 16, w);
    w.write_all(br#"{"displayTimeUnit":"ns","otherData":{"exporter":"#)?;
    json::string(&mut w, &options.exporter)?;
    write!(w, r#","view":"{}""#, options.view)?;
    if let Some(start) = trace.start_unix_ns() {
        write!(w, r#","start_unix_ns":"{start}""#)?;
    }
    w.write_all(b"},\"traceEvents\":[")?;
    for (index, process) in processes.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(
            w,
            "{comma}\n{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":",
            process.pid
        )?;
        json::string(&mut w, process.name())?;
        w.write_all(b"}}")?;
    }
    for (index, thread) in threads.iter().enumerate() {
        let (pid, tid) = (processes.of(index).pid, thread.tid());
        let place = format!(r#","pid":{pid},"tid":{tid}"#);
        write!(w, ",\n{{\"ph\":\"M\"{place},\"name\":\"thread_name\",\"args\":{{\"name\":")?;
        json::string(&mut w, &thread.own_label())?;
        w.write_all(b"}}")?;
        write!(
            w,
            ",\n{{\"ph\":\"M\"{place},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{index}}}}}"
        )?;
        for (number, lane) in spans::lanes(thread, options.view).iter().enumerate() {
            let (begin, end, rest) = match number {
                0 => (b'B', b'E', format!("\"{place},\"ts\":")),
                n => {
                    let id = format!(r#"","cat":"overlap","id":"{pid}.{tid}.{n}""#);
                    (b'b', b'e', format!("{id}{place},\"ts\":"))
                }
            };
            spans::walk(trace, lane, |time_ns, change| {
                let (phase, frame) = match change {
                    Change::Open(frame) => (begin, frame),
                    Change::Close(frame) => (end, frame),
                };
                w.write_all(b",\n{\"ph\":\"")?;
                w.write_all(&[phase])?;
                w.write_all(rest.as_bytes())?;
                microseconds(&mut w, time_ns)?;
                w.write_all(b",\"name\":")?;
                w.write_all(names.get(frame))?;
                w.write_all(b"}")
            })?;
        }
    }
    w.write_all(b"\n]}\n")?;
    w.flush()?;
    Ok(())
}

/// Writes nanoseconds as microseconds with three decimals.
fn microseconds(w: &mut impl Write, ns: u64) -> io::Result<()> {
    json::number(w, ns / 1000)?;
    let digit = |of: u64| b"0123456789"[usize::try_from(of % 10).unwrap_or_default()];
    w.write_all(&[b'.', digit(ns / 100), digit(ns / 10), digit(ns)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_are_exact() {
        let of = |ns| {
            let mut text = Vec::new();
            microseconds(&mut text, ns).expect("a Vec takes all");
            String::from_utf8(text).expect("digits")
        };
        assert_eq!(
            [of(0), of(7), of(120), of(1_000), of(1_234_567)],
            ["0.000", "0.007", "0.120", "1.000", "1234.567"]
        );
        assert_eq!(of(u64::MAX), "18446744073709551.615");
    }
}
