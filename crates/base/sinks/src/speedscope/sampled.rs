//! Profiles of stacks and their weights.
//!
//! Most of the time goes into the lists of frames, and most samples show a stack that was shown before: the text of a
//! stack is kept, in a memory that does not grow beyond [`MOST_BYTES`].

use super::Frames;
use crate::json::{number, string};
use runtap_model::{Sample, StackHandle, Thread, Trace, Unit, View};
use std::io::{self, Write};

/// The most text that is kept.
const MOST_BYTES: usize = 16 << 20;

/// Writes the profiles of one file.
pub(super) struct Sampled<'a> {
    trace: &'a Trace,
    view: View,
    frames: &'a Frames,
    text: Vec<u8>,
    /// Where the text of each stack begins and ends; it is empty if it is not there.
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
        // Other axes than time start at 0.
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

    /// The frames of a stack as a JSON list.
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

/// Samples in a row with the same stack, as one, with the sum of their weights.
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
