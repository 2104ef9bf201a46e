//! The frame table: a frame is a name in a module, and what its source knows beside that; each once.
//!
//! Two bodies of one method (tiers, instantiations with the same text) are one frame: what people see is the
//! name. Names are resolved before they come here; this table knows no addresses, and guesses nothing: what a frame is, and
//! whose code, says whoever names it.

use crate::strings::{StringHandle, StringTable, next_index};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::fmt;
use std::num::NonZeroU32;

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
    frames: Vec<Entry>,
    index: HashMap<Entry, u32, RandomState>,
}

/// A [`Frame`] as stored.
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
const LABEL: &str = "";

/// What a frame stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// A method or function.
    #[default]
    Code,
    /// Code of which nothing but an address is known: it means nothing in another process.
    Address,
    /// No code: the type of an object, the reason of a pause.
    Label,
}

/// Whose code a frame is: what pictures show by colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The source does not say.
    #[default]
    Unknown,
    /// The program's own.
    Own,
    /// That of others, which comes with the program.
    Library,
    /// The runtime's, with its class libraries.
    Runtime,
    /// Compiled to machine code, outside of what the runtime manages.
    Native,
    /// The operating system's.
    Kernel,
}

/// A frame's parts. It displays as `Module!Namespace.Type.Method(args)`, as `Module!0xADDR` if the address has no
/// name, with `?` for a module that is not known. A frame that is no code displays as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// Simple name of the module, without directory and extension; empty for a frame that is no code.
    pub module: Option<&'a str>,
    /// `Namespace.Type.Method(args)`, or the address as `0x…`.
    pub name: &'a str,
    /// What it stands for.
    pub kind: FrameKind,
    /// Whose code it is.
    pub origin: Origin,
    /// The file of its source, if known.
    pub file: Option<&'a str>,
    /// The line in that file, from 1, if known.
    pub line: Option<NonZeroU32>,
}

impl<'a> Frame<'a> {
    /// Code of which the source says no more than its name.
    pub fn new(module: Option<&'a str>, name: &'a str) -> Self {
        let kind = if module == Some(LABEL) { FrameKind::Label } else { FrameKind::Code };
        Self { module, name, kind, origin: Origin::Unknown, file: None, line: None }
    }

    /// A frame that is no code. It shows as `text` alone.
    pub fn label(text: &'a str) -> Self {
        Self::new(Some(LABEL), text)
    }

    /// The same as code of which only the address is known, which is its name.
    #[must_use]
    pub fn address(self) -> Self {
        Self { kind: FrameKind::Address, ..self }
    }

    /// The same as code of `origin`.
    #[must_use]
    pub fn of(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// The same with the place of its source.
    #[must_use]
    pub fn at(self, file: &'a str, line: Option<NonZeroU32>) -> Self {
        Self { file: Some(file), line, ..self }
    }

    /// Whether more than an address is known.
    pub fn has_name(&self) -> bool {
        self.kind != FrameKind::Address
    }
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
    fn what_the_source_knows_stays_with_the_frame() {
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
