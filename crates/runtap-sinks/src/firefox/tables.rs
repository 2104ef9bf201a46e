//! The frames and stacks of one thread, numbered anew: in this version of the format each thread has tables of its
//! own.

use crate::json::{number, string};
use crate::origin::Origin;
use runtap_model::{NO_STACK, StackHandle, Thread, Trace, View};
use std::io::{self, Write};

/// Names and colours. The first must be grey: it is what is shown where nothing else is known.
pub(super) const CATEGORIES: [(&str, &str); 3] =
    [("Other", "grey"), ("Framework", "blue"), ("Program", "orange")];

/// What a thread uses of the model's tables. Made once, filled anew for each thread.
pub(super) struct Tables {
    /// The number of each stack and frame in the thread's tables and one more; 0 for those that it does not use.
    stacks: Vec<u32>,
    frames: Vec<u32>,
    without_stack: bool,
}

impl Tables {
    pub(super) fn new(trace: &Trace) -> Self {
        let (stacks, frames) = (vec![0; trace.stacks().len()], vec![0; trace.frames().len()]);
        Self { stacks, frames, without_stack: false }
    }

    /// Finds out what a thread uses.
    pub(super) fn choose(&mut self, trace: &Trace, thread: &Thread, view: View) {
        self.stacks.fill(0);
        self.frames.fill(0);
        self.without_stack = false;
        for sample in thread.samples(view) {
            match sample.stack {
                Some(stack) => self.stacks[stack.index()] = 1,
                None => self.without_stack = true,
            }
        }
        // Callees come after their callers.
        for (handle, stack) in trace.stacks().iter().rev() {
            if self.stacks[handle.index()] > 0 {
                self.frames[stack.frame.index()] = 1;
                if let Some(parent) = stack.parent {
                    self.stacks[parent.index()] = 1;
                }
            }
        }
        for numbers in [&mut self.stacks, &mut self.frames] {
            let used = numbers.iter_mut().filter(|number| **number > 0);
            for (number, next) in used.zip(1..) {
                *number = next;
            }
        }
    }

    /// The number of a stack in the thread's table; `None` is the missing one, which is the last.
    pub(super) fn index(&self, stack: Option<StackHandle>) -> u64 {
        match stack {
            Some(stack) => u64::from(self.stacks[stack.index()]).saturating_sub(1),
            None => used(&self.stacks),
        }
    }

    /// Writes the tables as members of the thread.
    pub(super) fn write(&self, trace: &Trace, w: &mut impl Write) -> io::Result<()> {
        let frames = used(&self.frames) + u64::from(self.without_stack);
        let named = || trace.all_frames().filter(|(handle, _)| self.frames[handle.index()] > 0);

        write!(w, r#""frameTable":{{"length":{frames}"#)?;
        column(w, "func", 0..frames, number)?;
        let categories = named().map(|(_, frame)| match Origin::of(frame) {
            Origin::Unknown => 0,
            Origin::Framework => 1,
            Origin::Program => 2,
        });
        column(w, "category", categories.chain(self.without_stack.then_some(0)), number)?;
        for name in ["subcategory", "inlineDepth", "innerWindowID"] {
            column(w, name, 0..frames, |w, _| number(w, 0))?;
        }
        column(w, "address", 0..frames, |w, _| w.write_all(b"-1"))?;
        for name in ["nativeSymbol", "line", "column"] {
            column(w, name, 0..frames, |w, _| w.write_all(b"null"))?;
        }

        write!(w, r#"}},"funcTable":{{"length":{frames}"#)?;
        column(w, "name", 0..frames, number)?;
        for name in ["isJS", "relevantForJS"] {
            column(w, name, 0..frames, |w, _| w.write_all(b"false"))?;
        }
        column(w, "resource", 0..frames, |w, _| w.write_all(b"-1"))?;
        for name in ["fileName", "lineNumber", "columnNumber"] {
            column(w, name, 0..frames, |w, _| w.write_all(b"null"))?;
        }

        let stacks = used(&self.stacks) + u64::from(self.without_stack);
        let each = || trace.stacks().iter().filter(|(handle, _)| self.stacks[handle.index()] > 0);
        write!(w, r#"}},"stackTable":{{"length":{stacks}"#)?;
        let prefixes = each().map(|(_, stack)| stack.parent).chain(self.without_stack.then_some(None));
        column(w, "prefix", prefixes, |w, parent| match parent {
            Some(parent) => number(w, self.index(Some(parent))),
            None => w.write_all(b"null"),
        })?;
        let tops = each().map(|(_, stack)| u64::from(self.frames[stack.frame.index()]).saturating_sub(1));
        column(w, "frame", tops.chain(self.without_stack.then(|| used(&self.frames))), number)?;

        w.write_all(b"}")?;
        let names = named().map(|(_, frame)| Some(frame)).chain(self.without_stack.then_some(None));
        column(w, "stringArray", names, |w, frame| match frame {
            Some(frame) => string(w, &frame),
            None => string(w, NO_STACK),
        })
    }
}

/// How many have a number: the last of them has the highest.
fn used(numbers: &[u32]) -> u64 {
    numbers.iter().rev().find(|number| **number > 0).map_or(0, |number| u64::from(*number))
}

/// Writes a member that is a list, behind another member.
pub(super) fn column<W: Write, T>(
    w: &mut W,
    name: &str,
    values: impl Iterator<Item = T>,
    mut write: impl FnMut(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(w, r#","{name}":["#)?;
    for (i, value) in values.enumerate() {
        if i > 0 {
            w.write_all(b",")?;
        }
        write(w, value)?;
    }
    w.write_all(b"]")
}
