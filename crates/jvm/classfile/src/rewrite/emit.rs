//! Encoding of the instructions at their new offsets.

use super::layout::{Layout, distance};
use super::method::{Body, Inserts, Op};
use crate::bytes::Output;
use crate::code::{Instruction, Opcode, padding};

/// Writes the code without the handlers that catch every exception.
pub(super) fn code(body: &Body<'_>, inserts: &Inserts, layout: &Layout, output: &mut Output) {
    for (number, (op, (entry, leave))) in body.ops.iter().zip(inserts.iter()).enumerate() {
        output.bytes(entry);
        output.bytes(leave);
        instruction(op, number, layout, output);
        if layout.islands.is_empty() {
            continue;
        }
        for (&(_, target), &at) in layout.islands.range((number, 0)..=(number, usize::MAX)) {
            output.u8(Opcode::GOTO_W.0);
            output.i32(relative(at, layout.place(target).label));
        }
    }
}

fn instruction(op: &Op<'_>, number: usize, layout: &Layout, output: &mut Output) {
    let at = layout.place(number).at;
    let mut targets = op.targets.iter().map(|target| relative(at, layout.place(*target).label));
    match op.instruction {
        Instruction::Branch { opcode, .. } => {
            let opcode = match (layout.wide.get(number), opcode) {
                (Some(true), Opcode::GOTO) => Opcode::GOTO_W,
                (Some(true), Opcode::JSR) => Opcode::JSR_W,
                _ => opcode,
            };
            let island = layout.over.get(&number).map(|island| relative(at, layout.island(*island)));
            let offset = island.or_else(|| targets.next()).unwrap_or_default();
            Instruction::Branch { opcode, offset }.write(output);
        }
        Instruction::TableSwitch { low, offsets, .. } => {
            output.u8(Opcode::TABLESWITCH.0);
            output.bytes([0; 3].get(..padding(at)).unwrap_or_default());
            output.i32(targets.next().unwrap_or_default());
            output.i32(low);
            let count = i32::try_from(offsets.len()).unwrap_or(i32::MAX);
            output.i32(low.wrapping_add(count - 1));
            targets.for_each(|target| output.i32(target));
        }
        Instruction::LookupSwitch { pairs, .. } => {
            output.u8(Opcode::LOOKUPSWITCH.0);
            output.bytes([0; 3].get(..padding(at)).unwrap_or_default());
            output.i32(targets.next().unwrap_or_default());
            output.u32(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
            for ([a, b, c, d, ..], target) in pairs.iter().zip(targets) {
                output.bytes(&[*a, *b, *c, *d]);
                output.i32(target);
            }
        }
        other => other.write(output),
    }
}

fn relative(from: usize, to: usize) -> i32 {
    i32::try_from(distance(from, to)).unwrap_or_default()
}
