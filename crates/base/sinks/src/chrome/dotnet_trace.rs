//! Chrome trace events like those of dotnet-trace: the events of its speedscope files, in microseconds.
//!
//! The `category` of a frame is its module. Like there, `stackFrames` contains each frame once, with the caller of its
//! first occurrence.

use std::io::{self, Write};

use runtap_model::{FrameHandle, Thread, Trace, View};

use crate::json;
use crate::speedscope::dotnet_trace::{Event, events};

/// The frames in the order of first use, each with the caller of its first occurrence.
#[derive(Default)]
struct Frames {
    /// By the index of the frame's handle.
    numbers: Vec<Option<u64>>,
    list: Vec<(FrameHandle, Option<u64>)>,
}

impl Frames {
    fn number(&mut self, frame: FrameHandle, caller: Option<u64>) -> u64 {
        if self.numbers.len() <= frame.index() {
            self.numbers.resize(frame.index() + 1, None);
        }
        let Self { numbers, list } = self;
        *numbers[frame.index()].get_or_insert_with(|| {
            list.push((frame, caller));
            list.len() as u64 - 1
        })
    }
}

pub(super) fn write(
    trace: &Trace,
    threads: &[&Thread],
    view: View,
    exporter: &str,
    w: &mut impl Write,
) -> io::Result<()> {
    w.write_all(br#"{"otherData":{"name":"#)?;
    json::string(w, &trace.process().label())?;
    w.write_all(br#","exporter":"#)?;
    json::string(w, exporter)?;
    w.write_all(b"},\"traceEvents\":[")?;
    let mut frames = Frames::default();
    let mut first = true;
    for thread in threads {
        let mut open: Vec<u64> = Vec::new();
        for Event { opens, frame, at_ms } in events(trace, thread.samples(view)) {
            let number = frames.number(frame, open.last().copied());
            if opens {
                open.push(number);
            } else {
                open.pop();
            }
            w.write_all(if std::mem::take(&mut first) { b"\n{\"name\":" } else { b",\n{\"name\":" })?;
            json::string(w, &trace.frame(frame).name)?;
            let (phase, ts, tid) = (if opens { 'B' } else { 'E' }, at_ms * 1000.0, thread.tid());
            write!(
                w,
                r#","cat":"sampleEvent","ph":"{phase}","ts":{ts},"pid":0,"tid":{tid},"sf":{number}}}"#
            )?;
        }
    }
    w.write_all(b"\n],\"displayTimeUnit\":\"ms\",\"stackFrames\":{")?;
    for (number, (frame, caller)) in frames.list.iter().enumerate() {
        let frame = trace.frame(*frame);
        let comma = if number == 0 { "" } else { "," };
        write!(w, "{comma}\n\"{number}\":{{\"name\":")?;
        json::string(w, &frame.name)?;
        w.write_all(br#","category":"#)?;
        json::string(w, &frame.module.unwrap_or("?"))?;
        if let Some(caller) = caller {
            write!(w, r#","parent":{caller}"#)?;
        }
        w.write_all(b"}")?;
    }
    w.write_all(b"\n}}\n")
}
