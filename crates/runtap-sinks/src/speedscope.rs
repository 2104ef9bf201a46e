//! speedscope's own JSON format, with sampled or with evented profiles.
//!
//! | in the model | in the file |
//! |---|---|
//! | process | `name`: `NAME (PID)` |
//! | thread with weight in the view | one of `profiles`, named `Thread (TID) NAME`, in the order of first use |
//! | the thread with the most time in managed code | `activeProfileIndex`: the one shown first |
//! | frame | one of `shared.frames`, `name` only; those that no sample of the view uses are left out |
//! | a sample without a stack | a stack of the one frame `[no stack]` |
//! | weight | nanoseconds (`unit`); bytes in the view `alloc`, a number in `exceptions` |
//! | time of the thread's first sample | `startValue` |
//! | view | which samples; `thread-time` unless another is asked for |
//! | kind | not in the file: no pseudo frames |
//!
//! | | `"type": "sampled"`, the default | `"type": "evented"` ([`Options::evented`]) |
//! |---|---|---|
//! | samples in a row with the same stack | one of `samples` (frame indices, root first) and of `weights` | nothing |
//! | a frame that comes onto the stack, or leaves it | in the next of `samples` | one of `events`: `O` or `C`, `frame`, `at` |
//! | gaps that the view leaves | left out: in the view `cpu` the axis is CPU time | empty: the axis is the clock's |
//! | events of a thread that overlap | samples in the order of time | those that find the time taken are in further profiles, `Thread (TID) NAME [2]` |
//! | `endValue` | `startValue` and all weights | the end of the last sample |
//! | a sample that lasts no time | a weight of 0 | nothing |
//!
//! Sampled files are smaller where stacks are shallow and change as a whole, evented ones where stacks are deep.
//! The schema is `file-format-schema.json` of the npm package speedscope; tests/viewer checks against it.

use crate::json::{number, string};
use crate::spans::{self, Change, Lane};
use crate::{Error, Options};
use runtap_model::{FrameHandle, NO_STACK, Sample, StackHandle, Thread, Trace, Unit, View};
use std::fmt;
use std::io::{self, BufWriter, Write};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes `trace` for speedscope.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    let view = options.view;
    let threads = crate::threads(trace, view)?;
    if options.evented && view.unit() != Unit::Nanoseconds {
        return Err(Error::NoTimeAxis(view));
    }
    let mut active = crate::busiest(&threads, view);
    if options.evented {
        active = threads[..active].iter().map(|thread| spans::lanes(thread, view).len()).sum();
    }

    let mut w = BufWriter::with_capacity(1 << 16, w);
    write!(w, r#"{{"$schema":"{SCHEMA}","exporter":"#)?;
    string(&mut w, &options.exporter)?;
    w.write_all(br#","name":"#)?;
    string(&mut w, &trace.process().label())?;
    write!(w, r#","activeProfileIndex":{active},"shared":{{"frames":["#)?;
    let frames = Frames::write(trace, &threads, view, &mut w)?;
    w.write_all(b"\n]},\"profiles\":[")?;
    let mut stack = Vec::new();
    for (i, thread) in threads.iter().enumerate() {
        w.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        if options.evented {
            for (number, lane) in spans::lanes(thread, view).iter().enumerate() {
                w.write_all(if number == 0 { b"" } else { b",\n" })?;
                let label = match number {
                    0 => thread.label(),
                    n => format!("{} [{}]", thread.label(), n + 1),
                };
                write_evented(trace, &label, lane, &frames, &mut w)?;
            }
        } else {
            write_sampled(trace, thread, view, &frames, &mut stack, &mut w)?;
        }
    }
    w.write_all(b"\n]}\n")?;
    w.flush()?;
    Ok(())
}

/// Where the frames of the model are in the file's list of frames.
struct Frames {
    /// By the index of the model's handle; `None` if no sample of the view uses the frame.
    indices: Vec<Option<u64>>,
    no_stack: u64,
}

impl Frames {
    /// Writes the frames that are used.
    fn write(trace: &Trace, threads: &[&Thread], view: View, w: &mut impl Write) -> io::Result<Self> {
        let mut stack_used = vec![false; trace.stacks().len()];
        let mut without_stack = false;
        for sample in threads.iter().flat_map(|t| t.samples(view)) {
            match sample.stack {
                Some(stack) => stack_used[stack.index()] = true,
                None => without_stack = true,
            }
        }
        let mut frame_used = vec![false; trace.frames().len()];
        // Callees come after their callers.
        for (handle, stack) in trace.stacks().iter().rev() {
            if stack_used[handle.index()] {
                frame_used[stack.frame.index()] = true;
                if let Some(parent) = stack.parent {
                    stack_used[parent.index()] = true;
                }
            }
        }
        let mut count = 0;
        let mut indices = vec![None; frame_used.len()];
        for (handle, frame) in trace.all_frames().filter(|(h, _)| frame_used[h.index()]) {
            indices[handle.index()] = Some(count);
            write_frame(w, count, &frame)?;
            count += 1;
        }
        if without_stack {
            write_frame(w, count, &NO_STACK)?;
        }
        Ok(Self { indices, no_stack: count })
    }

    /// The index of a frame that is used; of `None`, that of the missing stack.
    fn index(&self, frame: Option<FrameHandle>) -> u64 {
        frame.and_then(|f| self.indices[f.index()]).unwrap_or(self.no_stack)
    }
}

fn write_frame(w: &mut impl Write, index: u64, name: &impl fmt::Display) -> io::Result<()> {
    w.write_all(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" })?;
    string(w, name)?;
    w.write_all(b"}")
}

fn write_sampled(
    trace: &Trace,
    thread: &Thread,
    view: View,
    frames: &Frames,
    stack: &mut Vec<u64>,
    w: &mut impl Write,
) -> io::Result<()> {
    w.write_all(br#"{"type":"sampled","name":"#)?;
    string(w, &thread.label())?;
    // Other axes than time start at 0.
    let (unit, start) = match view.unit() {
        Unit::Nanoseconds => ("nanoseconds", thread.samples(view).next().map_or(0, |s| s.time_ns)),
        Unit::Bytes => ("bytes", 0),
        _ => ("none", 0),
    };
    let end = start.saturating_add(thread.weight_ns(view));
    write!(w, r#","unit":"{unit}","startValue":{start},"endValue":{end},"samples":["#)?;
    for (i, (handle, _)) in merged(thread.samples(view)).enumerate() {
        stack.clear();
        match handle {
            Some(handle) => {
                stack.extend(trace.stacks().frames(handle).filter_map(|f| frames.indices[f.index()]));
            }
            None => stack.push(frames.no_stack),
        }
        w.write_all(if i == 0 { b"[" } else { b",[" })?;
        for (depth, frame) in stack.iter().rev().enumerate() {
            if depth > 0 {
                w.write_all(b",")?;
            }
            number(w, *frame)?;
        }
        w.write_all(b"]")?;
    }
    w.write_all(br#"],"weights":["#)?;
    for (i, (_, weight_ns)) in merged(thread.samples(view)).enumerate() {
        if i > 0 {
            w.write_all(b",")?;
        }
        number(w, weight_ns)?;
    }
    w.write_all(b"]}")
}

fn write_evented(
    trace: &Trace,
    label: &str,
    lane: &Lane<'_>,
    frames: &Frames,
    w: &mut impl Write,
) -> io::Result<()> {
    w.write_all(br#"{"type":"evented","name":"#)?;
    string(w, label)?;
    let (mut start_ns, mut end_ns) = (None, 0);
    for sample in lane.samples().filter(|s| s.weight_ns > 0) {
        start_ns.get_or_insert(sample.time_ns);
        end_ns = sample.time_ns.saturating_add(sample.weight_ns);
    }
    let start_ns = start_ns.unwrap_or_default();
    write!(w, r#","unit":"nanoseconds","startValue":{start_ns},"endValue":{end_ns},"events":["#)?;
    let mut first = true;
    spans::walk(trace, lane, |at_ns, change| {
        if !std::mem::take(&mut first) {
            w.write_all(b",")?;
        }
        let (kind, frame): (&[u8], _) = match change {
            Change::Open(frame) => (br#"{"type":"O","frame":"#, frame),
            Change::Close(frame) => (br#"{"type":"C","frame":"#, frame),
        };
        w.write_all(kind)?;
        number(w, frames.index(frame))?;
        w.write_all(br#","at":"#)?;
        number(w, at_ns)?;
        w.write_all(b"}")
    })?;
    w.write_all(b"]}")
}

/// Samples in a row with the same stack, as one, with the sum of their weights.
fn merged(samples: impl Iterator<Item = Sample>) -> impl Iterator<Item = (Option<StackHandle>, u64)> {
    let mut samples = samples.peekable();
    std::iter::from_fn(move || {
        let Sample { stack, mut weight_ns, .. } = samples.next()?;
        while let Some(next) = samples.next_if(|next| next.stack == stack) {
            weight_ns = weight_ns.saturating_add(next.weight_ns);
        }
        Some((stack, weight_ns))
    })
}
