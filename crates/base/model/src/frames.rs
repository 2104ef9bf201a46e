//! The frame table: each frame is a module, a name and optional properties, and is stored once.
//!
//! Different compilations of a method (tiers, instantiations with the same text) are one frame, because users see the
//! name. Names are resolved before; the table contains no addresses, and the source determines the kind and the origin
//! of a frame.

use crate::strings::{StringHandle, StringTable, next_index};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::fmt;
use std::num::NonZeroU32;

/// A handle to a frame of a [`FrameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameHandle(pub(crate) u32);

impl FrameHandle {
    /// Returns the index in the table. Indexes are dense, in the order of first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A table of interned frames.
#[derive(Debug, Clone, Default)]
pub struct FrameTable {
    frames: Vec<Entry>,
    index: HashMap<Entry, u32, RandomState>,
}

/// A stored [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    module: Option<StringHandle>,
    name: StringHandle,
    file: Option<StringHandle>,
    line: Option<NonZeroU32>,
    kind: FrameKind,
    origin: Origin,
}

impl FrameTable {
    pub(crate) fn intern(&mut self, frame: &Frame<'_>, strings: &mut StringTable) -> FrameHandle {
        let Frame { module, name, kind, origin, file, line } = *frame;
        let key = Entry {
            module: module.map(|module| strings.intern(module)),
            name: strings.intern(name),
            file: file.map(|file| strings.intern(file)),
            line,
            kind,
            origin,
        };
        FrameHandle(*self.index.entry(key).or_insert_with(|| {
            let new = next_index(self.frames.len());
            self.frames.push(key);
            new
        }))
    }

    pub(crate) fn get<'a>(&self, handle: FrameHandle, strings: &'a StringTable) -> Frame<'a> {
        let Entry { module, name, file, line, kind, origin } = self.frames[handle.index()];
        Frame {
            module: module.map(|module| strings.get(module)),
            name: strings.get(name),
            kind,
            origin,
            file: file.map(|file| strings.get(file)),
            line,
        }
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// The module of frames that are not code.
const LABEL_MODULE: &str = "";

/// The kind of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// A method or function.
    #[default]
    Code,
    /// Code of which only the address is known, which means nothing in another process.
    Address,
    /// Not code: for example the type of an object or the reason of a pause.
    Label,
}

/// The owner of a frame's code, which flame graphs show by color.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Unknown.
    #[default]
    Unknown,
    /// The program's own code.
    Own,
    /// A library of the program.
    Library,
    /// The runtime and its class libraries.
    Runtime,
    /// Native code that the runtime does not manage.
    Native,
    /// The operating system's kernel.
    Kernel,
}

/// A frame with its texts. Displays as `Module!Namespace.Type.Method(args)`, or `Module!0xADDR` without a name, with
/// `?` for an unknown module. A frame that is not code displays as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// Name of the module without directory and extension; `None` if unknown, empty for a frame that is not code.
    pub module: Option<&'a str>,
    /// `Namespace.Type.Method(args)`, or the address as `0x…`.
    pub name: &'a str,
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Owner of the code.
    pub origin: Origin,
    /// Source file; `None` if unknown.
    pub file: Option<&'a str>,
    /// Line in the source file, starting at 1; `None` if unknown.
    pub line: Option<NonZeroU32>,
}

impl<'a> Frame<'a> {
    /// Creates a frame of code with only a module and a name.
    pub fn new(module: Option<&'a str>, name: &'a str) -> Self {
        let kind = if module == Some(LABEL_MODULE) { FrameKind::Label } else { FrameKind::Code };
        Self { module, name, kind, origin: Origin::Unknown, file: None, line: None }
    }

    /// Creates a frame that is not code. It is displayed as `text`.
    pub fn label(text: &'a str) -> Self {
        Self::new(Some(LABEL_MODULE), text)
    }

    /// Marks the frame as code whose name is only an address.
    #[must_use]
    pub fn address(self) -> Self {
        Self { kind: FrameKind::Address, ..self }
    }

    /// Sets the owner of the code.
    #[must_use]
    pub fn of(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Sets the source file and line.
    #[must_use]
    pub fn at(self, file: &'a str, line: Option<NonZeroU32>) -> Self {
        Self { file: Some(file), line, ..self }
    }

    /// Returns whether more than an address is known.
    pub fn has_name(&self) -> bool {
        self.kind != FrameKind::Address
    }
}

impl fmt::Display for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Many file formats reject empty frame names.
        if self.module != Some(LABEL_MODULE) || self.name.is_empty() {
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
        let mut intern = |frame: Frame<'_>| frames.intern(&frame, &mut strings);
        let first = intern(Frame::new(Some("app"), "A.B()"));
        assert_eq!(intern(Frame::new(Some("app"), "A.B()")), first);
        assert_ne!(intern(Frame::new(Some("other"), "A.B()")), first);
        let unknown = intern(Frame::new(None, "A.B()"));
        let label = intern(Frame::label("System.String"));
        let shown = |handle| frames.get(handle, &strings).to_string();
        assert_eq!([first, unknown, label].map(shown), ["app!A.B()", "?!A.B()", "System.String"]);
        assert_eq!(frames.len(), 4);
    }

    #[test]
    fn properties_of_a_frame_are_stored() {
        let mut strings = StringTable::default();
        let mut frames = FrameTable::default();
        let plain = Frame::new(Some("app"), "A.B()");
        let placed = plain.of(Origin::Library).at("A.cs", NonZeroU32::new(7));
        for frame in [plain, placed, plain.of(Origin::Own), plain.at("A.cs", None), plain.address()] {
            let handle = frames.intern(&frame, &mut strings);
            assert_eq!(frames.get(handle, &strings), frame);
            assert_eq!(frames.intern(&frame, &mut strings), handle);
        }
        assert_eq!(frames.len(), 5);
        assert_eq!((plain.kind, plain.origin), (FrameKind::Code, Origin::Unknown));
        assert_eq!(Frame::label("x").kind, FrameKind::Label);
        assert!(plain.has_name() && Frame::label("x").has_name() && !plain.address().has_name());
    }
}
