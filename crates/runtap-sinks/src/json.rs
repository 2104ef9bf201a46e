//! The few pieces of JSON that the sinks write by hand, because a file is too large to be built in memory first.
//!
//! Refuses to: know a format; check that what is written between the pieces is JSON.

use runtap_model::{FrameHandle, NO_STACK, Trace};
use serde::Serializer as _;
use std::fmt;
use std::io::{self, Write};

/// Writes a number. Nearly all of a file is numbers, and serde has a quicker way for them than `write!`.
pub(crate) fn number(w: &mut impl Write, number: u64) -> io::Result<()> {
    Ok(serde_json::Serializer::new(w).serialize_u64(number)?)
}

/// Writes a JSON string, escaped, without making a copy of it.
pub(crate) fn string(w: &mut impl Write, text: &(impl fmt::Display + ?Sized)) -> io::Result<()> {
    Ok(serde_json::Serializer::new(w).collect_str(text)?)
}

/// The names of all frames as JSON strings: for formats that repeat them with every use.
pub(crate) struct Names {
    text: Vec<u8>,
    /// Where each name ends in `text`; it begins where the one before it ends. The last is [`NO_STACK`].
    ends: Vec<usize>,
}

impl Names {
    pub(crate) fn new(trace: &Trace) -> io::Result<Self> {
        let mut names = Self { text: Vec::new(), ends: Vec::with_capacity(trace.frames().len() + 1) };
        for (_, frame) in trace.all_frames() {
            string(&mut names.text, &frame)?;
            names.ends.push(names.text.len());
        }
        string(&mut names.text, NO_STACK)?;
        names.ends.push(names.text.len());
        Ok(names)
    }

    /// The name of a frame, in quotes; of `None`, the text that stands for a missing stack.
    pub(crate) fn get(&self, frame: Option<FrameHandle>) -> &[u8] {
        let index = frame.map_or(self.ends.len() - 1, FrameHandle::index);
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}
