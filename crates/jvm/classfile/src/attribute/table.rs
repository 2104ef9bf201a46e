//! Attributes that are one structure or a table of one.

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
        /// `CONSTANT_Class`: the one around it, if it is a member.
        pub outer_class: Index,
        /// `CONSTANT_Utf8`: its simple name, unless it is anonymous.
        pub inner_name: Index,
        /// Its flags in the source.
        pub access: AccessFlags,
    }

    /// The place of a local or anonymous class.
    pub struct EnclosingMethod {
        /// `CONSTANT_Class`.
        pub class: Index,
        /// `CONSTANT_NameAndType`, unless it is not in a method.
        pub method: Index,
    }

    /// A line of the source and the first of its instructions.
    pub struct LineNumber {
        /// Offset in the code.
        pub start_pc: u16,
        /// Counted from 1.
        pub line_number: u16,
    }

    /// A local variable and where it has its value.
    pub struct LocalVariable {
        /// Offset in the code.
        pub start_pc: u16,
        /// In bytes of code.
        pub length: u16,
        /// `CONSTANT_Utf8`.
        pub name: Index,
        /// `CONSTANT_Utf8`: its descriptor; in `LocalVariableTypeTable`, its signature.
        pub descriptor: Index,
        /// Number of the variable.
        pub index: u16,
    }

    /// How a constant or a call site is computed.
    pub struct BootstrapMethod {
        /// `CONSTANT_MethodHandle`.
        pub method: Index,
        /// Constants.
        pub arguments: Vec<Index>,
    }

    /// A parameter of a method.
    pub struct Parameter {
        /// `CONSTANT_Utf8`, if it has a name.
        pub name: Index,
        /// `final`, `synthetic`, `mandated`.
        pub access: AccessFlags,
    }

    /// A component of a record.
    pub struct RecordComponent<'a> {
        /// `CONSTANT_Utf8`.
        pub name: Index,
        /// `CONSTANT_Utf8`.
        pub descriptor: Index,
        /// Its attributes.
        pub attributes: Attributes<'a>,
    }
}

/// Names and flags of the parameters of a method, at most 255.
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
