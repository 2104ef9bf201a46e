//! Where everything is in the changed code.
//!
//! Owns: offsets, the padding of switches, and what becomes of branches that are too far now: `goto` and `jsr` have wide
//! forms; an `if` goes to an *island*, a `goto_w` to its target. An island is behind an instruction that nothing comes behind
//! (so nobody runs into it) and inside no handler's range, and its frame is the one of its target: no frame has to be
//! computed.

use std::collections::BTreeMap;

use super::Reason;
use super::method::{Body, Inserts, Op, Range, offset};
use crate::code::{Handler, Instruction, MAX_CODE, Opcode, padding};

/// Bytes of `goto_w` and `jsr_w`.
const WIDE: usize = 5;
/// How far an island may be when it is chosen: less than an `if` reaches, because the code still grows.
const NEAR: usize = 30_000;
/// More rounds than any code needs: each makes at least one branch wide, and most make all.
const MAX_ROUNDS: usize = 1_000;

/// The place of an instruction.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Place {
    /// Where a branch to it goes.
    pub(super) label: usize,
    /// Where it is itself.
    pub(super) at: usize,
    /// Where it ends. What is between this and the next one's label is an entry or an island.
    pub(super) end: usize,
}

/// An island, by the number of the instruction that it is behind, and that of its target.
pub(super) type Island = (usize, usize);

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
    /// Branches that are wide now, by number.
    pub(super) wide: Vec<bool>,
    /// Where the islands are.
    pub(super) islands: BTreeMap<Island, usize>,
    /// The island of each `if` that has one.
    pub(super) over: BTreeMap<usize, Island>,
    /// The instructions that an island can be behind, once one is needed.
    free: Option<Vec<usize>>,
    /// The island that was made last for each target.
    last: BTreeMap<usize, Island>,
}

impl Layout {
    pub(super) fn compute(body: &Body<'_>, inserts: &Inserts) -> Result<Self, Reason> {
        let count = body.ops.len();
        let mut layout = Self {
            places: vec![Place::default(); count],
            wide: vec![false; count],
            islands: BTreeMap::new(),
            over: BTreeMap::new(),
            free: None,
            last: BTreeMap::new(),
        };
        for _ in 0..MAX_ROUNDS {
            let end = layout.arrange(body, inserts);
            // What is too long now does not get shorter.
            if end > MAX_CODE {
                return Err(Reason::TooLong(end));
            }
            if !layout.widen(body)? {
                return Ok(layout);
            }
        }
        Err(Reason::OutOfReach)
    }

    /// Gives everything its offset, and says where the code ends.
    fn arrange(&mut self, body: &Body<'_>, inserts: &Inserts) -> usize {
        let mut at = 0;
        let rows = body.ops.iter().zip(inserts.iter()).zip(self.places.iter_mut().zip(&self.wide));
        for (number, ((op, (entry, leave)), (place, wide))) in rows.enumerate() {
            place.label = at + entry.len();
            place.at = place.label + leave.len();
            place.end = place.at + length(op, place.at, *wide);
            at = place.end;
            for (_, island) in self.islands.range_mut((number, 0)..=(number, usize::MAX)) {
                *island = at;
                at += WIDE;
            }
        }
        at
    }

    /// Whether a branch that goes too far was changed.
    fn widen(&mut self, body: &Body<'_>) -> Result<bool, Reason> {
        let mut changed = false;
        for (number, op) in body.ops.iter().enumerate() {
            let (Instruction::Branch { opcode, .. }, [target]) = (op.instruction, op.targets.as_slice())
            else {
                continue;
            };
            if matches!(opcode, Opcode::GOTO_W | Opcode::JSR_W)
                || self.wide.get(number).is_none_or(|wide| *wide)
            {
                continue;
            }
            let over = self.over.get(&number).copied();
            let goal = over.map_or_else(|| self.place(*target).label, |island| self.island(island));
            if i16::try_from(distance(self.place(number).at, goal)).is_ok() {
                continue;
            }
            changed = true;
            if matches!(opcode, Opcode::GOTO | Opcode::JSR) {
                if let Some(wide) = self.wide.get_mut(number) {
                    *wide = true;
                }
                continue;
            }
            let island = self.choose(body, number, *target).ok_or(Reason::OutOfReach)?;
            // The one that it had went out of reach, and would again.
            if over == Some(island) {
                return Err(Reason::OutOfReach);
            }
            self.islands.entry(island).or_default();
            self.last.insert(*target, island);
            self.over.insert(number, island);
        }
        Ok(changed)
    }

    /// The nearest place for an island: one that is there already, if it is near enough.
    fn choose(&mut self, body: &Body<'_>, number: usize, target: usize) -> Option<Island> {
        let from = self.place(number).at;
        let places = &self.places;
        let is_near =
            |behind: usize| places.get(behind).is_some_and(|place| place.end.abs_diff(from) <= NEAR);
        if let Some(known) = self.last.get(&target).filter(|(behind, _)| is_near(*behind)) {
            return Some(*known);
        }
        let free = self.free.get_or_insert_with(|| free(body));
        let (before, after) = free.split_at_checked(free.partition_point(|behind| *behind < number))?;
        let nearest = after.first().filter(|behind| is_near(**behind));
        let nearest = nearest.or_else(|| before.last().filter(|behind| is_near(**behind)));
        nearest.map(|behind| (*behind, target))
    }

    pub(super) fn place(&self, number: usize) -> Place {
        self.places.get(number).copied().unwrap_or_default()
    }

    pub(super) fn island(&self, island: Island) -> usize {
        self.islands.get(&island).copied().unwrap_or_default()
    }

    /// Where the range that ends before an instruction ends now.
    pub(super) fn end_before(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |last| self.place(last).end)
    }

    pub(super) fn handler(&self, range: &Range) -> Handler {
        // None of them is beyond the end of the code, which is short enough.
        let pc = |at| offset(at).unwrap_or(u16::MAX);
        Handler {
            start_pc: pc(self.place(range.start).label),
            end_pc: pc(self.end_before(range.end)),
            handler_pc: pc(self.place(range.handler).label),
            catch_type: range.catch_type,
        }
    }

    /// The parts of the code that leave through the handler for everything: all that runs after the entry, but for exits,
    /// islands, and the rest of a constructor.
    pub(super) fn protected(
        &self,
        body: &Body<'_>,
        inserts: &Inserts,
        begun: impl Fn(usize) -> bool,
    ) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for (number, ((op, (_, leave)), place)) in
            body.ops.iter().zip(inserts.iter()).zip(&self.places).enumerate()
        {
            let leaves = op.instruction.opcode().is_return() && !leave.is_empty();
            let (Ok(start), Ok(end)) = (offset(place.label), offset(place.end)) else { continue };
            if leaves || !begun(number) {
                continue;
            }
            match ranges.last_mut().filter(|last| last.1 == start) {
                Some(last) => last.1 = end,
                None => ranges.push((start, end)),
            }
        }
        ranges
    }
}

/// The instructions that an island can be behind: nothing runs into what follows them, and no range of a handler goes on
/// there. Inside a range, an island would have the variables of its target, which the handler may not expect.
fn free(body: &Body<'_>) -> Vec<usize> {
    // How many ranges begin at an instruction, less those that end before it.
    let mut changes = vec![0i64; body.ops.len() + 1];
    for range in &body.handlers {
        // A range goes on behind all of its instructions but the last.
        for (at, change) in [(range.start, 1), (range.end - 1, -1)] {
            if let Some(place) = changes.get_mut(at) {
                *place += change;
            }
        }
    }
    let mut inside = 0;
    let rows = body.ops.iter().zip(changes).enumerate().filter_map(|(number, (op, change))| {
        inside += change;
        (inside == 0 && op.instruction.opcode().ends_block()).then_some(number)
    });
    rows.collect()
}

/// From one offset to another.
pub(super) fn distance(from: usize, to: usize) -> i64 {
    // Both are offsets in code, or a little more.
    i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(0)
}

/// Bytes of an instruction at its new place.
fn length(op: &Op<'_>, at: usize, wide: bool) -> usize {
    match op.instruction {
        Instruction::TableSwitch { .. } | Instruction::LookupSwitch { .. } => {
            op.length - padding(op.pc) + padding(at)
        }
        Instruction::Branch { .. } if wide => WIDE,
        _ => op.length,
    }
}
