//! The builder of the code of a method.

use super::AssembleError;
use crate::Constants;
use crate::TooMany;
use crate::attribute::LineNumber;
use crate::bytes::{Layout as _, Output};
use crate::code::{Frame, FrameKind, Handler, Instruction, MAX_CODE, Opcode};
use crate::pool::Index;

/// A position in code that can be bound and branched to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A builder of the code of a method. Errors are reported when the method is added to its class.
#[derive(Debug, Clone, Default)]
pub struct CodeBuilder {
    max_stack: u16,
    max_locals: u16,
    bytes: Vec<u8>,
    /// The offsets of the labels, by number; `None` if not bound.
    labels: Vec<Option<usize>>,
    /// The branches: the offset of the instruction, and its target.
    branches: Vec<(usize, Label)>,
    /// The exception handlers: start, end, handler and type.
    handlers: Vec<(Label, Label, Label, Index)>,
    frames: Vec<(usize, FrameKind)>,
    lines: Vec<LineNumber>,
}

impl CodeBuilder {
    /// Creates empty code with these numbers of words for the stack and the local variables.
    pub fn new(max_stack: u16, max_locals: u16) -> Self {
        Self { max_stack, max_locals, ..Self::default() }
    }

    /// Adds an instruction without operands.
    pub fn op(&mut self, opcode: Opcode) -> &mut Self {
        self.bytes.push(opcode.0);
        self
    }

    /// Adds an instruction that pushes a number.
    pub fn push(&mut self, constants: &mut Constants, value: i32) -> &mut Self {
        constants.push(value, &mut self.bytes);
        self
    }

    /// Adds a load, a store or `ret` of a local variable; with `wide` if necessary.
    pub fn local(&mut self, opcode: Opcode, index: u16) -> &mut Self {
        if let Ok(index) = u8::try_from(index) {
            self.bytes.extend([opcode.0, index]);
        } else {
            let [high, low] = index.to_be_bytes();
            self.bytes.extend([Opcode::WIDE.0, opcode.0, high, low]);
        }
        self
    }

    /// Adds any instruction except branches and switches, which need labels.
    pub fn instruction(&mut self, instruction: &Instruction<'_>) -> &mut Self {
        let mut output = Output::new();
        instruction.write(&mut output);
        // Without branches and switches, every operand can be encoded.
        self.bytes.extend(output.finish().unwrap_or_default());
        self
    }

    /// Adds an instruction with a two-byte index of a constant: calls, fields, `new`, `ldc_w`.
    pub fn constant(&mut self, opcode: Opcode, index: Index) -> &mut Self {
        let [high, low] = index.0.to_be_bytes();
        self.bytes.extend([opcode.0, high, low]);
        self
    }

    /// Creates a label that is not bound.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Binds a label to the position of the next instruction.
    pub fn bind(&mut self, label: Label) -> &mut Self {
        if let Some(offset) = self.labels.get_mut(label.0) {
            *offset = Some(self.bytes.len());
        }
        self
    }

    /// Adds a branch with a 16-bit offset.
    pub fn branch(&mut self, opcode: Opcode, to: Label) -> &mut Self {
        self.branches.push((self.bytes.len(), to));
        self.bytes.extend([opcode.0, 0, 0]);
        self
    }

    /// Adds a stack map frame for the next instruction. Frames must be added in order.
    pub fn frame(&mut self, kind: FrameKind) -> &mut Self {
        self.frames.push((self.bytes.len(), kind));
        self
    }

    /// Sets the line number of the next instruction.
    pub fn line(&mut self, number: u16) -> &mut Self {
        let start_pc = u16::try_from(self.bytes.len()).unwrap_or(u16::MAX);
        self.lines.push(LineNumber { start_pc, line_number: number });
        self
    }

    /// Adds a handler for the exceptions between two labels, of one class or of all classes ([`Index::NONE`]).
    pub fn handler(&mut self, start: Label, end: Label, handler: Label, catch_type: Index) -> &mut Self {
        self.handlers.push((start, end, handler, catch_type));
        self
    }

    /// Returns the content of the `Code` attribute.
    pub(super) fn finish(&self, constants: &mut Constants, method: &str) -> Result<Vec<u8>, AssembleError> {
        let offset = |label: Label| {
            let found = self.labels.get(label.0).copied().flatten();
            found.ok_or_else(|| AssembleError::Unbound(method.to_owned()))
        };
        if self.bytes.len() > MAX_CODE {
            let value = self.bytes.len();
            return Err(TooMany { what: "code_length", value, limit: MAX_CODE }.into());
        }
        let mut bytes = self.bytes.clone();
        for (at, to) in &self.branches {
            let to = i64::try_from(offset(*to)?).unwrap_or(i64::MAX);
            let distance = i16::try_from(to - i64::try_from(*at).unwrap_or(0));
            let distance = distance.map_err(|_too_far| AssembleError::TooFar(method.to_owned()))?;
            if let Some(operand) = bytes.get_mut(at + 1..at + 3) {
                operand.copy_from_slice(&distance.to_be_bytes());
            }
        }
        let pc = |label| offset(label).map(|at| u16::try_from(at).unwrap_or(u16::MAX));
        let row = |&(start, end, handler, catch_type): &_| {
            Ok(Handler { start_pc: pc(start)?, end_pc: pc(end)?, handler_pc: pc(handler)?, catch_type })
        };
        let handlers = self.handlers.iter().map(row).collect::<Result<Vec<_>, AssembleError>>()?;
        let mut next = 0;
        let frames = self.frames.iter().map(|(at, kind)| {
            let delta = at.saturating_sub(next);
            next = at + 1;
            Frame {
                offset_delta: u16::try_from(delta).unwrap_or(u16::MAX),
                extended: false,
                kind: kind.clone(),
            }
        });
        let frames: Vec<_> = frames.collect();

        let mut output = Output::new();
        output.u16(self.max_stack);
        output.u16(self.max_locals);
        output.counted("code_length", |output| output.bytes(&bytes));
        handlers.write(&mut output);
        output.u16(u16::from(!frames.is_empty()) + u16::from(!self.lines.is_empty()));
        if !frames.is_empty() {
            constants.text("StackMapTable").write(&mut output);
            output.counted("attribute_length", |output| frames.write(output));
        }
        if !self.lines.is_empty() {
            constants.text("LineNumberTable").write(&mut output);
            output.counted("attribute_length", |output| self.lines.write(output));
        }
        Ok(output.finish()?)
    }
}
