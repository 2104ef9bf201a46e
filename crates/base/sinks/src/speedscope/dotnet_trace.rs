//! Evented profiles like those of dotnet-trace.
//!
//! dotnet-trace adds up durations as 32-bit floats in milliseconds, and merges samples if the gap between them is less
//! than a thousandth of the first. Both affect the last digits of its files, which are reproduced here. Its samples of
//! a thread may overlap, because those of a task are assigned to the thread that started it; the times of events never
//! decrease.

use super::Frames;
use crate::json::{number, string};
use runtap_model::{FrameHandle, Sample, Trace};
use std::io::{self, Write};

/// An open frame with its start and duration.
#[derive(Debug, Clone, Copy)]
struct Open {
    frame: FrameHandle,
    from_ms: f64,
    lasts_ms: f32,
}

impl Open {
    fn end_ms(&self) -> f64 {
        self.from_ms + f64::from(self.lasts_ms)
    }

    fn is_continued_by(&self, next: &Self) -> bool {
        self.frame == next.frame && self.from_ms + f64::from(self.lasts_ms) * 1.001 >= next.from_ms
    }
}

/// The target's clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    ticks_per_s: u64,
}

impl Clock {
    /// Converts nanoseconds, which were rounded down from ticks, to the milliseconds that result from the ticks.
    #[expect(clippy::cast_precision_loss, reason = "what its times are")]
    fn ms(self, ns: u64) -> f64 {
        let ticks = (u128::from(ns) * u128::from(self.ticks_per_s)).div_ceil(1_000_000_000);
        ticks as f64 * 1000.0 / self.ticks_per_s as f64
    }

    #[expect(clippy::cast_possible_truncation, reason = "its rounding")]
    fn lasts_ms(self, sample: &Sample) -> f32 {
        (self.ms(sample.time_ns.saturating_add(sample.weight)) - self.ms(sample.time_ns)) as f32
    }
}

/// A frame that opens, or closes if `opens` is false.
pub(crate) struct Event {
    pub(crate) opens: bool,
    pub(crate) frame: FrameHandle,
    pub(crate) at_ms: f64,
}

/// Writes the profile of a thread.
pub(super) fn write(label: &str, events: &[Event], frames: &Frames, w: &mut impl Write) -> io::Result<()> {
    let time = |event: Option<&Event>| event.map_or(0.0, |event| event.at_ms);
    w.write_all(br#"{"type":"evented","name":"#)?;
    string(w, label)?;
    let (start, end) = (time(events.first()), time(events.last()));
    write!(w, r#","unit":"milliseconds","startValue":{start},"endValue":{end},"events":["#)?;
    for (i, Event { opens, frame, at_ms }) in events.iter().enumerate() {
        w.write_all(if i == 0 { b"" } else { b"," })?;
        w.write_all(if *opens { br#"{"type":"O","frame":"# } else { br#"{"type":"C","frame":"# })?;
        number(w, frames.index(Some(*frame)))?;
        write!(w, r#","at":{at_ms}}}"#)?;
    }
    w.write_all(b"]}")
}

/// Returns the events of a thread's samples in time order.
pub(crate) fn events(trace: &Trace, samples: impl Iterator<Item = Sample>) -> Vec<Event> {
    let clock = Clock { ticks_per_s: trace.ticks_per_s().unwrap_or(1_000_000_000).max(1) };
    let mut events = Vec::new();
    let mut last_ms = 0.0;
    let mut open: Vec<Open> = Vec::new();
    let mut stack: Vec<FrameHandle> = Vec::new();
    for sample in samples {
        stack.clear();
        stack.extend(sample.stack.into_iter().flat_map(|handle| trace.stacks().frames(handle)));
        stack.reverse();
        let (from_ms, lasts_ms) = (clock.ms(sample.time_ns), clock.lasts_ms(&sample));
        let next = |frame: &FrameHandle| Open { frame: *frame, from_ms, lasts_ms };
        let same =
            open.iter().zip(&stack).take_while(|(open, frame)| open.is_continued_by(&next(frame))).count();
        for open in &mut open[..same] {
            open.lasts_ms += lasts_ms;
        }
        close(&mut open, same, &mut last_ms, &mut events);
        for frame in &stack[same..] {
            last_ms = from_ms.max(last_ms);
            events.push(Event { opens: true, frame: *frame, at_ms: last_ms });
            open.push(next(frame));
        }
    }
    close(&mut open, 0, &mut last_ms, &mut events);
    events
}

/// Closes all but the outermost `keep` frames.
fn close(open: &mut Vec<Open>, keep: usize, last_ms: &mut f64, events: &mut Vec<Event>) {
    for open in open.drain(keep..).rev() {
        *last_ms = open.end_ms().max(*last_ms);
        events.push(Event { opens: false, frame: open.frame, at_ms: *last_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_model::{SampleKind, TraceBuilder, View};

    /// Returns the events of samples, each with its start, its end, and its stack from the root.
    fn events(samples: &[(u64, u64, &str)]) -> Vec<String> {
        let mut builder = TraceBuilder::new();
        let thread = builder.thread(1);
        for (from, to, stack) in samples {
            let frames: Vec<_> = stack.split_whitespace().map(|name| builder.label(name)).collect();
            let stack = builder.stack_of(frames);
            builder.add_weighted(thread, *from, to - from, SampleKind::MANAGED, stack);
        }
        let trace = builder.finish();
        let events = super::events(&trace, trace.thread(thread).samples(View::ThreadTime));
        let text = |event: &Event| {
            let sign = if event.opens { '+' } else { '-' };
            format!("{sign}{} {}", trace.frame(event.frame), event.at_ms)
        };
        events.iter().map(text).collect()
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_frame_of_adjacent_samples_stays_open() {
        assert_eq!(
            events(&[(MS, 2 * MS, "a b"), (2 * MS, 3 * MS, "a c"), (3 * MS + 1000, 4 * MS, "a c")]),
            ["+a 1", "+b 1", "-b 2", "+c 2", "-c 3.999000072479248", "-a 3.999000072479248"],
            "a gap of less than a thousandth is left out of the sum"
        );
        assert_eq!(events(&[(MS, 2 * MS, "a"), (3 * MS, 4 * MS, "a")]), ["+a 1", "-a 2", "+a 3", "-a 4"]);
    }

    #[test]
    fn times_never_decrease() {
        assert_eq!(events(&[(MS, 4 * MS, "a"), (2 * MS, 3 * MS, "b")]), ["+a 1", "-a 4", "+b 4", "-b 4"]);
    }
}
