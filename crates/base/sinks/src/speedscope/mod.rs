//! speedscope's JSON format, with sampled or evented profiles.
//!
//! | in the model | in the file |
//! |---|---|
//! | process | `name`: `NAME (PID)` |
//! | thread with weight in the view | one of `profiles`, named `Thread (TID) NAME`, in the order of first use |
//! | the thread with the most time in managed samples | `activeProfileIndex`: the one shown first |
//! | frame | one of `shared.frames`: `name`, and `file` and `line` if known; unused frames are omitted |
//! | a sample without a stack | a stack with the single frame `[no stack]` |
//! | weight | nanoseconds (`unit`); bytes in the view `alloc`, a number in `exceptions` |
//! | time of the thread's first sample | `startValue` |
//! | view | selects the samples; `thread-time` by default |
//! | kind | not in the file: no pseudo frames |
//!
//! | | `"type": "sampled"`, the default | `"type": "evented"` ([`Options::evented`]) |
//! |---|---|---|
//! | consecutive samples with the same stack | one of `samples` (frame indices, root first) and of `weights` | nothing |
//! | a frame that opens or closes | visible in the next of `samples` | one of `events`: `O` or `C`, `frame`, `at` |
//! | gaps in the view | omitted: in the view `cpu` the axis is the time of managed samples | empty: the axis is the clock time |
//! | overlapping events of a thread | samples in time order | in further profiles, `Thread (TID) NAME [2]` |
//! | `endValue` | `startValue` and all weights | the end of the last sample |
//! | a sample without duration | a weight of 0 | nothing |
//!
//! Sampled files are smaller if stacks are shallow and change completely, evented ones if stacks are deep.
//! [`Options::dotnet_trace`] writes evented profiles with the events of dotnet-trace, in milliseconds.
//!
//! The schema is `file-format-schema.json` of the npm package speedscope; tests/viewer checks against it.

pub(crate) mod dotnet_trace;
mod evented;
mod sampled;

use self::sampled::Sampled;
use crate::json::string;
use crate::spans;
use crate::{Error, Options};
use runtap_model::{FrameHandle, NO_STACK, Thread, Trace, Unit, View};
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU32;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes `trace` for speedscope.
pub fn write(trace: &Trace, w: impl Write, options: &Options) -> Result<(), Error> {
    let view = options.view;
    let threads = crate::threads(trace, view)?;
    if options.evented && view.unit() != Unit::Nanoseconds {
        return Err(Error::NoTimeAxis(view));
    }
    let mut active = crate::busiest(&threads, view);
    if options.evented && !options.dotnet_trace {
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
    let mut sampled = Sampled::new(trace, view, &frames);
    for (i, thread) in threads.iter().enumerate() {
        w.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        if options.dotnet_trace {
            let events = dotnet_trace::events(trace, thread.samples(view));
            dotnet_trace::write(&thread.label(), &events, &frames, &mut w)?;
        } else if options.evented {
            for (number, lane) in spans::lanes(thread, view).iter().enumerate() {
                w.write_all(if number == 0 { b"" } else { b",\n" })?;
                let label = match number {
                    0 => thread.label(),
                    n => format!("{} [{}]", thread.label(), n + 1),
                };
                evented::write(trace, &label, lane, &frames, &mut w)?;
            }
        } else {
            sampled.write(thread, &mut w)?;
        }
    }
    w.write_all(b"\n]}\n")?;
    w.flush()?;
    Ok(())
}

/// The indexes of frames in the file's list.
struct Frames {
    /// By the index of the frame's handle; `None` if the frame is unused.
    indices: Vec<Option<u64>>,
    no_stack: u64,
}

impl Frames {
    /// Writes the used frames.
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
        // Callees follow their callers.
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
            write_frame(w, count, &frame, frame.file, frame.line)?;
            count += 1;
        }
        if without_stack {
            write_frame(w, count, &NO_STACK, None, None)?;
        }
        Ok(Self { indices, no_stack: count })
    }

    /// Returns the index of a used frame. For `None`, returns that of the missing stack.
    fn index(&self, frame: Option<FrameHandle>) -> u64 {
        frame.and_then(|f| self.indices[f.index()]).unwrap_or(self.no_stack)
    }
}

fn write_frame(
    w: &mut impl Write,
    index: u64,
    name: &impl fmt::Display,
    file: Option<&str>,
    line: Option<NonZeroU32>,
) -> io::Result<()> {
    w.write_all(if index == 0 { b"\n{\"name\":" } else { b",\n{\"name\":" })?;
    string(w, name)?;
    if let Some(file) = file {
        w.write_all(br#","file":"#)?;
        string(w, &file)?;
    }
    if let Some(line) = line {
        write!(w, r#","line":{line}"#)?;
    }
    w.write_all(b"}")
}
