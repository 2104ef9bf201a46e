//! The offsets of instructions in the changed code.
//!
//! Computes offsets and the padding of switches, and extends branches that are now too long: `goto` and `jsr` have
//! wide forms; an `if` branches to an *island*, which is a `goto_w` to the target. An island is placed after an
//! instruction that control does not flow out of, and outside of all ranges of handlers. Its frame is that of its
//! target, so no frame has to be computed.

use std::collections::BTreeMap;

use super::Reason;
use super::method::{Body, Inserts, Op, Range, offset};
use crate::code::{Handler, Instruction, MAX_CODE, Opcode, padding};

/// The size of `goto_w` and `jsr_w`, in bytes.
const WIDE_BRANCH_SIZE: usize = 5;
/// The maximum distance to an island when it is selected, in bytes: less than the range of an `if`, because the
/// code still grows.
const MAX_ISLAND_DISTANCE: usize = 30_000;
/// The maximum number of rounds: each round widens at least one branch, and most widen all.
const MAX_ROUNDS: usize = 1_000;

/// The offsets of an instruction.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct OpOffsets {
    /// The target of branches to the instruction.
    pub(super) label: usize,
    /// The offset of the instruction itself.
    pub(super) at: usize,
    /// The end of the instruction. An entry or an island may be between this and the label of the next instruction.
    pub(super) end: usize,
}

/// An island: the number of the instruction before it, and that of its target.
pub(super) type Island = (usize, usize);

#[derive(Debug)]
pub(super) struct Layout {
    offsets: Vec<OpOffsets>,
    /// Whether each branch was widened.
    pub(super) wide: Vec<bool>,
    /// The offsets of the islands.
    pub(super) islands: BTreeMap<Island, usize>,
    /// The island of each `if` that needs one.
    pub(super) over: BTreeMap<usize, Island>,
    /// The instructions after which an island can be placed; computed on first use.
    sites: Option<Vec<usize>>,
    /// The last island for each target.
    last: BTreeMap<usize, Island>,
}

impl Layout {
    pub(super) fn compute(body: &Body<'_>, inserts: &Inserts) -> Result<Self, Reason> {
        let count = body.ops.len();
        let mut layout = Self {
            offsets: vec![OpOffsets::default(); count],
            wide: vec![false; count],
            islands: BTreeMap::new(),
            over: BTreeMap::new(),
            sites: None,
            last: BTreeMap::new(),
        };
        for _ in 0..MAX_ROUNDS {
            let end = layout.arrange(body, inserts);
            // The code never becomes shorter again.
            if end > MAX_CODE {
                return Err(Reason::TooLong(end));
            }
            if !layout.widen(body)? {
                return Ok(layout);
            }
        }
        Err(Reason::OutOfReach)
    }

    /// Assigns all offsets, and returns the length of the code.
    fn arrange(&mut self, body: &Body<'_>, inserts: &Inserts) -> usize {
        let mut at = 0;
        let rows = body.ops.iter().zip(inserts.iter()).zip(self.offsets.iter_mut().zip(&self.wide));
        for (number, ((op, (entry, leave)), (offsets, wide))) in rows.enumerate() {
            offsets.label = at + entry.len();
            offsets.at = offsets.label + leave.len();
            offsets.end = offsets.at + length(op, offsets.at, *wide);
            at = offsets.end;
            for (_, island) in self.islands.range_mut((number, 0)..=(number, usize::MAX)) {
                *island = at;
                at += WIDE_BRANCH_SIZE;
            }
        }
        at
    }

    /// Extends branches that are too long. Returns whether anything changed.
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
            let current = self.over.get(&number).copied();
            let goal = current.map_or_else(|| self.place(*target).label, |island| self.island(island));
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
            // The current island went out of reach, and would again.
            if current == Some(island) {
                return Err(Reason::OutOfReach);
            }
            self.islands.entry(island).or_default();
            self.last.insert(*target, island);
            self.over.insert(number, island);
        }
        Ok(changed)
    }

    /// Selects the nearest island: an existing one if it is near enough, otherwise a new one.
    fn choose(&mut self, body: &Body<'_>, number: usize, target: usize) -> Option<Island> {
        let from = self.place(number).at;
        let offsets = &self.offsets;
        let is_near = |before: usize| {
            offsets.get(before).is_some_and(|op| op.end.abs_diff(from) <= MAX_ISLAND_DISTANCE)
        };
        if let Some(known) = self.last.get(&target).filter(|(before, _)| is_near(*before)) {
            return Some(*known);
        }
        let sites = self.sites.get_or_insert_with(|| island_sites(body));
        let (before, after) = sites.split_at_checked(sites.partition_point(|site| *site < number))?;
        let nearest = after.first().filter(|site| is_near(**site));
        let nearest = nearest.or_else(|| before.last().filter(|site| is_near(**site)));
        nearest.map(|site| (*site, target))
    }

    pub(super) fn place(&self, number: usize) -> OpOffsets {
        self.offsets.get(number).copied().unwrap_or_default()
    }

    pub(super) fn island(&self, island: Island) -> usize {
        self.islands.get(&island).copied().unwrap_or_default()
    }

    /// Returns the new end of a range that ends before an instruction.
    pub(super) fn end_before(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |last| self.place(last).end)
    }

    pub(super) fn handler(&self, range: &Range) -> Handler {
        // All offsets are within the code, whose length is limited.
        let pc = |at| offset(at).unwrap_or(u16::MAX);
        Handler {
            start_pc: pc(self.place(range.start).label),
            end_pc: pc(self.end_before(range.end)),
            handler_pc: pc(self.place(range.handler).label),
            catch_type: range.catch_type,
        }
    }

    /// Returns the parts of the code that the handlers for every exception cover: everything after the entry,
    /// except exits, islands, and the other parts of a constructor.
    pub(super) fn protected(
        &self,
        body: &Body<'_>,
        inserts: &Inserts,
        is_covered: impl Fn(usize) -> bool,
    ) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for (number, ((op, (_, leave)), place)) in
            body.ops.iter().zip(inserts.iter()).zip(&self.offsets).enumerate()
        {
            let leaves = op.instruction.opcode().is_return() && !leave.is_empty();
            let (Ok(start), Ok(end)) = (offset(place.label), offset(place.end)) else { continue };
            if leaves || !is_covered(number) {
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

/// Returns the instructions after which an island can be placed: control does not flow past them, and no range of a
/// handler continues there. Inside of a range, an island would have the variables of its target, which the handler
/// may not expect.
fn island_sites(body: &Body<'_>) -> Vec<usize> {
    // The number of ranges that start at an instruction, minus the number of those that end before it.
    let mut changes = vec![0i64; body.ops.len() + 1];
    for range in &body.handlers {
        // A range continues after all of its instructions except the last one.
        for (at, change) in [(range.start, 1), (range.end - 1, -1)] {
            if let Some(count) = changes.get_mut(at) {
                *count += change;
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

/// Returns the distance from one offset to another.
pub(super) fn distance(from: usize, to: usize) -> i64 {
    // Both offsets are within the code, or slightly beyond.
    i64::try_from(to).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(0)
}

/// Returns the size of an instruction at its new offset, in bytes.
fn length(op: &Op<'_>, at: usize, wide: bool) -> usize {
    match op.instruction {
        Instruction::TableSwitch { .. } | Instruction::LookupSwitch { .. } => {
            op.length - padding(op.pc) + padding(at)
        }
        Instruction::Branch { .. } if wide => WIDE_BRANCH_SIZE,
        _ => op.length,
    }
}
