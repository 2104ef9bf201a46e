//! Sampled profiles: stacks and their weights.
//!
//! Most of the time is spent writing frame lists, and most samples have a stack that was written before. So the texts
//! of stacks are cached, up to [`MOST_BYTES`].

use super::Frames;
use crate::json::{number, string};
use runtap_model::{Sample, StackHandle, Thread, Trace, Unit, View};
use std::io::{self, Write};

/// Maximum size of the cache in bytes.
const MOST_BYTES: usize = 16 << 20;

/// Writes the profiles of a file.
pub(super) struct Sampled<'a> {
    trace: &'a Trace,
    view: View,
    frames: &'a Frames,
    text: Vec<u8>,
    /// Start and end of each stack's text; empty if not cached.
    places: Vec<(u32, u32)>,
    numbers: Vec<u64>,
}

impl<'a> Sampled<'a> {
    pub(super) fn new(trace: &'a Trace, view: View, frames: &'a Frames) -> Self {
        let places = vec![(0, 0); trace.stacks().len()];
        Self { trace, view, frames, text: Vec::new(), places, numbers: Vec::new() }
    }

    /// Writes the profile of a thread.
    pub(super) fn write(&mut self, thread: &Thread, w: &mut impl Write) -> io::Result<()> {
        let view = self.view;
        w.write_all(br#"{"type":"sampled","name":"#)?;
        string(w, &thread.label())?;
        // Axes other than time start at 0.
        let (unit, start) = match view.unit() {
            Unit::Nanoseconds => ("nanoseconds", thread.samples(view).next().map_or(0, |s| s.time_ns)),
            Unit::Bytes => ("bytes", 0),
            _ => ("none", 0),
        };
        let end = start.saturating_add(thread.weight(view));
        write!(w, r#","unit":"{unit}","startValue":{start},"endValue":{end},"samples":["#)?;
        for (i, (stack, _)) in merged(thread.samples(view)).enumerate() {
            if i > 0 {
                w.write_all(b",")?;
            }
            match stack {
                Some(stack) => w.write_all(self.text_of(stack)?)?,
                None => write!(w, "[{}]", self.frames.no_stack)?,
            }
        }
        w.write_all(br#"],"weights":["#)?;
        for (i, (_, weight)) in merged(thread.samples(view)).enumerate() {
            if i > 0 {
                w.write_all(b",")?;
            }
            number(w, weight)?;
        }
        w.write_all(b"]}")
    }

    /// Returns the frames of a stack as a JSON array.
    fn text_of(&mut self, stack: StackHandle) -> io::Result<&[u8]> {
        let (start, end) = self.places[stack.index()];
        if start < end {
            return Ok(&self.text[start as usize..end as usize]);
        }
        if self.text.len() >= MOST_BYTES {
            self.text.clear();
            self.places.fill((0, 0));
        }
        let start = self.text.len();
        self.numbers.clear();
        let frames = self.trace.stacks().frames(stack).map(|frame| self.frames.index(Some(frame)));
        self.numbers.extend(frames);
        for (depth, frame) in self.numbers.iter().rev().enumerate() {
            self.text.push(if depth == 0 { b'[' } else { b',' });
            number(&mut self.text, *frame)?;
        }
        self.text.push(b']');
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.text.len())) {
            self.places[stack.index()] = (start, end);
        }
        Ok(&self.text[start..])
    }
}

/// Merges consecutive samples with the same stack and adds up their weights.
fn merged(samples: impl Iterator<Item = Sample>) -> impl Iterator<Item = (Option<StackHandle>, u64)> {
    let mut samples = samples.peekable();
    std::iter::from_fn(move || {
        let Sample { stack, mut weight, .. } = samples.next()?;
        while let Some(next) = samples.next_if(|next| next.stack == stack) {
            weight = weight.saturating_add(next.weight);
        }
        Some((stack, weight))
    })
}
