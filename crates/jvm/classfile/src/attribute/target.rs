//! Annotations of types and their targets (JVMS 4.7.20).

use runtap_wire::{DecodeError, DecodeErrorKind};

use super::annotation::Element;
use crate::bytes::{Input, Layout, Output, layouts};
use crate::pool::Index;

layouts! {
    /// An annotation of a type.
    pub struct TypeAnnotation {
        /// The use of the type.
        pub target: Target,
        /// The annotated part of the type.
        pub path: Path,
        /// `CONSTANT_Utf8`: the descriptor of the annotation's interface.
        pub type_index: Index,
        /// The elements.
        pub elements: Vec<Element>,
    }

    /// A step into a compound type.
    pub struct PathStep {
        /// The kind: into an array (0), a nested type (1), the bound of a wildcard (2), or a type argument (3).
        pub kind: u8,
        /// The number of the type argument.
        pub argument: u8,
    }

    /// A part of the code in which a local variable has a value.
    pub struct LocalVariableRange {
        /// The offset in the code.
        pub start_pc: u16,
        /// The length of the part, in bytes of code.
        pub length: u16,
        /// The number of the variable.
        pub index: u16,
    }
}

/// The steps from a type to its annotated part, at most 255.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path(pub Vec<PathStep>);

impl<'a> Layout<'a> for Path {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let count = input.u8("path_length")?;
        (0..count).map(|_| PathStep::read(input, "path")).collect::<Result<_, _>>().map(Self)
    }

    fn write(&self, output: &mut Output) {
        output.count8(self.0.len(), "path_length");
        self.0.iter().for_each(|step| step.write(output));
    }
}

/// The use of a type. `kind` is `target_type` (tables 4.7.20-A and -B).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The declaration of a type parameter (0x00, 0x01).
    TypeParameter {
        /// `target_type`.
        kind: u8,
        /// The number of the parameter.
        index: u8,
    },
    /// A supertype (0x10): an interface, or 65,535 for the superclass.
    Supertype(u16),
    /// The bound of a type parameter (0x11, 0x12).
    TypeParameterBound {
        /// `target_type`.
        kind: u8,
        /// The number of the parameter.
        parameter: u8,
        /// The number of the bound.
        bound: u8,
    },
    /// The type of a field (0x13), of a result (0x14), or of the receiver (0x15).
    Empty {
        /// `target_type`.
        kind: u8,
    },
    /// The type of a parameter (0x16).
    Parameter(u8),
    /// The type of a declared exception (0x17).
    Throws(u16),
    /// The type of a local variable (0x40) or of a resource (0x41).
    LocalVariable {
        /// `target_type`.
        kind: u8,
        /// The parts of the code in which the variable has a value.
        ranges: Vec<LocalVariableRange>,
    },
    /// The type of a caught exception (0x42): a row of the exception table.
    Catch(u16),
    /// A type that an instruction uses (0x43 `instanceof`, 0x44 `new`, 0x45 and 0x46 method references).
    Offset {
        /// `target_type`.
        kind: u8,
        /// The offset of the instruction in the code.
        offset: u16,
    },
    /// A type argument that an instruction uses (0x47 a cast, 0x48 to 0x4b calls and method references).
    TypeArgument {
        /// `target_type`.
        kind: u8,
        /// The offset of the instruction in the code.
        offset: u16,
        /// The number of the argument.
        argument: u8,
    },
}

impl<'a> Layout<'a> for Target {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let mut ahead = input.clone();
        let target = match ahead.u8("target_type")? {
            kind @ 0x00..=0x01 => Self::TypeParameter { kind, index: ahead.u8("type_parameter_index")? },
            0x10 => Self::Supertype(ahead.u16("supertype_index")?),
            kind @ 0x11..=0x12 => Self::TypeParameterBound {
                kind,
                parameter: ahead.u8("type_parameter_index")?,
                bound: ahead.u8("bound_index")?,
            },
            kind @ 0x13..=0x15 => Self::Empty { kind },
            0x16 => Self::Parameter(ahead.u8("formal_parameter_index")?),
            0x17 => Self::Throws(ahead.u16("throws_type_index")?),
            kind @ 0x40..=0x41 => {
                Self::LocalVariable { kind, ranges: Vec::read(&mut ahead, "table_length")? }
            }
            0x42 => Self::Catch(ahead.u16("exception_table_index")?),
            kind @ 0x43..=0x46 => Self::Offset { kind, offset: ahead.u16("offset")? },
            kind @ 0x47..=0x4b => Self::TypeArgument {
                kind,
                offset: ahead.u16("offset")?,
                argument: ahead.u8("type_argument_index")?,
            },
            kind => {
                let kind = DecodeErrorKind::Unexpected {
                    value: kind.into(),
                    expected: "a target_type of table 4.7.20",
                };
                return Err(input.error("target_type", kind));
            }
        };
        *input = ahead;
        Ok(target)
    }

    fn write(&self, output: &mut Output) {
        match self {
            Self::TypeParameter { kind, index } => output.bytes(&[*kind, *index]),
            Self::Supertype(index) => {
                output.u8(0x10);
                output.u16(*index);
            }
            Self::TypeParameterBound { kind, parameter, bound } => output.bytes(&[*kind, *parameter, *bound]),
            Self::Empty { kind } => output.u8(*kind),
            Self::Parameter(index) => output.bytes(&[0x16, *index]),
            Self::Throws(index) => {
                output.u8(0x17);
                output.u16(*index);
            }
            Self::LocalVariable { kind, ranges } => {
                output.u8(*kind);
                ranges.write(output);
            }
            Self::Catch(index) => {
                output.u8(0x42);
                output.u16(*index);
            }
            Self::Offset { kind, offset } => {
                output.u8(*kind);
                output.u16(*offset);
            }
            Self::TypeArgument { kind, offset, argument } => {
                output.u8(*kind);
                output.u16(*offset);
                output.u8(*argument);
            }
        }
    }
}
