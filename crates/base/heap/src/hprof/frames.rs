//! Names of the methods whose variables are roots: stack frames, and the stacks of threads that consist of them.
//!
//! A dump has these records in front of the objects. They only serve names, so damaged ones are ignored.

use std::ops::Range;

use runtap_wire::{DecodeError, Reader};

use crate::GraphBuilder;
use crate::dense::{Map, small};
use crate::hprof::classes::{Classes, source_name};

/// The longest name of a class or method in the name of a root, in bytes: any number of frames can have one name.
const MAX_NAME: usize = 200;

/// A frame of a stack.
#[derive(Debug, Clone, Copy)]
struct Frame {
    method_name: u64,
    class_serial: u32,
}

/// The stacks of all threads.
#[derive(Debug, Default)]
pub(super) struct Frames {
    by_id: Map<u64, Frame>,
    /// The name ids of classes by their serial numbers.
    classes: Map<u32, u64>,
    /// The positions of the frames of each thread in `ids`, innermost first.
    threads: Map<u32, Range<u32>>,
    ids: Vec<u64>,
    /// The indexes of names of roots by frame. `None` if a frame has no usable name.
    names: Map<u64, Option<u32>>,
}

impl Frames {
    pub(super) fn load_class(&mut self, serial: u32, name: u64) {
        self.classes.insert(serial, name);
    }

    /// Reads the record of a frame.
    pub(super) fn add_frame(&mut self, r: &mut Reader<'_>, id_bytes: u8) {
        let mut read = || -> Result<(u64, Frame), DecodeError> {
            let id = id(r, id_bytes)?;
            let method_name = self::id(r, id_bytes)?;
            r.bytes(2 * usize::from(id_bytes), "signature and source")?;
            Ok((id, Frame { method_name, class_serial: u32::from_be_bytes(r.array("class serial number")?) }))
        };
        if let Ok((id, frame)) = read() {
            self.by_id.insert(id, frame);
        }
    }

    /// Reads the record of a stack.
    pub(super) fn add_stack(&mut self, r: &mut Reader<'_>, id_bytes: u8) {
        let start = small(self.ids.len());
        let mut thread = || -> Result<u32, DecodeError> {
            r.bytes(4, "stack trace serial number")?;
            let thread = u32::from_be_bytes(r.array("thread serial number")?);
            r.bytes(4, "number of frames")?;
            Ok(thread)
        };
        let Ok(thread) = thread() else { return };
        while let Ok(frame) = id(r, id_bytes) {
            self.ids.push(frame);
        }
        self.threads.insert(thread, start..small(self.ids.len()));
    }

    /// Returns the index of the name of a root in this frame of a thread, counted from the innermost one. `None` if unknown.
    pub(super) fn root_name(
        &mut self,
        thread: u32,
        frame: u32,
        classes: &Classes,
        graph: &mut GraphBuilder,
    ) -> Option<u32> {
        let stack = self.threads.get(&thread)?;
        let place = stack.start.checked_add(frame).filter(|place| *place < stack.end)?;
        let id = *self.ids.get(place as usize)?;
        if let Some(known) = self.names.get(&id) {
            return *known;
        }
        let name = self.by_id.get(&id).and_then(|frame| {
            let class = classes.name(*self.classes.get(&frame.class_serial)?);
            let method = classes.name(frame.method_name);
            let is_usable = |name: &[u8]| (1..=MAX_NAME).contains(&name.len());
            (is_usable(class) && is_usable(method))
                .then(|| format!("{}.{}", source_name(class), String::from_utf8_lossy(method)))
        });
        let index = name.map(|name| graph.add_root_name(name));
        self.names.insert(id, index);
        index
    }
}

fn id(r: &mut Reader<'_>, id_bytes: u8) -> Result<u64, DecodeError> {
    if id_bytes == 8 {
        Ok(u64::from_be_bytes(r.array("frame")?))
    } else {
        Ok(u32::from_be_bytes(r.array("frame")?).into())
    }
}
