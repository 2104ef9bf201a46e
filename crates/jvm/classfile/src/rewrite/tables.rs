//! The attributes of changed code: those that contain offsets are updated, and the others are preserved.

use super::additions::Additions;
use super::layout::Layout;
use super::method::{Body, offset};
use super::{Candidate, Reason};
use crate::ClassFile;
use crate::attribute::{
    Attribute, Attributes, LocalVariable, LocalVariableRange, RawAttribute, Target, TypeAnnotation,
};
use crate::bytes::{Layout as _, Output};

/// The first version of class files that requires stack maps.
const FIRST_VERSION_WITH_FRAMES: u16 = 50;

/// Writes the attributes of changed code.
pub(super) struct AttributeWriter<'t, 'p, 'a> {
    pub(super) class: &'t ClassFile<'a>,
    pub(super) candidate: &'t Candidate<'a>,
    pub(super) body: &'t Body<'a>,
    pub(super) layout: &'t Layout,
    pub(super) unwinding: Unwinding,
    pub(super) additions: &'t mut Additions<'p, 'a>,
}

/// The offsets of the handlers that catch every exception; `None` where there is no such handler.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Unwinding {
    pub(super) initialized: Option<u16>,
    /// The handler of a constructor before its object is initialized, which follows the other one.
    pub(super) uninitialized: Option<u16>,
}

impl Unwinding {
    /// Returns whether there is a handler.
    pub(super) fn any(self) -> bool {
        self.initialized.is_some() || self.uninitialized.is_some()
    }
}

impl<'a> AttributeWriter<'_, '_, 'a> {
    /// Writes all attributes, and a stack map if the code needs a new one.
    pub(super) fn write(&mut self, attributes: &Attributes<'a>, output: &mut Output) -> Result<(), Reason> {
        let pool = self.class.pool();
        let has_frames = attributes.find(pool, "StackMapTable")?.is_some();
        let adds_frames =
            !has_frames && self.unwinding.any() && self.class.version().major >= FIRST_VERSION_WITH_FRAMES;
        output.count16(attributes.len() + usize::from(adds_frames), "attributes_count");
        for raw in attributes.iter() {
            raw.name.write(output);
            let mut result = Ok(());
            output.counted("attribute_length", |output| result = self.attribute(&raw, output));
            result?;
        }
        if adds_frames {
            self.additions.text(b"StackMapTable").write(output);
            let frames = self.frames(Vec::new())?;
            output.counted("attribute_length", |output| frames.write(output));
        }
        Ok(())
    }

    /// Writes the content of one attribute.
    fn attribute(&mut self, raw: &RawAttribute<'a>, output: &mut Output) -> Result<(), Reason> {
        let pool = self.class.pool();
        let name = raw.name(pool)?;
        let has_offsets = matches!(
            name.as_bytes(),
            b"StackMapTable"
                | b"LineNumberTable"
                | b"LocalVariableTable"
                | b"LocalVariableTypeTable"
                | b"RuntimeVisibleTypeAnnotations"
                | b"RuntimeInvisibleTypeAnnotations"
        );
        if !has_offsets {
            output.bytes(raw.data);
            return Ok(());
        }
        match raw.parse(pool)? {
            Attribute::StackMapTable(frames) => self.frames(frames)?.write(output),
            Attribute::LineNumberTable(mut lines) => {
                for line in &mut lines {
                    line.start_pc = self.start(line.start_pc)?;
                }
                lines.write(output);
            }
            Attribute::LocalVariableTable(variables) | Attribute::LocalVariableTypeTable(variables) => {
                self.variables(variables)?.write(output);
            }
            Attribute::RuntimeVisibleTypeAnnotations(all)
            | Attribute::RuntimeInvisibleTypeAnnotations(all) => {
                all.into_iter().map(|one| self.annotation(one)).collect::<Result<Vec<_>, _>>()?.write(output);
            }
            _ => output.bytes(raw.data),
        }
        Ok(())
    }

    /// Returns the variables at their new offsets.
    fn variables(&self, mut variables: Vec<LocalVariable>) -> Result<Vec<LocalVariable>, Reason> {
        for variable in &mut variables {
            (variable.start_pc, variable.length) = self.range(variable.start_pc, variable.length)?;
        }
        Ok(variables)
    }

    /// Returns the annotation at its new offsets.
    fn annotation(&self, mut annotation: TypeAnnotation) -> Result<TypeAnnotation, Reason> {
        match &mut annotation.target {
            Target::LocalVariable { ranges, .. } => {
                for LocalVariableRange { start_pc, length, .. } in ranges {
                    (*start_pc, *length) = self.range(*start_pc, *length)?;
                }
            }
            Target::Offset { offset: pc, .. } | Target::TypeArgument { offset: pc, .. } => {
                let number = self.body.find((*pc).into()).ok_or(Reason::Misplaced("a type annotation"))?;
                *pc = offset(self.layout.place(number).at)?;
            }
            _ => {}
        }
        Ok(annotation)
    }

    /// Returns the new start of a line or a variable. At the start of the method it is unchanged, so the first line
    /// includes the entry.
    fn start(&self, pc: u16) -> Result<u16, Reason> {
        if pc == 0 {
            return Ok(0);
        }
        let number =
            self.body.find(pc.into()).ok_or(Reason::Misplaced("the start of a line or a variable"))?;
        offset(self.layout.place(number).label)
    }

    /// Returns the new start and the new length of a range.
    fn range(&self, start: u16, length: u16) -> Result<(u16, u16), Reason> {
        let misplaced_end = Reason::Misplaced("the end of a variable");
        let end = usize::from(start) + usize::from(length);
        let number = if end == self.body.length { Some(self.body.ops.len()) } else { self.body.find(end) };
        let new_start = if usize::from(start) == self.body.length {
            // A variable that is written at the end of the method and never read.
            offset(self.layout.end_before(self.body.ops.len()))?
        } else {
            self.start(start)?
        };
        if length == 0 {
            return Ok((new_start, 0));
        }
        let end = offset(self.layout.end_before(number.ok_or_else(|| misplaced_end.clone())?))?;
        Ok((new_start, end.checked_sub(new_start).ok_or(misplaced_end)?))
    }
}
