//! The stack map of a changed method.
//!
//! Owns: moving the frames to the new offsets, the frames of islands and that of the handler for everything. A frame says
//! how it differs from the one before it; behind one that was not there before, a frame has to say everything, so what all
//! of them mean is worked out, but only for the few methods with islands.

use std::collections::HashMap;

use super::Reason;
use super::descriptor::parts;
use super::method::offset;
use super::tables::Tables;
use crate::code::{Frame, FrameKind, VerificationType};

/// The most types in the frames that are written out: more than any compiler's methods have, less than hurts.
const MAX_TYPES: usize = 1 << 20;

/// What a frame means.
#[derive(Debug, Clone, Default)]
struct Meaning {
    locals: Vec<VerificationType>,
    stack: Vec<VerificationType>,
}

impl Meaning {
    fn apply(&mut self, kind: &FrameKind) {
        match kind {
            FrameKind::Same => self.stack.clear(),
            FrameKind::SameStack1(item) => self.stack = vec![*item],
            FrameKind::Chop(count) => {
                self.locals.truncate(self.locals.len().saturating_sub((*count).into()));
                self.stack.clear();
            }
            FrameKind::Append(more) => {
                self.locals.extend_from_slice(more);
                self.stack.clear();
            }
            FrameKind::Full { locals, stack } => {
                self.locals.clone_from(locals);
                self.stack.clone_from(stack);
            }
        }
    }
}

/// How many types may still be copied.
struct Budget(usize);

impl Budget {
    fn copy(&mut self, meaning: &Meaning) -> Result<Meaning, Reason> {
        let types = meaning.locals.len() + meaning.stack.len();
        self.0 = self.0.checked_sub(types).ok_or(Reason::TooComplex)?;
        Ok(meaning.clone())
    }
}

impl From<Meaning> for FrameKind {
    fn from(meaning: Meaning) -> Self {
        Self::Full { locals: meaning.locals, stack: meaning.stack }
    }
}

impl Tables<'_, '_, '_> {
    /// The frames at their new offsets, with those that are new.
    pub(super) fn frames(&mut self, frames: Vec<Frame>) -> Result<Vec<Frame>, Reason> {
        // Each with the number of its instruction.
        let mut placed = Vec::with_capacity(frames.len());
        let mut next = 0;
        for frame in frames {
            let pc = next + usize::from(frame.offset_delta);
            next = pc + 1;
            let number = self.body.find(pc).ok_or(Reason::Misplaced("a stack map frame"))?;
            placed.push((number, Frame { kind: self.moved_kind(frame.kind)?, ..frame }));
        }
        // A class without frames has nothing to say about islands either: only old ones have branches and no frames.
        let mut new = if placed.is_empty() || self.layout.islands.is_empty() {
            placed.into_iter().map(|(number, frame)| (self.layout.place(number).label, frame)).collect()
        } else {
            self.with_islands(placed)?
        };
        // No variables: whatever they hold where the exception comes from fits that, but for the object of a constructor, which
        // has to be there until it is initialized.
        let handlers = [
            (self.unwinding.initialized, Vec::new()),
            (self.unwinding.uninitialized, vec![VerificationType::UninitializedThis]),
        ];
        for (handler, locals) in handlers {
            let Some(handler) = handler else { continue };
            let throwable = VerificationType::Object(self.additions.throwable());
            let kind = FrameKind::Full { locals, stack: vec![throwable] };
            new.push((usize::from(handler), Frame { offset_delta: 0, extended: true, kind }));
        }
        let mut next = 0;
        let mut result = Vec::with_capacity(new.len());
        for (at, frame) in new {
            let delta = at.checked_sub(next).ok_or(Reason::Misplaced("a stack map frame"))?;
            next = at + 1;
            result.push(Frame { offset_delta: offset(delta)?, ..frame });
        }
        Ok(result)
    }

    /// The frames and those of islands, each with its offset, in their order.
    fn with_islands(&mut self, placed: Vec<(usize, Frame)>) -> Result<Vec<(usize, Frame)>, Reason> {
        let mut islands: Vec<(usize, usize)> =
            self.layout.islands.iter().map(|(island, at)| (*at, island.1)).collect();
        islands.sort_unstable();
        let mut targets: Vec<usize> = islands.iter().map(|(_, target)| *target).collect();
        targets.sort_unstable();
        targets.dedup();

        // First what the targets mean, then everything in its order.
        let mut meaning = Meaning { locals: self.parameters()?, stack: Vec::new() };
        let mut budget = Budget(MAX_TYPES);
        let mut of_targets = HashMap::with_capacity(targets.len());
        let mut behind_islands = HashMap::new();
        let mut ahead = islands.iter().peekable();
        for (number, frame) in &placed {
            meaning.apply(&frame.kind);
            if targets.binary_search(number).is_ok() {
                of_targets.insert(*number, budget.copy(&meaning)?);
            }
            let at = self.layout.place(*number).label;
            if ahead.next_if(|island| island.0 < at).is_some() {
                while ahead.next_if(|island| island.0 < at).is_some() {}
                behind_islands.insert(*number, budget.copy(&meaning)?);
            }
        }
        let mut result: Vec<(usize, Frame)> = Vec::with_capacity(placed.len() + islands.len());
        let mut ahead = islands.into_iter().peekable();
        let mut island_frame = |(at, target): (usize, usize)| {
            let meaning = of_targets.get(&target).ok_or(Reason::Misplaced("the target of a branch"))?;
            Ok::<_, Reason>((
                at,
                Frame { offset_delta: 0, extended: true, kind: budget.copy(meaning)?.into() },
            ))
        };
        for (number, mut frame) in placed {
            let at = self.layout.place(number).label;
            while let Some(island) = ahead.next_if(|island| island.0 < at) {
                result.push(island_frame(island)?);
            }
            if let Some(meaning) = behind_islands.remove(&number) {
                frame.kind = meaning.into();
            }
            result.push((at, frame));
        }
        for island in ahead {
            result.push(island_frame(island)?);
        }
        Ok(result)
    }

    /// The offsets of `new` instructions change with them.
    fn moved_kind(&self, kind: FrameKind) -> Result<FrameKind, Reason> {
        let moved = |item: VerificationType| match item {
            VerificationType::Uninitialized(pc) => {
                let number =
                    self.body.find(pc.into()).ok_or(Reason::Misplaced("the new of a stack map frame"))?;
                Ok(VerificationType::Uninitialized(offset(self.layout.place(number).at)?))
            }
            other => Ok(other),
        };
        let all =
            |items: Vec<VerificationType>| items.into_iter().map(moved).collect::<Result<Vec<_>, Reason>>();
        Ok(match kind {
            FrameKind::SameStack1(item) => FrameKind::SameStack1(moved(item)?),
            FrameKind::Append(locals) => FrameKind::Append(all(locals)?),
            FrameKind::Full { locals, stack } => FrameKind::Full { locals: all(locals)?, stack: all(stack)? },
            other => other,
        })
    }

    /// What the variables hold when the method is called.
    fn parameters(&mut self) -> Result<Vec<VerificationType>, Reason> {
        let mut locals = Vec::new();
        if !self.candidate.access.is_static() {
            let is_constructor = self.candidate.name == "<init>" && self.class.super_name()?.is_some();
            let object = VerificationType::Object(self.class.this_class());
            locals.push(if is_constructor { VerificationType::UninitializedThis } else { object });
        }
        let descriptor = self.candidate.descriptor.as_bytes();
        let (parameters, _) = parts(descriptor).ok_or(Reason::Misplaced("the end of a descriptor"))?;
        for parameter in parameters {
            locals.push(match parameter {
                b"J" => VerificationType::Long,
                b"D" => VerificationType::Double,
                b"F" => VerificationType::Float,
                [b'L', name @ .., b';'] => VerificationType::Object(self.additions.class(name)),
                [b'[', ..] => VerificationType::Object(self.additions.class(parameter)),
                _ => VerificationType::Integer,
            });
        }
        Ok(locals)
    }
}
