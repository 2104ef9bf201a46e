//! The calls of other constructors in a constructor: after such a call, the object is initialized, and handlers may
//! access it.
//!
//! The code is explored from its start, tracking which variables and stack words hold the object, up to each call
//! of a constructor on it, and beyond. No frames are needed, so this works for classes of every version.

use super::Reason;
use super::descriptor::{call_sizes, size_in_words};
use super::method::{Body, Op};
use crate::ClassFile;
use crate::code::{Instruction, Opcode};
use crate::pool::Pool;

/// A limit on the work, which constructors from compilers do not reach.
const MAX_WORK: usize = 1 << 22;
/// The maximum number of copies of the object, which constructors from compilers do not reach.
const MAX_COPIES: usize = 16;

/// The state of the object at an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InitState {
    /// The instruction was not reached.
    Unreached,
    /// The object is not initialized.
    Before(Holders),
    /// Another constructor was called, so the object is initialized.
    After,
}

/// The variables and stack words that hold the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holders {
    locals: Vec<usize>,
    stack: Vec<usize>,
    /// The number of words on the stack.
    depth: usize,
}

/// The calls of other constructors, and the state at each instruction.
#[derive(Debug)]
pub(super) struct Constructor {
    /// The calls, by number of instruction.
    pub(super) calls: Vec<usize>,
    pub(super) states: Vec<InitState>,
}

/// A constructor that is called by another one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) class: Vec<u8>,
    pub(super) descriptor: Vec<u8>,
    pub(super) kind: TargetKind,
}

/// The class of a called constructor.
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
        self.depth = self.depth.checked_sub(words).ok_or(Reason::Misplaced("the bottom of the stack"))?;
        self.stack.retain(|word| *word < self.depth);
        Ok(())
    }

    fn push(&mut self, words: usize) {
        self.depth += words;
    }

    /// Returns whether the word at depth `below` is the object.
    fn at(&self, below: usize) -> bool {
        self.depth.checked_sub(below + 1).is_some_and(|word| self.stack.contains(&word))
    }

    /// Pushes words, the top last; `true` is the object.
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

    /// Keeps the holders that both states have. Fails if the states cannot be joined.
    fn join(&mut self, other: &Self) -> Result<bool, Reason> {
        if self.depth != other.depth {
            return Err(Reason::Misplaced("the top of the stack"));
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
        let start = InitState::Before(Holders { locals: vec![0], stack: Vec::new(), depth: 0 });
        let mut walk = Exploration {
            states: vec![InitState::Unreached; body.ops.len()],
            pending: Vec::new(),
            calls: Vec::new(),
        };
        walk.reach(0, &start)?;
        while let Some(number) = walk.pending.pop() {
            let (Some(op), Some(state)) = (body.ops.get(number), walk.states.get(number)) else { continue };
            let state = state.clone();
            for handler in
                body.handlers.iter().filter(|handler| (handler.start..handler.end).contains(&number))
            {
                let caught = match &state {
                    InitState::Before(holders) => InitState::Before(Holders {
                        locals: holders.locals.clone(),
                        stack: Vec::new(),
                        depth: 1,
                    }),
                    other => other.clone(),
                };
                walk.reach(handler.handler, &caught)?;
            }
            let next = match state {
                InitState::Before(holders) => step(op, holders, pool)?,
                other => other,
            };
            if next == InitState::After && matches!(walk.states.get(number), Some(InitState::Before(_))) {
                walk.calls.push(number);
            }
            let is_jsr = matches!(op.instruction.opcode(), Opcode::JSR | Opcode::JSR_W);
            for target in &op.targets {
                let mut at_target = next.clone();
                if let (true, InitState::Before(holders)) = (is_jsr, &mut at_target) {
                    holders.push(1);
                }
                walk.reach(*target, &at_target)?;
            }
            // After a jsr, the subroutine has returned, which leaves the stack unchanged.
            if !op.instruction.opcode().ends_block() {
                walk.reach(number + 1, &next)?;
            }
        }
        walk.calls.sort_unstable();
        walk.calls.dedup();
        Ok(Self { calls: walk.calls, states: walk.states })
    }

    /// Returns the called constructors, without duplicates.
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

    /// Returns whether a handler that accesses the object in variable 0 only may cover an instruction: the
    /// instruction runs before the object is initialized, and does not initialize it.
    pub(super) fn can_unwind(&self, number: usize) -> bool {
        let has_object = |holders: &Holders| holders.locals.contains(&0);
        matches!(self.states.get(number), Some(InitState::Before(holders)) if has_object(holders))
            && self.calls.binary_search(&number).is_err()
    }
}

struct Exploration {
    states: Vec<InitState>,
    pending: Vec<usize>,
    calls: Vec<usize>,
}

impl Exploration {
    fn reach(&mut self, number: usize, with: &InitState) -> Result<(), Reason> {
        let known = self.states.get_mut(number).ok_or(Reason::Misplaced("the end of the code"))?;
        let is_new = match (&mut *known, with) {
            (InitState::Unreached, _) => {
                *known = with.clone();
                true
            }
            (InitState::Before(known), InitState::Before(with)) => known.join(with)?,
            (InitState::After, InitState::After) => false,
            _ => return Err(Reason::Shared),
        };
        if is_new {
            self.pending.push(number);
        }
        Ok(())
    }
}

/// Applies an instruction to the state of the object.
fn step(op: &Op<'_>, mut held: Holders, pool: &Pool<'_>) -> Result<InitState, Reason> {
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
        // A checked cast leaves the object on the stack.
        Instruction::Constant { opcode: Opcode::CHECKCAST, .. } if held.at(0) => {}
        Instruction::Constant { index, .. }
            if (Opcode::GETSTATIC..=Opcode::INVOKESTATIC).contains(&opcode) =>
        {
            let member = pool.member(index, "index")?;
            let descriptor = member.descriptor.as_bytes();
            let has_receiver =
                !matches!(opcode, Opcode::GETSTATIC | Opcode::PUTSTATIC | Opcode::INVOKESTATIC);
            let (taken, given) = match opcode {
                Opcode::GETSTATIC | Opcode::GETFIELD => (0, size_in_words(descriptor)),
                Opcode::PUTSTATIC | Opcode::PUTFIELD => (size_in_words(descriptor), 0),
                _ => call_sizes(descriptor).ok_or(Reason::Misplaced("the end of a descriptor"))?,
            };
            let on_object = has_receiver && held.at(taken);
            held.pop(taken + usize::from(has_receiver))?;
            if opcode == Opcode::INVOKESPECIAL && on_object && member.name == "<init>" {
                return Ok(InitState::After);
            }
            held.push(given);
        }
        Instruction::InvokeInterface { index, .. } => {
            let (taken, given) = call_sizes(pool.member(index, "index")?.descriptor.as_bytes())
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
                call_sizes(descriptor.as_bytes()).ok_or(Reason::Misplaced("the end of a descriptor"))?;
            held.pop(taken)?;
            held.push(given);
        }
        Instruction::MultiNewArray { dimensions, .. } => {
            held.pop(dimensions.into())?;
            held.push(1);
        }
        // The effect applies only at the branch target.
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
    Ok(InitState::Before(held))
}

fn store(held: &mut Holders, opcode: Opcode, local: usize) -> Result<(), Reason> {
    let words = if matches!(opcode, Opcode::LSTORE | Opcode::DSTORE) { 2 } else { 1 };
    let value = opcode == Opcode::ASTORE && held.at(0);
    held.pop(words)?;
    held.store(local, words, value);
    Ok(())
}

/// Applies an instruction that duplicates or swaps words.
fn shuffle(held: &mut Holders, opcode: Opcode) -> Result<(), Reason> {
    // The top four words, from the top down.
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
