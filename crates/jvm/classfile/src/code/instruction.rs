//! Instructions with their operands (JVMS 6.5), as encoded.

use runtap_wire::{DecodeError, DecodeErrorKind};

use super::opcode::{Opcode, Operands};
use crate::bytes::{Input, Layout, Output};
use crate::pool::Index;

/// An instruction. Branches are relative to its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction<'a> {
    /// An instruction without operands.
    Simple(Opcode),
    /// `bipush`, `sipush`.
    Push {
        /// The opcode.
        opcode: Opcode,
        /// The number.
        value: i16,
    },
    /// An instruction with only an index of the constant pool; that of `ldc` has one byte.
    Constant {
        /// The opcode.
        opcode: Opcode,
        /// The constant.
        index: Index,
    },
    /// A load, a store, or `ret` of a local variable.
    Local {
        /// The opcode.
        opcode: Opcode,
        /// The variable.
        index: u16,
        /// Whether the instruction is prefixed by `wide`.
        wide: bool,
    },
    /// `iinc`.
    Increment {
        /// The variable.
        index: u16,
        /// The number that is added.
        by: i16,
        /// Whether the instruction is prefixed by `wide`.
        wide: bool,
    },
    /// `goto`, `jsr`, their wide forms, or an `if`.
    Branch {
        /// The opcode.
        opcode: Opcode,
        /// The target, relative to the offset of this instruction.
        offset: i32,
    },
    /// `tableswitch`.
    TableSwitch {
        /// 0 to 3 bytes, up to an offset that is a multiple of four.
        padding: &'a [u8],
        /// The branch for all other numbers.
        default: i32,
        /// The number of the first branch; the last number follows from the length of `offsets`.
        low: i32,
        /// The branches, four bytes each.
        offsets: &'a [[u8; 4]],
    },
    /// `lookupswitch`.
    LookupSwitch {
        /// 0 to 3 bytes, up to an offset that is a multiple of four.
        padding: &'a [u8],
        /// The branch for all other numbers.
        default: i32,
        /// Pairs of a number and a branch, four bytes each.
        pairs: &'a [[u8; 8]],
    },
    /// `invokeinterface`.
    InvokeInterface {
        /// The method.
        index: Index,
        /// The size of the arguments, in words.
        count: u8,
        /// 0.
        zero: u8,
    },
    /// `invokedynamic`.
    InvokeDynamic {
        /// The call site.
        index: Index,
        /// 0.
        zero: u16,
    },
    /// `newarray`.
    NewArray(
        /// The element type, from 4 (`boolean`) to 11 (`long`).
        u8,
    ),
    /// `multianewarray`.
    MultiNewArray {
        /// The type of the array.
        index: Index,
        /// The number of dimensions to allocate.
        dimensions: u8,
    },
}

impl<'a> Instruction<'a> {
    /// Decodes the instruction at `pc` of the code.
    #[expect(clippy::inline_always, reason = "it is the body of the loop over all instructions")]
    #[inline(always)]
    pub(crate) fn read(input: &mut Input<'a>, pc: usize) -> Result<Self, DecodeError> {
        let mut ahead = input.clone();
        let opcode = Opcode(ahead.u8("opcode")?);
        let found = match opcode.operands() {
            Some(Operands::None) => Self::Simple(opcode),
            Some(Operands::Byte) => {
                Self::Push { opcode, value: i8::from_be_bytes(ahead.array("byte")?).into() }
            }
            Some(Operands::Short) => Self::Push { opcode, value: ahead.i16("value")? },
            Some(Operands::ByteIndex) => Self::Constant { opcode, index: Index(ahead.u8("index")?.into()) },
            Some(Operands::Index) => Self::Constant { opcode, index: Index(ahead.u16("index")?) },
            Some(Operands::Local) => Self::Local { opcode, index: ahead.u8("index")?.into(), wide: false },
            Some(Operands::Iinc) => Self::Increment {
                index: ahead.u8("index")?.into(),
                by: i8::from_be_bytes(ahead.array("const")?).into(),
                wide: false,
            },
            Some(Operands::Branch) => Self::Branch { opcode, offset: ahead.i16("branch")?.into() },
            Some(Operands::WideBranch) => Self::Branch { opcode, offset: ahead.i32("branch")? },
            Some(Operands::TableSwitch) => {
                let padding = ahead.bytes(padding(pc), "padding")?;
                let default = ahead.i32("default")?;
                let low = ahead.i32("low")?;
                let high = ahead.i32("high")?;
                let count = usize::try_from(i64::from(high) - i64::from(low) + 1).unwrap_or_default();
                if count == 0 {
                    return Err(ahead.error("high", DecodeErrorKind::Invalid("is less than low")));
                }
                let offsets = ahead.bytes(count.saturating_mul(4), "jump offsets")?.as_chunks().0;
                Self::TableSwitch { padding, default, low, offsets }
            }
            Some(Operands::LookupSwitch) => {
                let padding = ahead.bytes(padding(pc), "padding")?;
                let default = ahead.i32("default")?;
                let count = ahead.i32("npairs")?;
                let Ok(count) = usize::try_from(count) else {
                    return Err(ahead.error("npairs", DecodeErrorKind::Invalid("is negative")));
                };
                let pairs = ahead.bytes(count.saturating_mul(8), "match-offset pairs")?.as_chunks().0;
                Self::LookupSwitch { padding, default, pairs }
            }
            Some(Operands::Interface) => Self::InvokeInterface {
                index: Index(ahead.u16("index")?),
                count: ahead.u8("count")?,
                zero: ahead.u8("zero")?,
            },
            Some(Operands::Dynamic) => {
                Self::InvokeDynamic { index: Index(ahead.u16("index")?), zero: ahead.u16("zero")? }
            }
            Some(Operands::NewArray) => Self::NewArray(ahead.u8("atype")?),
            Some(Operands::MultiArray) => {
                Self::MultiNewArray { index: Index(ahead.u16("index")?), dimensions: ahead.u8("dimensions")? }
            }
            Some(Operands::Wide) => {
                let opcode = Opcode(ahead.u8("wide opcode")?);
                match opcode.operands() {
                    Some(Operands::Local) => Self::Local { opcode, index: ahead.u16("index")?, wide: true },
                    Some(Operands::Iinc) => {
                        Self::Increment { index: ahead.u16("index")?, by: ahead.i16("const")?, wide: true }
                    }
                    _ => {
                        return Err(
                            input.error("wide opcode", unknown(opcode, "a load, a store, ret or iinc"))
                        );
                    }
                }
            }
            None => return Err(input.error("opcode", unknown(opcode, "0 to 201"))),
        };
        *input = ahead;
        Ok(found)
    }

    /// Returns the opcode.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Simple(opcode)
            | Self::Push { opcode, .. }
            | Self::Constant { opcode, .. }
            | Self::Local { opcode, .. }
            | Self::Branch { opcode, .. } => *opcode,
            Self::Increment { .. } => Opcode::IINC,
            Self::TableSwitch { .. } => Opcode::TABLESWITCH,
            Self::LookupSwitch { .. } => Opcode::LOOKUPSWITCH,
            Self::InvokeInterface { .. } => Opcode::INVOKEINTERFACE,
            Self::InvokeDynamic { .. } => Opcode::INVOKEDYNAMIC,
            Self::NewArray(_) => Opcode::NEWARRAY,
            Self::MultiNewArray { .. } => Opcode::MULTIANEWARRAY,
        }
    }

    /// Returns the branch targets of the instruction, relative to its offset.
    pub fn branches(&self) -> impl Iterator<Item = i32> + use<'a> {
        let (first, offsets, pairs): (_, &'a [[u8; 4]], &'a [[u8; 8]]) = match *self {
            Self::Branch { offset, .. } => (Some(offset), &[], &[]),
            Self::TableSwitch { default, offsets, .. } => (Some(default), offsets, &[]),
            Self::LookupSwitch { default, pairs, .. } => (Some(default), &[], pairs),
            _ => (None, &[], &[]),
        };
        let pairs = pairs.iter().map(|&[_, _, _, _, a, b, c, d]| i32::from_be_bytes([a, b, c, d]));
        first.into_iter().chain(offsets.iter().map(|offset| i32::from_be_bytes(*offset))).chain(pairs)
    }

    /// Encodes the instruction as it was decoded. A switch at another offset may need different padding.
    pub(crate) fn write(&self, output: &mut Output) {
        match *self {
            Self::Simple(opcode) => output.u8(opcode.0),
            Self::Push { opcode, value } => {
                output.u8(opcode.0);
                let [high, low] = value.to_be_bytes();
                if opcode != Opcode::BIPUSH {
                    output.u8(high);
                }
                output.u8(low);
            }
            Self::Constant { opcode, index } => {
                output.u8(opcode.0);
                match opcode {
                    Opcode::LDC => output.count8(index.0.into(), "ldc index"),
                    _ => index.write(output),
                }
            }
            Self::Local { opcode, index, wide: false } => {
                output.u8(opcode.0);
                output.count8(index.into(), "index");
            }
            Self::Local { opcode, index, wide: true } => {
                output.bytes(&[Opcode::WIDE.0, opcode.0]);
                output.u16(index);
            }
            Self::Increment { index, by, wide: false } => {
                output.u8(Opcode::IINC.0);
                output.count8(index.into(), "index");
                let [_, low] = by.to_be_bytes();
                output.u8(low);
            }
            Self::Increment { index, by, wide: true } => {
                output.bytes(&[Opcode::WIDE.0, Opcode::IINC.0]);
                output.u16(index);
                output.bytes(&by.to_be_bytes());
            }
            Self::Branch { opcode, offset } => {
                output.u8(opcode.0);
                match (opcode, i16::try_from(offset)) {
                    (Opcode::GOTO_W | Opcode::JSR_W, _) => output.i32(offset),
                    (_, Ok(offset)) => output.bytes(&offset.to_be_bytes()),
                    (_, Err(_)) => output.count16(usize::MAX, "branch"),
                }
            }
            Self::TableSwitch { padding, default, low, offsets } => {
                output.u8(Opcode::TABLESWITCH.0);
                output.bytes(padding);
                output.i32(default);
                output.i32(low);
                // The number of offsets is at most that of `i32` values.
                let count = i32::try_from(offsets.len()).unwrap_or(i32::MAX);
                output.i32(low.wrapping_add(count.wrapping_sub(1)));
                output.bytes(offsets.as_flattened());
            }
            Self::LookupSwitch { padding, default, pairs } => {
                output.u8(Opcode::LOOKUPSWITCH.0);
                output.bytes(padding);
                output.i32(default);
                output.u32(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
                output.bytes(pairs.as_flattened());
            }
            Self::InvokeInterface { index, count, zero } => {
                output.u8(Opcode::INVOKEINTERFACE.0);
                index.write(output);
                output.bytes(&[count, zero]);
            }
            Self::InvokeDynamic { index, zero } => {
                output.u8(Opcode::INVOKEDYNAMIC.0);
                index.write(output);
                output.u16(zero);
            }
            Self::NewArray(kind) => output.bytes(&[Opcode::NEWARRAY.0, kind]),
            Self::MultiNewArray { index, dimensions } => {
                output.u8(Opcode::MULTIANEWARRAY.0);
                index.write(output);
                output.u8(dimensions);
            }
        }
    }
}

/// Returns the number of padding bytes between the opcode of a switch at `pc` and its operands.
pub(crate) fn padding(pc: usize) -> usize {
    3 - pc % 4
}

fn unknown(opcode: Opcode, expected: &'static str) -> DecodeErrorKind {
    DecodeErrorKind::Unexpected { value: opcode.0.into(), expected }
}
