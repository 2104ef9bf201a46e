//! Attributes that consist of one structure, or of a table of one structure.

use runtap_wire::DecodeError;

use super::Attributes;
use crate::bytes::{Input, Layout, Output, layouts};
use crate::flags::AccessFlags;
use crate::pool::Index;

layouts! {
    /// A class that is a member of another one, or local.
    pub struct InnerClass {
        /// `CONSTANT_Class`: the class.
        pub inner_class: Index,
        /// `CONSTANT_Class`: the enclosing class, or [`Index::NONE`] if the class is not a member.
        pub outer_class: Index,
        /// `CONSTANT_Utf8`: the simple name, or [`Index::NONE`] for an anonymous class.
        pub inner_name: Index,
        /// The access flags in the source.
        pub access: AccessFlags,
    }

    /// The class and method that enclose a local or anonymous class.
    pub struct EnclosingMethod {
        /// `CONSTANT_Class`.
        pub class: Index,
        /// `CONSTANT_NameAndType`, or [`Index::NONE`] outside of methods.
        pub method: Index,
    }

    /// The first instruction of a source line.
    pub struct LineNumber {
        /// The offset in the code.
        pub start_pc: u16,
        /// The line number, from 1.
        pub line_number: u16,
    }

    /// A local variable and the part of the code in which it has a value.
    pub struct LocalVariable {
        /// The offset in the code.
        pub start_pc: u16,
        /// The length of the part, in bytes of code.
        pub length: u16,
        /// `CONSTANT_Utf8`.
        pub name: Index,
        /// `CONSTANT_Utf8`: the descriptor; in `LocalVariableTypeTable`, the generic signature.
        pub descriptor: Index,
        /// The number of the variable.
        pub index: u16,
    }

    /// The computation of a constant or a call site.
    pub struct BootstrapMethod {
        /// `CONSTANT_MethodHandle`.
        pub method: Index,
        /// The static arguments, as constants.
        pub arguments: Vec<Index>,
    }

    /// A parameter of a method.
    pub struct Parameter {
        /// `CONSTANT_Utf8`: the name, or [`Index::NONE`].
        pub name: Index,
        /// The flags `final`, `synthetic` and `mandated`.
        pub access: AccessFlags,
    }

    /// A component of a record.
    pub struct RecordComponent<'a> {
        /// `CONSTANT_Utf8`.
        pub name: Index,
        /// `CONSTANT_Utf8`.
        pub descriptor: Index,
        /// The attributes.
        pub attributes: Attributes<'a>,
    }
}

/// The names and flags of the parameters of a method, at most 255.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodParameters(pub Vec<Parameter>);

impl<'a> Layout<'a> for MethodParameters {
    fn read(input: &mut Input<'a>, _: &'static str) -> Result<Self, DecodeError> {
        let count = input.u8("parameters_count")?;
        (0..count).map(|_| Parameter::read(input, "parameters")).collect::<Result<_, _>>().map(Self)
    }

    fn write(&self, output: &mut Output) {
        output.count8(self.0.len(), "parameters_count");
        self.0.iter().for_each(|parameter| parameter.write(output));
    }
}
