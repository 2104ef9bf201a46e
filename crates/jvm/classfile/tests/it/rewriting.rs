//! Properties of every rewritten class, for any input.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use runtap_classfile::attribute::{Attribute, Attributes};
use runtap_classfile::code::{Code, Instruction, Opcode};
use runtap_classfile::rewrite::{Probe, Probes, rewrite};
use runtap_classfile::{ClassFile, Pool};
use runtap_testkit::require;

use crate::jdk;

pub(crate) const PROBES: Probes<'_> = Probes {
    class: "Recorder",
    entry: Some(Probe { name: "entry", line: false }),
    exit: Some(Probe { name: "exit", line: true }),
    throwing: Some(Probe { name: "throwing", line: true }),
    unwinding: Some(Probe { name: "unwinding", line: false }),
    constructing: None,
};

/// Rewrites a class of any bytes: no panic, the methods are kept, and the written class can be read.
fn examine(bytes: &[u8]) {
    let Ok(class) = ClassFile::parse(bytes) else { return };
    let Ok(result) = rewrite(&class, &PROBES, |method| Some(method.number as i32 * 100)) else { return };
    assert_eq!(result.bytes.is_some(), !result.changed.is_empty());
    let Some(bytes) = result.bytes else { return };
    let rewritten = ClassFile::parse(&bytes).unwrap();
    assert_eq!(rewritten.methods().len(), class.methods().len());
    for changed in &result.changed {
        let code = rewritten.methods()[changed.number].code(rewritten.pool()).unwrap().unwrap();
        assert_eq!(code.bytes.len(), changed.after);
        assert!(code.instructions().all(|found| found.is_ok()));
    }
}

proptest! {
    #[test]
    fn no_class_makes_it_panic(which: Index, changes in vec((any::<Index>(), any::<u8>()), 0..6)) {
        let classes = match crate::laws::real_classes() {
            Ok(classes) => classes,
            Err(_) => vec![crate::golden::class_with_lines("a/B")],
        };
        let mut bytes = which.get(&classes).clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        examine(&bytes);
    }
}

/// Returns the instructions of a method without those of probes: offset, opcode, and operands except those of branches.
pub(crate) fn own<'a>(code: &Code<'a>, pool: &Pool<'a>) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut skip_push = 0;
    // From the end, because the call of a probe follows its operands.
    let mut all: Vec<_> = code.instructions().map(|found| found.unwrap()).collect();
    // A constructor has two catch-all handlers.
    while code.handlers.last().is_some_and(|row| row.catch_type.0 == 0)
        && let Some((_, Instruction::Constant { opcode: Opcode::INVOKESTATIC, index })) =
            all.get(all.len().wrapping_sub(2))
        && pool.member(*index, "probe").unwrap().name == "unwinding"
    {
        all.truncate(all.len() - 4);
    }
    for (pc, instruction) in all.into_iter().rev() {
        if let Instruction::Constant { opcode: Opcode::INVOKESTATIC, index } = instruction {
            let member = pool.member(index, "method").unwrap();
            if member.class == "Recorder" {
                skip_push = match member.name.to_string().as_str() {
                    "entry" => 1,
                    "exit" => 2,
                    _ => 3,
                };
                continue;
            }
        }
        if skip_push > 0 {
            skip_push -= 1;
            continue;
        }
        let text = match instruction {
            Instruction::Branch { opcode, .. } => format!("{opcode:?}"),
            Instruction::TableSwitch { low, offsets, .. } => format!("tableswitch {low} {}", offsets.len()),
            Instruction::LookupSwitch { pairs, .. } => {
                format!("lookupswitch {:?}", pairs.iter().map(|pair| &pair[..4]).collect::<Vec<_>>())
            }
            other => format!("{other:?}"),
        };
        found.push((pc.into(), text));
    }
    found.reverse();
    found
}

/// Returns the lines and names that a debugger shows for each instruction.
fn shown<'a>(code: &Code<'a>, pool: &Pool<'a>) -> (Vec<u16>, Vec<(String, u16)>) {
    let names = |attributes: &Attributes<'a>| -> Vec<(String, u16)> {
        let tables = attributes.parse(pool).filter_map(|found| match found.unwrap() {
            Attribute::LocalVariableTable(table) => Some(table),
            _ => None,
        });
        tables.flatten().map(|row| (pool.text(row.name, "name").unwrap().to_string(), row.index)).collect()
    };
    (code.lines(pool).unwrap().iter().map(|line| line.line_number).collect(), names(&code.attributes))
}

#[test]
fn the_code_without_the_probes_is_the_code_before() {
    let classes = require!(crate::laws::real_classes());
    let mut seen = 0;
    for bytes in &classes {
        let class = ClassFile::parse(bytes).unwrap();
        let result = rewrite(&class, &PROBES, |method| Some(method.number as i32)).unwrap();
        let Some(bytes) = result.bytes else { continue };
        let rewritten = ClassFile::parse(&bytes).unwrap();
        for changed in result.changed {
            let before = class.methods()[changed.number].code(class.pool()).unwrap().unwrap();
            let after = rewritten.methods()[changed.number].code(rewritten.pool()).unwrap().unwrap();
            let texts = |own: Vec<(usize, String)>| own.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
            assert_eq!(texts(own(&after, rewritten.pool())), texts(own(&before, class.pool())));
            assert_eq!(shown(&after, rewritten.pool()), shown(&before, class.pool()));
            seen += 1;
        }
        // All other parts are unchanged: attributes of the class, fields, flags, constants.
        assert_eq!(
            rewritten.attributes().iter().map(|raw| raw.data).collect::<Vec<_>>(),
            class.attributes().iter().map(|raw| raw.data).collect::<Vec<_>>()
        );
        assert!(class.pool().iter().eq(rewritten.pool().iter().take(class.pool().iter().count())));
        let _ = jdk::programs();
    }
    assert!(seen > 30, "{seen}");
}
