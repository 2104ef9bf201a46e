//! The frame table: a frame is a name in a module, each pair once.
//!
//! Two bodies of one method (tiers, instantiations with the same text) are one frame: what people see is the
//! name. Names are resolved before they come here; this table knows no addresses.

use crate::strings::{StringHandle, StringTable, next_index};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::fmt;

/// A frame of a [`FrameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameHandle(pub(crate) u32);

impl FrameHandle {
    /// The position in the table: dense, in the order of first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Interned frames.
#[derive(Debug, Clone, Default)]
pub struct FrameTable {
    frames: Vec<(Option<StringHandle>, StringHandle)>,
    index: HashMap<(Option<StringHandle>, StringHandle), u32, RandomState>,
}

impl FrameTable {
    pub(crate) fn intern(&mut self, module: Option<StringHandle>, name: StringHandle) -> FrameHandle {
        let key = (module, name);
        FrameHandle(*self.index.entry(key).or_insert_with(|| {
            let new = next_index(self.frames.len());
            self.frames.push(key);
            new
        }))
    }

    pub(crate) fn get<'a>(&self, handle: FrameHandle, strings: &'a StringTable) -> Frame<'a> {
        let (module, name) = self.frames[handle.index()];
        Frame { module: module.map(|m| strings.get(m)), name: strings.get(name) }
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is no frame yet.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// The module of frames that are no code.
pub(crate) const LABEL: &str = "";

/// A frame's parts. It displays as `Module!Namespace.Type.Method(args)`, as `Module!0xADDR` if the address has no
/// name, with `?` for a module that is not known. A frame that is no code displays as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame<'a> {
    /// Simple name of the module, without directory and extension; empty for a frame that is no code.
    pub module: Option<&'a str>,
    /// `Namespace.Type.Method(args)`, or the address as `0x…`.
    pub name: &'a str,
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A frame without any letter would be no frame in many a file.
        if self.module != Some(LABEL) || self.name.is_empty() {
            f.write_str(self.module.unwrap_or("?"))?;
            f.write_str("!")?;
        }
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_its_module_and_its_name() {
        let mut strings = StringTable::default();
        let mut frames = FrameTable::default();
        let (app, other) = (strings.intern("app"), strings.intern("other"));
        let name = strings.intern("A.B()");
        let first = frames.intern(Some(app), name);
        assert_eq!(frames.intern(Some(app), name), first);
        assert_ne!(frames.intern(Some(other), name), first);
        let unknown = frames.intern(None, name);
        assert_eq!(frames.len(), 3);
        assert_eq!(frames.get(first, &strings).to_string(), "app!A.B()");
        assert_eq!(frames.get(unknown, &strings).to_string(), "?!A.B()");
        let (nothing, text) = (strings.intern(LABEL), strings.intern("System.String"));
        let label = frames.intern(Some(nothing), text);
        assert_eq!(frames.get(label, &strings).to_string(), "System.String");
    }
}
