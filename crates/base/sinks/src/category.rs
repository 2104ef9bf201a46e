//! What pictures show by colour: whose code a frame is, as far as its source says.

use runtap_model::{Frame, FrameKind, Origin};

/// A colour's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    /// An address without a name.
    Unknown,
    /// The runtime's, its class libraries', and those of others.
    Framework,
    /// The program's own, and whatever its source says nothing of.
    Program,
    /// Machine code that no runtime manages.
    Native,
    /// The operating system's.
    Kernel,
}

impl Category {
    pub(crate) fn of(frame: Frame<'_>) -> Self {
        match (frame.kind, frame.origin) {
            (FrameKind::Address, _) => Self::Unknown,
            (_, Origin::Library | Origin::Runtime) => Self::Framework,
            (_, Origin::Native) => Self::Native,
            (_, Origin::Kernel) => Self::Kernel,
            _ => Self::Program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_tells_the_category_and_not_the_name() {
        let frame = Frame::new(Some("System.Private.CoreLib"), "A()");
        let of = |origin| Category::of(frame.of(origin));
        assert_eq!(of(Origin::Unknown), Category::Program);
        assert_eq!(of(Origin::Own), Category::Program);
        assert_eq!(of(Origin::Library), Category::Framework);
        assert_eq!(of(Origin::Runtime), Category::Framework);
        assert_eq!(of(Origin::Native), Category::Native);
        assert_eq!(of(Origin::Kernel), Category::Kernel);
        assert_eq!(Category::of(Frame::new(None, "0x7f00").address().of(Origin::Kernel)), Category::Unknown);
        assert_eq!(Category::of(Frame::label("System.String")), Category::Program);
    }
}
