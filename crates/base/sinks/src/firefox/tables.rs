//! Tables of the frames and stacks of one thread. In this version of the format, each thread has tables of its own.

use crate::category::Category;
use crate::json::{number, string};
use runtap_model::{Frame, FrameHandle, NO_STACK, StackHandle, Thread, Trace, View};
use std::io::{self, Write};

/// Names and colors. The first must be gray, because it is the default.
const CATEGORIES: [(&str, &str); 5] = [
    ("Other", "grey"),
    ("Framework", "blue"),
    ("Program", "orange"),
    ("Native", "green"),
    ("Kernel", "purple"),
];

/// Returns the index of a frame's category.
fn category(frame: Frame<'_>) -> u64 {
    match Category::of(frame) {
        Category::Unknown => 0,
        Category::Framework => 1,
        Category::Program => 2,
        Category::Native => 3,
        Category::Kernel => 4,
    }
}

/// Returns the categories of a trace: the first three, and further ones up to the last that is used.
pub(super) fn categories(trace: &Trace) -> impl Iterator<Item = (&'static str, &'static str)> {
    let last = trace.all_frames().map(|(_, frame)| category(frame)).fold(2, u64::max);
    (0..=last).zip(CATEGORIES).map(|(_, category)| category)
}

/// The frames and stacks that a thread uses. Reused for all threads, so that the cost depends on the thread: a
/// recording may have as many threads as stacks.
pub(super) struct Tables {
    /// The position of each stack and frame in the thread's tables, starting with 1; 0 if unused.
    stacks: Vec<u32>,
    frames: Vec<u32>,
    /// The used ones in order.
    used_stacks: Vec<StackHandle>,
    used_frames: Vec<FrameHandle>,
    without_stack: bool,
}

impl Tables {
    pub(super) fn new(trace: &Trace) -> Self {
        Self {
            stacks: vec![0; trace.stacks().len()],
            frames: vec![0; trace.frames().len()],
            used_stacks: Vec::new(),
            used_frames: Vec::new(),
            without_stack: false,
        }
    }

    /// Selects the frames and stacks that a thread uses.
    pub(super) fn choose(&mut self, trace: &Trace, thread: &Thread, view: View) {
        for stack in self.used_stacks.drain(..) {
            self.stacks[stack.index()] = 0;
        }
        for frame in self.used_frames.drain(..) {
            self.frames[frame.index()] = 0;
        }
        self.without_stack = false;
        for sample in thread.samples(view) {
            self.without_stack |= sample.stack.is_none();
            let mut next = sample.stack;
            while let Some(handle) = next.filter(|stack| self.stacks[stack.index()] == 0) {
                let stack = trace.stacks().get(handle);
                self.stacks[handle.index()] = 1;
                self.used_stacks.push(handle);
                if std::mem::replace(&mut self.frames[stack.frame.index()], 1) == 0 {
                    self.used_frames.push(stack.frame);
                }
                next = stack.parent;
            }
        }
        self.used_stacks.sort_unstable();
        self.used_frames.sort_unstable();
        for (stack, number) in self.used_stacks.iter().zip(1..) {
            self.stacks[stack.index()] = number;
        }
        for (frame, number) in self.used_frames.iter().zip(1..) {
            self.frames[frame.index()] = number;
        }
    }

    /// Returns the index of a stack in the thread's table. The missing stack is the last one.
    pub(super) fn index(&self, stack: Option<StackHandle>) -> u64 {
        match stack {
            Some(stack) => u64::from(self.stacks[stack.index()]).saturating_sub(1),
            None => self.used_stacks.len() as u64,
        }
    }

    /// Writes the tables as members of a thread object.
    pub(super) fn write(&self, trace: &Trace, w: &mut impl Write) -> io::Result<()> {
        let frames = self.used_frames.len() as u64 + u64::from(self.without_stack);
        let named = || self.used_frames.iter().map(|handle| trace.frame(*handle));

        write!(w, r#""frameTable":{{"length":{frames}"#)?;
        column(w, "func", 0..frames, number)?;
        let categories = named().map(category);
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

        let stacks = self.used_stacks.len() as u64 + u64::from(self.without_stack);
        let each = || self.used_stacks.iter().map(|handle| trace.stacks().get(*handle));
        write!(w, r#"}},"stackTable":{{"length":{stacks}"#)?;
        let prefixes = each().map(|stack| stack.parent).chain(self.without_stack.then_some(None));
        column(w, "prefix", prefixes, |w, parent| match parent {
            Some(parent) => number(w, self.index(Some(parent))),
            None => w.write_all(b"null"),
        })?;
        let tops = each().map(|stack| u64::from(self.frames[stack.frame.index()]).saturating_sub(1));
        column(w, "frame", tops.chain(self.without_stack.then_some(self.used_frames.len() as u64)), number)?;

        w.write_all(b"}")?;
        let names = named().map(Some).chain(self.without_stack.then_some(None));
        column(w, "stringArray", names, |w, frame| match frame {
            Some(frame) => string(w, &frame),
            None => string(w, NO_STACK),
        })
    }
}

/// Writes a further member whose value is a list.
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
