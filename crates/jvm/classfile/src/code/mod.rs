//! The code of a method (JVMS 4.7.3).
//!
//! Contains the attribute, its exception table, and an iterator over its instructions, which are not verified.

mod frame;
mod instruction;
mod opcode;

use runtap_wire::{DecodeError, DecodeErrorKind};

pub use self::frame::{Frame, FrameKind, VerificationType};
pub use self::instruction::Instruction;
pub(crate) use self::instruction::padding;
pub use self::opcode::Opcode;
use crate::attribute::{Attribute, Attributes, LineNumber, RawAttribute};
use crate::bytes::{Input, Layout, Output, layouts};
use crate::class::EncodeError;
use crate::pool::{Index, Pool};

/// The maximum size of the code of a method, in bytes.
pub const MAX_CODE: usize = 65_535;

layouts! {
    /// A row of the exception table.
    pub struct Handler {
        /// The first offset of the covered part.
        pub start_pc: u16,
        /// The offset after the covered part.
        pub end_pc: u16,
        /// The offset of the handler.
        pub handler_pc: u16,
        /// `CONSTANT_Class`, or [`Index::NONE`] for every exception.
        pub catch_type: Index,
    }
}

/// The code of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code<'a> {
    /// The size of the stack, in words.
    pub max_stack: u16,
    /// The size of the local variables, in words.
    pub max_locals: u16,
    /// The encoded instructions.
    pub bytes: &'a [u8],
    /// The offset of `bytes` in the file.
    pub offset: usize,
    /// The exception table: the first matching row is used.
    pub handlers: Vec<Handler>,
    /// The attributes.
    pub attributes: Attributes<'a>,
}

impl<'a> Code<'a> {
    pub(crate) fn parse(raw: &RawAttribute<'a>) -> Result<Self, DecodeError> {
        let mut input = raw.input();
        let max_stack = input.u16("max_stack")?;
        let max_locals = input.u16("max_locals")?;
        let bytes = input.counted("code_length")?;
        let offset = input.offset() - bytes.len();
        if bytes.len() > MAX_CODE {
            let kind = DecodeErrorKind::TooLarge { value: bytes.len() as u64, limit: MAX_CODE as u64 };
            return Err(DecodeError::new(offset as u64 - 4, "code_length", kind));
        }
        let handlers = Vec::read(&mut input, "exception_table")?;
        let attributes = Attributes::read(&mut input, "attributes")?;
        input.finish("attribute_length")?;
        Ok(Self { max_stack, max_locals, bytes, offset, handlers, attributes })
    }

    /// Returns an iterator over the instructions with their offsets in the code. It stops after the first error.
    pub fn instructions(&self) -> Instructions<'a> {
        Instructions { input: Input::at(self.bytes, self.offset), start: self.offset }
    }

    /// Returns the rows of all `LineNumberTable` attributes, in their order.
    pub fn lines(&self, pool: &Pool<'a>) -> Result<Vec<LineNumber>, DecodeError> {
        let mut lines = Vec::new();
        for raw in self.attributes.iter() {
            // A method may have several of these tables.
            if raw.name(pool)?.as_bytes() == b"LineNumberTable"
                && let Attribute::LineNumberTable(table) = raw.parse(pool)?
            {
                lines.extend(table);
            }
        }
        Ok(lines)
    }

    pub(crate) fn encode(&self, pool: &Pool<'a>, output: &mut Output) -> Result<(), EncodeError> {
        output.u16(self.max_stack);
        output.u16(self.max_locals);
        let mut result = Ok(());
        output.counted("code_length", |output| {
            result = self
                .instructions()
                .try_for_each(|found| found.map(|(_, instruction)| instruction.write(output)));
        });
        result?;
        self.handlers.write(output);
        self.attributes.encode(pool, output)
    }
}

/// An iterator over the instructions of a method.
#[derive(Debug, Clone)]
pub struct Instructions<'a> {
    input: Input<'a>,
    start: usize,
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<(u16, Instruction<'a>), DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.input.is_empty() {
            return None;
        }
        let pc = self.input.offset() - self.start;
        let found = Instruction::read(&mut self.input, pc);
        if found.is_err() {
            self.input = Input::at(&[], self.input.offset());
        }
        Some(found.map(|instruction| (u16::try_from(pc).unwrap_or(u16::MAX), instruction)))
    }
}
