//! Categories of frames, which are shown by color.

use runtap_model::{Frame, FrameKind, Origin};

/// The category of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    /// An address without a name.
    Unknown,
    /// Code of the runtime, its class libraries and other libraries.
    Framework,
    /// Code of the program or of unknown origin.
    Program,
    /// Native code that the runtime does not manage.
    Native,
    /// Code of the operating system's kernel.
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
    fn the_category_depends_on_the_origin_and_not_on_the_name() {
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
