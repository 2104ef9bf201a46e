//! The instructions at which the code of a line is entered.
//!
//! These instructions get a probe, so that a line is reported as soon as one of its instructions runs. An
//! instruction needs no probe if it can only be reached from instructions of the same line, sequentially or by a
//! branch. An exception handler always needs one, because any instruction of its range may lead there.

use super::method::Body;
use crate::attribute::LineNumber;
use crate::code::Opcode;

/// Returns the instructions at which a line is entered, by number, with the line. `table` is sorted by offset.
pub(super) fn entered(body: &Body<'_>, table: &[LineNumber]) -> Vec<(usize, u16)> {
    let lines = lines(body, table);
    let mut entered = vec![false; body.ops.len()];
    let mut enter = |number: usize| {
        if let Some(entered) = entered.get_mut(number) {
            *entered = true;
        }
    };
    enter(0);
    for (number, op) in body.ops.iter().enumerate() {
        let line = lines.get(number);
        let opcode = op.instruction.opcode();
        // The instruction after a jsr is reached from the end of the subroutine.
        let is_jsr = matches!(opcode, Opcode::JSR | Opcode::JSR_W);
        if is_jsr || (!opcode.ends_block() && lines.get(number + 1) != line) {
            enter(number + 1);
        }
        for target in op.targets.iter().filter(|target| lines.get(**target) != line) {
            enter(*target);
        }
    }
    for range in &body.handlers {
        enter(range.handler);
    }
    let rows = entered.iter().zip(lines).enumerate().filter(|(_, (entered, _))| **entered);
    rows.filter_map(|(number, (_, line))| Some((number, line?))).collect()
}

/// Returns the line of each instruction. Of several rows for one offset the last one counts; 0 is not a line.
fn lines(body: &Body<'_>, table: &[LineNumber]) -> Vec<Option<u16>> {
    let mut rows = table.iter().peekable();
    let mut line = None;
    let of = body.ops.iter().map(|op| {
        while let Some(row) = rows.next_if(|row| usize::from(row.start_pc) <= op.pc) {
            line = (row.line_number > 0).then_some(row.line_number);
        }
        line
    });
    of.collect()
}
