//! Stack map frames (JVMS 4.7.4).
//!
//! Frames keep their encoded form: different encodings of the same frame stay distinct.

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::bytes::{Input, Layout, Output};
use crate::pool::Index;

/// The type of a local variable or of a stack entry, as known to the verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerificationType {
    /// Unusable.
    Top,
    /// An `int` or a narrower type.
    Integer,
    /// A `float`.
    Float,
    /// A `double`, which takes two variables.
    Double,
    /// A `long`, which takes two variables.
    Long,
    /// `null`.
    Null,
    /// The object of a constructor before the call of another constructor.
    UninitializedThis,
    /// An object.
    Object(
        /// `CONSTANT_Class`.
        Index,
    ),
    /// An object whose constructor has not been called.
    Uninitialized(
        /// The offset of its `new` instruction in the code.
        u16,
    ),
}

impl VerificationType {
    /// Returns the encoded tag.
    fn tag(self) -> u8 {
        match self {
            Self::Top => 0,
            Self::Integer => 1,
            Self::Float => 2,
            Self::Double => 3,
            Self::Long => 4,
            Self::Null => 5,
            Self::UninitializedThis => 6,
            Self::Object(_) => 7,
            Self::Uninitialized(_) => 8,
        }
    }
}

impl<'a> Layout<'a> for VerificationType {
    fn read(input: &mut Input<'a>, what: &'static str) -> Result<Self, DecodeError> {
        let mut ahead = input.clone();
        let found = match ahead.u8(what)? {
            0 => Self::Top,
            1 => Self::Integer,
            2 => Self::Float,
            3 => Self::Double,
            4 => Self::Long,
            5 => Self::Null,
            6 => Self::UninitializedThis,
            7 => Self::Object(Index::read(&mut ahead, "cpool_index")?),
            8 => Self::Uninitialized(ahead.u16("offset")?),
            tag => {
                let expected = "a verification_type_info of 0 to 8";
                return Err(input.error(what, DecodeErrorKind::Unexpected { value: tag.into(), expected }));
            }
        };
        *input = ahead;
        Ok(found)
    }

    fn write(&self, output: &mut Output) {
        output.u8(self.tag());
        match self {
            Self::Object(index) => index.write(output),
            Self::Uninitialized(offset) => output.u16(*offset),
            _ => {}
        }
    }
}

/// The difference of a frame to the previous one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameKind {
    /// Unchanged variables, and an empty stack.
    Same,
    /// Unchanged variables, and one stack entry.
    SameStack1(VerificationType),
    /// 1 to 3 variables fewer, and an empty stack.
    Chop(u8),
    /// 1 to 3 more variables, and an empty stack.
    Append(Vec<VerificationType>),
    /// All variables, and the whole stack.
    Full {
        /// The variables.
        locals: Vec<VerificationType>,
        /// The stack entries, with the top last.
        stack: Vec<VerificationType>,
    },
}

/// A stack map frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The distance to the previous frame minus one; for the first frame, its offset in the code.
    pub offset_delta: u16,
    /// Whether the delta has a separate field although it is below 64.
    pub extended: bool,
    /// The types.
    pub kind: FrameKind,
}

impl<'a> Layout<'a> for Frame {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let mut ahead = input.clone();
        let tag = ahead.u8("frame_type")?;
        let (offset_delta, extended) = match tag {
            0..64 => (u16::from(tag), false),
            64..128 => (u16::from(tag - 64), false),
            247.. => (ahead.u16("offset_delta")?, true),
            128..247 => {
                let kind = DecodeErrorKind::Unexpected {
                    value: tag.into(),
                    expected: "a frame_type of 0 to 127 or 247 to 255",
                };
                return Err(input.error("frame_type", kind));
            }
        };
        let kind = match tag {
            0..64 | 251 => FrameKind::Same,
            64..128 | 247 => FrameKind::SameStack1(VerificationType::read(&mut ahead, "stack")?),
            128..=246 | 248..=250 => FrameKind::Chop(251 - tag.min(250)),
            252..=254 => {
                let locals = (251..tag).map(|_| VerificationType::read(&mut ahead, "locals"));
                FrameKind::Append(locals.collect::<Result<_, _>>()?)
            }
            255 => FrameKind::Full {
                locals: Vec::read(&mut ahead, "locals")?,
                stack: Vec::read(&mut ahead, "stack")?,
            },
        };
        *input = ahead;
        Ok(Self { offset_delta, extended, kind })
    }

    fn write(&self, output: &mut Output) {
        let short = u8::try_from(self.offset_delta).ok().filter(|delta| *delta < 64 && !self.extended);
        match (&self.kind, short) {
            (FrameKind::Same, Some(delta)) => output.u8(delta),
            (FrameKind::SameStack1(item), Some(delta)) => {
                output.u8(64 + delta);
                item.write(output);
            }
            (kind, _) => {
                let tag = match kind {
                    FrameKind::Same => 251,
                    FrameKind::SameStack1(_) => 247,
                    FrameKind::Chop(count) => 251 - count.clamp(&1, &3),
                    FrameKind::Append(locals) => 251 + u8::try_from(locals.len()).unwrap_or(3).clamp(1, 3),
                    FrameKind::Full { .. } => 255,
                };
                output.u8(tag);
                output.u16(self.offset_delta);
                match kind {
                    FrameKind::SameStack1(item) => item.write(output),
                    FrameKind::Append(locals) => locals.iter().for_each(|local| local.write(output)),
                    FrameKind::Full { locals, stack } => {
                        locals.write(output);
                        stack.write(output);
                    }
                    FrameKind::Same | FrameKind::Chop(_) => {}
                }
            }
        }
    }
}
