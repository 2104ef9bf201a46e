//! Rewriting of a method: its code as a list of instructions that refer to each other by number, and the inserted
//! code.

use super::additions::{Additions, ProbeCalls};
use super::constructor::{Constructor, InitState, Target, TargetKind};
use super::layout::Layout;
use super::tables::{AttributeWriter, Unwinding};
use super::{Candidate, Delegate, Lines, Reason, emit, lines};
use crate::attribute::LineNumber;
use crate::bytes::{Layout as _, Output};
use crate::code::{Code, Handler, Instruction, MAX_CODE, Opcode};
use crate::pool::Index;
use crate::{ClassFile, Member};

/// An instruction of the original code.
#[derive(Debug)]
pub(super) struct Op<'a> {
    /// The original offset.
    pub(super) pc: usize,
    /// The original size, in bytes.
    pub(super) length: usize,
    pub(super) instruction: Instruction<'a>,
    /// The instructions that it can branch to, by number, in the order of its operands.
    pub(super) targets: Vec<usize>,
}

/// A row of the exception table, with instructions by number.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) start: usize,
    /// The instruction after the last one.
    pub(super) end: usize,
    pub(super) handler: usize,
    pub(super) catch_type: Index,
}

/// The code of a method.
#[derive(Debug)]
pub(super) struct Body<'a> {
    pub(super) ops: Vec<Op<'a>>,
    pub(super) handlers: Vec<Range>,
    /// The original size of the code, in bytes.
    pub(super) length: usize,
}

/// The code that is inserted before the instructions.
#[derive(Debug)]
pub(super) struct Inserts {
    /// The inserted code of each instruction.
    rows: Vec<Insert>,
    /// The bytes of all inserted code.
    code: Vec<u8>,
}

/// The code that is inserted before an instruction. A branch to the instruction skips the entry, but not the line,
/// the exit or the throw.
#[derive(Debug, Default, Clone, Copy)]
struct Insert {
    start: usize,
    /// The size of the entry, and the size of the line, exit or throw after it, in bytes.
    entry: u8,
    leave: u8,
}

impl Inserts {
    /// Returns for each instruction the code of the entry, and the code of the line, exit or throw.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.rows.iter().map(|row| {
            let (entry, leave) = (usize::from(row.entry), usize::from(row.leave));
            let code = self.code.get(row.start..row.start + entry + leave).unwrap_or_default();
            code.split_at_checked(entry).unwrap_or_default()
        })
    }
}

/// A changed `Code` attribute, and the range of the original one in the file, including its length field.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) attribute: Vec<u8>,
    /// The size of the code before and after the change, in bytes.
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) delegate: Option<Delegate>,
}

impl<'a> Body<'a> {
    fn read(code: &Code<'a>) -> Result<Self, Reason> {
        let mut ops: Vec<Op<'a>> = Vec::with_capacity(code.bytes.len() / 2);
        for found in code.instructions() {
            let (pc, instruction) = found?;
            ops.push(Op { pc: pc.into(), length: 0, instruction, targets: Vec::new() });
        }
        let length = code.bytes.len();
        let mut end = length;
        for op in ops.iter_mut().rev() {
            op.length = end - op.pc;
            end = op.pc;
        }
        let mut body = Self { ops, handlers: Vec::with_capacity(code.handlers.len()), length };
        for number in 0..body.ops.len() {
            let Some(op) = body.ops.get(number) else { continue };
            let target = |offset| i64::try_from(op.pc).unwrap_or(0) + i64::from(offset);
            let targets = op.instruction.branches().map(|offset| usize::try_from(target(offset)).ok());
            let targets: Option<Vec<usize>> = targets.map(|pc| body.find(pc?)).collect();
            let targets = targets.ok_or(Reason::Misplaced("the target of a branch"))?;
            if let Some(op) = body.ops.get_mut(number) {
                op.targets = targets;
            }
        }
        for row in &code.handlers {
            let end = usize::from(row.end_pc);
            let range = Range {
                start: body.find(row.start_pc.into()).ok_or(Reason::Misplaced("start_pc"))?,
                end: if end == length {
                    body.ops.len()
                } else {
                    body.find(end).ok_or(Reason::Misplaced("end_pc"))?
                },
                handler: body.find(row.handler_pc.into()).ok_or(Reason::Misplaced("handler_pc"))?,
                catch_type: row.catch_type,
            };
            if range.start >= range.end {
                return Err(Reason::Misplaced("end_pc"));
            }
            body.handlers.push(range);
        }
        Ok(body)
    }

    /// Returns the number of the instruction at an offset.
    pub(super) fn find(&self, pc: usize) -> Option<usize> {
        self.ops.binary_search_by_key(&pc, |op| op.pc).ok()
    }
}

/// Inserts the probes of a method. With `line_probes`, also those of its lines; the probe of the first
/// instruction's line replaces that of the entry.
pub(super) fn rewrite<'a>(
    class: &ClassFile<'a>,
    member: &Member<'a>,
    candidate: &Candidate<'a>,
    id: i32,
    calls: &mut ProbeCalls<'_>,
    line_probes: Option<&mut Lines<'_>>,
    additions: &mut Additions<'_, 'a>,
) -> Result<Patch, Reason> {
    let pool = class.pool();
    let raw = member.attributes.find(pool, "Code")?.ok_or(Reason::NoCode)?;
    let code = Code::parse(&raw)?;
    let is_finalizer = candidate.name == "finalize" && candidate.descriptor == "()V";
    if is_finalizer && code.bytes == [Opcode::RETURN.0] {
        return Err(Reason::EmptyFinalizer);
    }
    let body = Body::read(&code)?;
    let mut lines = code.lines(pool)?;
    lines.sort_by_key(|line| line.start_pc);
    let entered = line_probes.map(|probes| probes.sites(id, lines::entered(&body, &lines))).transpose()?;
    let entered = entered.unwrap_or_default();
    let line_is_entry = entered.first().is_some_and(|(number, _)| *number == 0);

    // The object of java.lang.Object's constructor is initialized from the start. Without handlers, initialization
    // is irrelevant.
    let is_constructor = candidate.name == "<init>" && class.super_name()?.is_some();
    let is_constructor = is_constructor && !calls.probes.only_entry();
    let constructor = is_constructor.then(|| Constructor::explore(&body, pool)).transpose()?;
    let begun = |number: usize| {
        constructor.as_ref().is_none_or(|found| matches!(found.states.get(number), Some(InitState::After)))
    };

    let mut targets =
        constructor.as_ref().map(|found| found.targets(class, &body)).transpose()?.unwrap_or_default();
    let is_unknown = calls.probes.constructing.is_some() && targets.iter().any(Target::is_of_superclass);
    let returns: Vec<usize> = match &constructor {
        Some(found) if is_unknown => found.calls.iter().map(|call| call + 1).collect(),
        _ => Vec::new(),
    };
    if constructor.as_ref().is_some_and(|found| found.calls.is_empty()) {
        return Err(Reason::NeverBegins);
    }
    if returns.last().is_some_and(|last| *last >= body.ops.len()) {
        return Err(Reason::Misplaced("the end of the code"));
    }
    let mut inserts = Inserts { rows: Vec::with_capacity(body.ops.len()), code: Vec::new() };
    let mut words = 0;
    let mut entered = entered.into_iter().peekable();
    for (number, op) in body.ops.iter().enumerate() {
        let opcode = op.instruction.opcode();
        let code = &mut inserts.code;
        let start = code.len();
        // The lengths fit into a byte, because each is a few instructions.
        let length = |code: &Vec<u8>, from: usize| u8::try_from(code.len() - from).unwrap_or(u8::MAX);
        if number == 0 && is_unknown {
            words = words.max(calls.called(id, &mut additions.new, code));
        } else if number == 0 && !line_is_entry {
            words = words.max(calls.entry(id, line_of(&lines, op.pc), &mut additions.new, code));
        }
        if returns.binary_search(&number).is_ok() {
            words = words.max(calls.constructed(id, &mut additions.new, code));
        }
        let entry = length(code, start);
        if let Some((_, line)) = entered.next_if(|(at, _)| *at == number) {
            words = words.max(calls.line(line, &mut additions.new, code));
        }
        if opcode.is_return() {
            words = words.max(calls.exit(id, line_of(&lines, op.pc), &mut additions.new, code));
        } else if opcode == Opcode::ATHROW && (!is_unknown || begun(number)) {
            words = words.max(calls.throwing(id, line_of(&lines, op.pc), &mut additions.new, code));
        }
        let leave = length(code, start + usize::from(entry));
        inserts.rows.push(Insert { start, entry, leave });
    }

    let layout = Layout::compute(&body, &inserts)?;
    let mut output = Output::new();
    emit::code(&body, &inserts, &layout, &mut output);
    let mut handlers: Vec<Handler> = body.handlers.iter().map(|range| layout.handler(range)).collect();
    let mut unwinding = Unwinding::default();
    if calls.probes.unwinding.is_some() {
        let is_before = |number: usize| constructor.as_ref().is_some_and(|found| found.can_unwind(number));
        for (ranges, place, constructs) in [
            (layout.protected(&body, &inserts, begun), &mut unwinding.initialized, false),
            (layout.protected(&body, &inserts, is_before), &mut unwinding.uninitialized, is_unknown),
        ] {
            if ranges.is_empty() {
                continue;
            }
            let handler_pc = offset(output.len())?;
            let mut handler = Vec::with_capacity(16);
            if constructs {
                calls.constructed(id, &mut additions.new, &mut handler);
            }
            calls.unwinding(id, &mut additions.new, &mut handler);
            output.bytes(&handler);
            output.u8(Opcode::ATHROW.0);
            handlers.extend(ranges.into_iter().map(|(start_pc, end_pc)| Handler {
                start_pc,
                end_pc,
                handler_pc,
                catch_type: Index::NONE,
            }));
            *place = Some(handler_pc);
        }
    }
    let after = output.len();
    if after > MAX_CODE {
        return Err(Reason::TooLong(after));
    }
    let max_stack = code.max_stack.checked_add(words).ok_or(Reason::Misplaced("the top of the stack"))?;
    let max_stack = if unwinding.any() { max_stack.max(3) } else { max_stack };

    let mut attribute = Output::new();
    let mut result = Ok(());
    attribute.counted("attribute_length", |attribute| {
        attribute.u16(max_stack);
        attribute.u16(code.max_locals);
        attribute.counted("code_length", |to| to.bytes(&output.finish().unwrap_or_default()));
        handlers.write(attribute);
        let mut writer =
            AttributeWriter { class, candidate, body: &body, layout: &layout, unwinding, additions };
        result = writer.write(&code.attributes, attribute);
    });
    result?;
    let (start, end) = (raw.offset - 4, raw.offset + raw.data.len());
    // Without its types, it is unknown whether a handler catches what the other constructor throws.
    let is_delegate = targets.len() == 1 && !is_unknown && body.handlers.is_empty() && unwinding.any();
    let target =
        if is_delegate { targets.pop().filter(|target| target.kind != TargetKind::Object) } else { None };
    let delegate = target.map(|target| Delegate {
        number: candidate.number,
        class: target.class,
        descriptor: target.descriptor,
    });
    let attribute = attribute.finish()?;
    Ok(Patch { start, end, attribute, before: code.bytes.len(), after, delegate })
}

/// Converts an offset in code.
pub(super) fn offset(pc: usize) -> Result<u16, Reason> {
    u16::try_from(pc).map_err(|_too_long| Reason::TooLong(pc))
}

/// Returns the line of an instruction; 65,535 if unknown.
fn line_of(lines: &[LineNumber], pc: usize) -> u16 {
    let after = lines.partition_point(|line| usize::from(line.start_pc) <= pc);
    after.checked_sub(1).and_then(|last| lines.get(last)).map_or(u16::MAX, |line| line.line_number)
}
