//! Annotations and the values of their elements (JVMS 4.7.16).

use runtap_wire::{DecodeError, DecodeErrorKind};

use crate::bytes::{Input, Layout, Output, layouts};
use crate::pool::Index;

/// The maximum nesting of values. The specification has no limit; compilers use one or two levels.
const MAX_DEPTH: u8 = 64;

layouts! {
    /// An annotation.
    pub struct Annotation {
        /// `CONSTANT_Utf8`: the descriptor of its interface.
        pub type_index: Index,
        /// The elements.
        pub elements: Vec<Element>,
    }

    /// An element of an annotation.
    pub struct Element {
        /// `CONSTANT_Utf8`.
        pub name: Index,
        /// The value.
        pub value: ElementValue,
    }
}

/// The value of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementValue {
    /// A constant: a number, a truth value, a character or a string.
    Constant {
        /// One of `BCDFIJSZs`.
        tag: u8,
        /// The constant.
        value: Index,
    },
    /// A constant of an enum.
    Enum {
        /// `CONSTANT_Utf8`: the descriptor of the enum class.
        type_name: Index,
        /// `CONSTANT_Utf8`.
        constant_name: Index,
    },
    /// A class.
    Class(
        /// `CONSTANT_Utf8`: the descriptor of the class.
        Index,
    ),
    /// An annotation.
    Annotation(Annotation),
    /// An array.
    Array(Vec<Self>),
}

impl ElementValue {
    fn read_within(input: &mut Input<'_>, depth: u8) -> Result<Self, DecodeError> {
        let Some(inside) = depth.checked_sub(1) else {
            return Err(input.error("element_value", DecodeErrorKind::Invalid("is nested too deeply")));
        };
        let mut ahead = input.clone();
        let value = match ahead.u8("element_value tag")? {
            tag @ (b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's') => {
                Self::Constant { tag, value: Index::read(&mut ahead, "const_value_index")? }
            }
            b'e' => Self::Enum {
                type_name: Index::read(&mut ahead, "type_name_index")?,
                constant_name: Index::read(&mut ahead, "const_name_index")?,
            },
            b'c' => Self::Class(Index::read(&mut ahead, "class_info_index")?),
            b'@' => {
                let type_index = Index::read(&mut ahead, "type_index")?;
                let count = ahead.u16("num_element_value_pairs")?;
                let element = |_| {
                    let name = Index::read(&mut ahead, "element_name_index")?;
                    Ok(Element { name, value: Self::read_within(&mut ahead, inside)? })
                };
                Self::Annotation(Annotation {
                    type_index,
                    elements: (0..count).map(element).collect::<Result<_, _>>()?,
                })
            }
            b'[' => {
                let count = ahead.u16("num_values")?;
                Self::Array(
                    (0..count).map(|_| Self::read_within(&mut ahead, inside)).collect::<Result<_, _>>()?,
                )
            }
            tag => {
                let kind =
                    DecodeErrorKind::Unexpected { value: tag.into(), expected: "one of BCDFIJSZsec@[" };
                return Err(input.error("element_value tag", kind));
            }
        };
        *input = ahead;
        Ok(value)
    }
}

impl<'a> Layout<'a> for ElementValue {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        Self::read_within(input, MAX_DEPTH)
    }

    fn write(&self, output: &mut Output) {
        match self {
            Self::Constant { tag, value } => {
                output.u8(*tag);
                value.write(output);
            }
            Self::Enum { type_name, constant_name } => {
                output.u8(b'e');
                type_name.write(output);
                constant_name.write(output);
            }
            Self::Class(index) => {
                output.u8(b'c');
                index.write(output);
            }
            Self::Annotation(annotation) => {
                output.u8(b'@');
                annotation.write(output);
            }
            Self::Array(values) => {
                output.u8(b'[');
                values.write(output);
            }
        }
    }
}

/// The annotations of each parameter, for at most 255 parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterAnnotations(pub Vec<Vec<Annotation>>);

impl<'a> Layout<'a> for ParameterAnnotations {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let count = input.u8("num_parameters")?;
        (0..count).map(|_| Vec::read(input, "parameter_annotations")).collect::<Result<_, _>>().map(Self)
    }

    fn write(&self, output: &mut Output) {
        output.count8(self.0.len(), "num_parameters");
        self.0.iter().for_each(|annotations| annotations.write(output));
    }
}
