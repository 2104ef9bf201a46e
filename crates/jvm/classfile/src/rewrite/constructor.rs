//! Where a constructor has called another one: from there on, its object is initialized, and a handler may have it.
//!
//! Owns: following the code from its start, with the places that hold the object, up to each call of a constructor on it;
//! and what can be reached behind those calls. Needs no frames, so it works for classes of every version.

use super::Reason;
use super::descriptor::{call_words, words};
use super::method::{Body, Op};
use crate::ClassFile;
use crate::code::{Instruction, Opcode};
use crate::pool::Pool;

/// More work than any compiler's constructors make.
const MAX_WORK: usize = 1 << 22;
/// More copies of the object than any compiler makes.
const MAX_COPIES: usize = 16;

/// What is known at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It was never reached.
    Unreached,
    /// The object is not initialized.
    Before(Holders),
    /// Another constructor was called.
    After,
}

/// Who holds the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holders {
    locals: Vec<usize>,
    stack: Vec<usize>,
    /// Words on the stack.
    depth: usize,
}

/// The calls of other constructors, and the state at each instruction.
#[derive(Debug)]
pub(super) struct Constructor {
    /// The instructions, by number.
    pub(super) calls: Vec<usize>,
    pub(super) states: Vec<State>,
}

/// A constructor that another one calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) class: Vec<u8>,
    pub(super) descriptor: Vec<u8>,
    pub(super) kind: TargetKind,
}

/// Whose constructor it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// `this(…)`.
    Own,
    /// `super(…)` of a class that extends `java/lang/Object`, which throws nothing.
    Object,
    /// `super(…)` of any other class.
    Superclass,
}

impl Target {
    pub(super) fn is_of_superclass(&self) -> bool {
        self.kind == TargetKind::Superclass
    }
}

impl Holders {
    fn pop(&mut self, words: usize) -> Result<(), Reason> {
        self.depth = self.depth.checked_sub(words).ok_or(Reason::Misplaced("the stack's bottom"))?;
        self.stack.retain(|place| *place < self.depth);
        Ok(())
    }

    fn push(&mut self, words: usize) {
        self.depth += words;
    }

    /// Whether the word `below` the top is the object.
    fn at(&self, below: usize) -> bool {
        self.depth.checked_sub(below + 1).is_some_and(|place| self.stack.contains(&place))
    }

    /// Puts words there that are known one by one, the top last.
    fn push_each(&mut self, values: &[bool]) {
        for value in values {
            if *value {
                self.stack.push(self.depth);
            }
            self.depth += 1;
        }
    }

    fn store(&mut self, local: usize, words: usize, value: bool) {
        self.locals.retain(|place| !(local..local + words).contains(place));
        if value {
            self.locals.push(local);
        }
    }

    /// What both have. An error if they can't be joined.
    fn join(&mut self, other: &Self) -> Result<bool, Reason> {
        if self.depth != other.depth {
            return Err(Reason::Misplaced("the stack's top"));
        }
        let before = self.locals.len() + self.stack.len();
        self.locals.retain(|place| other.locals.contains(place));
        self.stack.retain(|place| other.stack.contains(place));
        Ok(before != self.locals.len() + self.stack.len())
    }
}

impl Constructor {
    pub(super) fn explore(body: &Body<'_>, pool: &Pool<'_>) -> Result<Self, Reason> {
        if body.ops.len().saturating_mul(body.handlers.len()) > MAX_WORK {
            return Err(Reason::TooComplex);
        }
        let start = State::Before(Holders { locals: vec![0], stack: Vec::new(), depth: 0 });
        let mut walk =
            Walk { states: vec![State::Unreached; body.ops.len()], waiting: Vec::new(), calls: Vec::new() };
        walk.reach(0, &start)?;
        while let Some(number) = walk.waiting.pop() {
            let (Some(op), Some(state)) = (body.ops.get(number), walk.states.get(number)) else { continue };
            let state = state.clone();
            for handler in
                body.handlers.iter().filter(|handler| (handler.start..handler.end).contains(&number))
            {
                let caught = match &state {
                    State::Before(holders) => {
                        State::Before(Holders { locals: holders.locals.clone(), stack: Vec::new(), depth: 1 })
                    }
                    other => other.clone(),
                };
                walk.reach(handler.handler, &caught)?;
            }
            let next = match state {
                State::Before(holders) => step(op, holders, pool)?,
                other => other,
            };
            if next == State::After && matches!(walk.states.get(number), Some(State::Before(_))) {
                walk.calls.push(number);
            }
            let is_jsr = matches!(op.instruction.opcode(), Opcode::JSR | Opcode::JSR_W);
            for target in &op.targets {
                let mut there = next.clone();
                if let (true, State::Before(holders)) = (is_jsr, &mut there) {
                    holders.push(1);
                }
                walk.reach(*target, &there)?;
            }
            // Behind a jsr the subroutine goes on, which leaves the stack as it was.
            if !op.instruction.opcode().ends_block() {
                walk.reach(number + 1, &next)?;
            }
        }
        walk.calls.sort_unstable();
        walk.calls.dedup();
        Ok(Self { calls: walk.calls, states: walk.states })
    }

    /// The constructors that it calls, each of them once.
    pub(super) fn targets(&self, class: &ClassFile<'_>, body: &Body<'_>) -> Result<Vec<Target>, Reason> {
        let mut targets = Vec::new();
        for op in self.calls.iter().filter_map(|call| body.ops.get(*call)) {
            let Instruction::Constant { index, .. } = op.instruction else { continue };
            let member = class.pool().member(index, "index")?;
            let kind = if member.class == class.name()? {
                TargetKind::Own
            } else if member.class == "java/lang/Object" {
                TargetKind::Object
            } else {
                TargetKind::Superclass
            };
            let (class, descriptor) =
                (member.class.as_bytes().to_vec(), member.descriptor.as_bytes().to_vec());
            let target = Target { class, descriptor, kind };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    /// Whether a handler that knows nothing but the object in its own variable can be of an instruction: it runs before the
    /// object is initialized, and does not do so itself.
    pub(super) fn can_unwind(&self, number: usize) -> bool {
        let has_object = |holders: &Holders| holders.locals.contains(&0);
        matches!(self.states.get(number), Some(State::Before(holders)) if has_object(holders))
            && self.calls.binary_search(&number).is_err()
    }
}

struct Walk {
    states: Vec<State>,
    waiting: Vec<usize>,
    calls: Vec<usize>,
}

impl Walk {
    fn reach(&mut self, number: usize, with: &State) -> Result<(), Reason> {
        let known = self.states.get_mut(number).ok_or(Reason::Misplaced("the end of the code"))?;
        let is_new = match (&mut *known, with) {
            (State::Unreached, _) => {
                *known = with.clone();
                true
            }
            (State::Before(known), State::Before(with)) => known.join(with)?,
            (State::After, State::After) => false,
            _ => return Err(Reason::Shared),
        };
        if is_new {
            self.waiting.push(number);
        }
        Ok(())
    }
}

/// What an instruction does to those who hold the object.
fn step(op: &Op<'_>, mut held: Holders, pool: &Pool<'_>) -> Result<State, Reason> {
    let opcode = op.instruction.opcode();
    match op.instruction {
        Instruction::Local { opcode: Opcode::ALOAD, index, .. } => {
            let value = held.locals.contains(&usize::from(index));
            held.push_each(&[value]);
        }
        Instruction::Simple(Opcode::ALOAD_0 | Opcode::ALOAD_1 | Opcode::ALOAD_2 | Opcode::ALOAD_3) => {
            let value = held.locals.contains(&usize::from(opcode.0 - Opcode::ALOAD_0.0));
            held.push_each(&[value]);
        }
        Instruction::Local { index, .. } if (Opcode::ISTORE..=Opcode::ASTORE).contains(&opcode) => {
            store(&mut held, opcode, index.into())?;
        }
        Instruction::Simple(_) if (Opcode::ISTORE_0..=Opcode::ASTORE_3).contains(&opcode) => {
            let (kind, index) = ((opcode.0 - Opcode::ISTORE_0.0) / 4, (opcode.0 - Opcode::ISTORE_0.0) % 4);
            store(&mut held, Opcode(Opcode::ISTORE.0 + kind), index.into())?;
        }
        Instruction::Simple(_) if (Opcode::DUP..=Opcode::SWAP).contains(&opcode) => {
            shuffle(&mut held, opcode)?;
        }
        // The check leaves the object that it checks.
        Instruction::Constant { opcode: Opcode::CHECKCAST, .. } if held.at(0) => {}
        Instruction::Constant { index, .. }
            if (Opcode::GETSTATIC..=Opcode::INVOKESTATIC).contains(&opcode) =>
        {
            let member = pool.member(index, "index")?;
            let descriptor = member.descriptor.as_bytes();
            let has_receiver =
                !matches!(opcode, Opcode::GETSTATIC | Opcode::PUTSTATIC | Opcode::INVOKESTATIC);
            let (taken, given) = match opcode {
                Opcode::GETSTATIC | Opcode::GETFIELD => (0, words(descriptor)),
                Opcode::PUTSTATIC | Opcode::PUTFIELD => (words(descriptor), 0),
                _ => call_words(descriptor).ok_or(Reason::Misplaced("the end of a descriptor"))?,
            };
            let on_object = has_receiver && held.at(taken);
            held.pop(taken + usize::from(has_receiver))?;
            if opcode == Opcode::INVOKESPECIAL && on_object && member.name == "<init>" {
                return Ok(State::After);
            }
            held.push(given);
        }
        Instruction::InvokeInterface { index, .. } => {
            let (taken, given) = call_words(pool.member(index, "index")?.descriptor.as_bytes())
                .ok_or(Reason::Misplaced("the end of a descriptor"))?;
            held.pop(taken + 1)?;
            held.push(given);
        }
        Instruction::InvokeDynamic { index, .. } => {
            let crate::Constant::InvokeDynamic { name_and_type, .. } = pool.get(index, "index")? else {
                return Err(Reason::Misplaced("a call site"));
            };
            let (_, descriptor) = pool.name_and_type(name_and_type, "index")?;
            let (taken, given) =
                call_words(descriptor.as_bytes()).ok_or(Reason::Misplaced("the end of a descriptor"))?;
            held.pop(taken)?;
            held.push(given);
        }
        Instruction::MultiNewArray { dimensions, .. } => {
            held.pop(dimensions.into())?;
            held.push(1);
        }
        // Its effect is behind the branch only.
        Instruction::Branch { opcode: Opcode::JSR | Opcode::JSR_W, .. } => {}
        _ => {
            let (taken, given) = opcode.words().ok_or(Reason::Misplaced("an operand"))?;
            held.pop(taken.into())?;
            held.push(given.into());
        }
    }
    if held.locals.len() + held.stack.len() > MAX_COPIES || held.depth > usize::from(u16::MAX) {
        return Err(Reason::TooComplex);
    }
    Ok(State::Before(held))
}

fn store(held: &mut Holders, opcode: Opcode, local: usize) -> Result<(), Reason> {
    let words = if matches!(opcode, Opcode::LSTORE | Opcode::DSTORE) { 2 } else { 1 };
    let value = opcode == Opcode::ASTORE && held.at(0);
    held.pop(words)?;
    held.store(local, words, value);
    Ok(())
}

/// The instructions that repeat and swap words.
fn shuffle(held: &mut Holders, opcode: Opcode) -> Result<(), Reason> {
    // The words from the top down.
    let [a, b, c, d] = [held.at(0), held.at(1), held.at(2), held.at(3)];
    let (taken, given): (usize, &[bool]) = match opcode {
        Opcode::DUP => (1, &[a, a]),
        Opcode::DUP_X1 => (2, &[a, b, a]),
        Opcode::DUP_X2 => (3, &[a, c, b, a]),
        Opcode::DUP2 => (2, &[b, a, b, a]),
        Opcode::DUP2_X1 => (3, &[b, a, c, b, a]),
        Opcode::DUP2_X2 => (4, &[b, a, d, c, b, a]),
        _ => (2, &[a, b]),
    };
    held.pop(taken)?;
    held.push_each(given);
    Ok(())
}
