//! The stack map of a changed method.
//!
//! Moves the frames to their new offsets, and adds frames for islands and for the handlers that catch every
//! exception. A frame is encoded as a difference to the previous one. After an added frame, the next one must be
//! complete, so the full states are computed, but only for the few methods with islands.

use std::collections::HashMap;

use super::Reason;
use super::descriptor::split_method;
use super::method::offset;
use super::tables::AttributeWriter;
use crate::code::{Frame, FrameKind, VerificationType};

/// The maximum number of types in complete frames, which methods from compilers do not reach.
const MAX_TYPES: usize = 1 << 20;

/// The complete state that a frame describes.
#[derive(Debug, Clone, Default)]
struct FrameState {
    locals: Vec<VerificationType>,
    stack: Vec<VerificationType>,
}

impl FrameState {
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

/// The number of types that may still be copied.
struct Budget(usize);

impl Budget {
    fn copy(&mut self, state: &FrameState) -> Result<FrameState, Reason> {
        let types = state.locals.len() + state.stack.len();
        self.0 = self.0.checked_sub(types).ok_or(Reason::TooComplex)?;
        Ok(state.clone())
    }
}

impl From<FrameState> for FrameKind {
    fn from(state: FrameState) -> Self {
        Self::Full { locals: state.locals, stack: state.stack }
    }
}

impl AttributeWriter<'_, '_, '_> {
    /// Returns the frames at their new offsets, including added ones.
    pub(super) fn frames(&mut self, frames: Vec<Frame>) -> Result<Vec<Frame>, Reason> {
        // The frames, each with the number of its instruction.
        let mut placed = Vec::with_capacity(frames.len());
        let mut next = 0;
        for frame in frames {
            let pc = next + usize::from(frame.offset_delta);
            next = pc + 1;
            let number = self.body.find(pc).ok_or(Reason::Misplaced("a stack map frame"))?;
            placed.push((number, Frame { kind: self.moved_kind(frame.kind)?, ..frame }));
        }
        // A class without frames needs none for islands: only old versions have branches without frames.
        let mut new = if placed.is_empty() || self.layout.islands.is_empty() {
            placed.into_iter().map(|(number, frame)| (self.layout.place(number).label, frame)).collect()
        } else {
            self.with_islands(placed)?
        };
        // The frame has no variables, which is compatible with any state, except for the object of a constructor,
        // which must be present until it is initialized.
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

    /// Returns the frames including those of islands, each with its offset, in order.
    fn with_islands(&mut self, placed: Vec<(usize, Frame)>) -> Result<Vec<(usize, Frame)>, Reason> {
        let mut islands: Vec<(usize, usize)> =
            self.layout.islands.iter().map(|(island, at)| (*at, island.1)).collect();
        islands.sort_unstable();
        let mut targets: Vec<usize> = islands.iter().map(|(_, target)| *target).collect();
        targets.sort_unstable();
        targets.dedup();

        // First compute the states of the targets, then merge everything in order.
        let mut state = FrameState { locals: self.parameters()?, stack: Vec::new() };
        let mut budget = Budget(MAX_TYPES);
        let mut of_targets = HashMap::with_capacity(targets.len());
        let mut after_islands = HashMap::new();
        let mut ahead = islands.iter().peekable();
        for (number, frame) in &placed {
            state.apply(&frame.kind);
            if targets.binary_search(number).is_ok() {
                of_targets.insert(*number, budget.copy(&state)?);
            }
            let at = self.layout.place(*number).label;
            if ahead.next_if(|island| island.0 < at).is_some() {
                while ahead.next_if(|island| island.0 < at).is_some() {}
                after_islands.insert(*number, budget.copy(&state)?);
            }
        }
        let mut result: Vec<(usize, Frame)> = Vec::with_capacity(placed.len() + islands.len());
        let mut ahead = islands.into_iter().peekable();
        let mut island_frame = |(at, target): (usize, usize)| {
            let state = of_targets.get(&target).ok_or(Reason::Misplaced("the target of a branch"))?;
            Ok::<_, Reason>((at, Frame { offset_delta: 0, extended: true, kind: budget.copy(state)?.into() }))
        };
        for (number, mut frame) in placed {
            let at = self.layout.place(number).label;
            while let Some(island) = ahead.next_if(|island| island.0 < at) {
                result.push(island_frame(island)?);
            }
            if let Some(state) = after_islands.remove(&number) {
                frame.kind = state.into();
            }
            result.push((at, frame));
        }
        for island in ahead {
            result.push(island_frame(island)?);
        }
        Ok(result)
    }

    /// Updates the offsets of `new` instructions in a frame.
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

    /// Returns the types of the local variables at the start of the method.
    fn parameters(&mut self) -> Result<Vec<VerificationType>, Reason> {
        let mut locals = Vec::new();
        if !self.candidate.access.is_static() {
            let is_constructor = self.candidate.name == "<init>" && self.class.super_name()?.is_some();
            let object = VerificationType::Object(self.class.this_class());
            locals.push(if is_constructor { VerificationType::UninitializedThis } else { object });
        }
        let descriptor = self.candidate.descriptor.as_bytes();
        let (parameters, _) = split_method(descriptor).ok_or(Reason::Misplaced("the end of a descriptor"))?;
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
