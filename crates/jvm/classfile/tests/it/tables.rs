//! Tables of a method with offsets, after probes were inserted: variables, and annotations of types. Read by this crate's
//! reader, and by the JDK's `javap` as an independent one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use runtap_classfile::ClassFile;
use runtap_classfile::attribute::{Attribute, Target};
use runtap_classfile::code::Code;
use runtap_classfile::rewrite::rewrite;
use runtap_testkit::{Jdk, require, run};

use crate::jdk;
use crate::rewriting::{PROBES, own};

/// Returns a class with annotations of every kind of code, before and after rewriting.
fn annotated() -> Result<(Vec<u8>, Vec<u8>), runtap_testkit::Skip> {
    let before = fs::read(jdk::programs()?.join("Annotated.class")).unwrap();
    let class = ClassFile::parse(&before).unwrap();
    let result = rewrite(&class, &PROBES, |method| Some(method.number as i32)).unwrap();
    assert_eq!(result.unchanged, [], "every method of it has code that can be changed");
    let after = result.bytes.unwrap();
    Ok((before, after))
}

/// The positions to which the tables of a method's code refer.
#[derive(Debug, Default)]
struct Tables {
    /// Rows of variables and of their types, and ranges of variables with annotated types: start and end.
    ranges: Vec<(usize, usize)>,
    /// Instructions that use annotated types.
    offsets: Vec<usize>,
}

impl Tables {
    fn of<'a>(code: &Code<'a>, class: &ClassFile<'a>) -> Self {
        let mut found = Self::default();
        let end = |start: u16, length: u16| (usize::from(start), usize::from(start) + usize::from(length));
        for attribute in code.attributes.parse(class.pool()) {
            match attribute.unwrap() {
                Attribute::LocalVariableTable(rows) | Attribute::LocalVariableTypeTable(rows) => {
                    found.ranges.extend(rows.iter().map(|row| end(row.start_pc, row.length)));
                }
                Attribute::RuntimeVisibleTypeAnnotations(all)
                | Attribute::RuntimeInvisibleTypeAnnotations(all) => {
                    for annotation in all {
                        match annotation.target {
                            Target::LocalVariable { ranges, .. } => {
                                found.ranges.extend(ranges.iter().map(|row| end(row.start_pc, row.length)));
                            }
                            Target::Offset { offset, .. } | Target::TypeArgument { offset, .. } => {
                                found.offsets.push(offset.into());
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }
}

#[test]
fn variables_and_annotations_are_where_their_instructions_are() {
    let (before, after) = require!(annotated());
    let (before, after) = (ClassFile::parse(&before).unwrap(), ClassFile::parse(&after).unwrap());
    let (mut ranges, mut offsets, mut moved) = (0, 0, 0);
    for (old, new) in before.methods().iter().zip(after.methods()) {
        let (old, new) =
            (old.code(before.pool()).unwrap().unwrap(), new.code(after.pool()).unwrap().unwrap());
        let pcs = |code, class: &ClassFile<'_>| -> Vec<usize> {
            own(code, class.pool()).into_iter().map(|(pc, _)| pc).collect()
        };
        let (old_pcs, new_pcs) = (pcs(&old, &before), pcs(&new, &after));
        let number = |pc: usize| old_pcs.iter().position(|at| *at == pc).unwrap_or(old_pcs.len());
        // After the instruction before, which has written the variable, not after the position where that instruction began.
        let is_at = |pc: usize, was: usize| {
            let number = number(was);
            let least = number.checked_sub(1).map_or(0, |before| new_pcs[before] + 1);
            let most = new_pcs.get(number).copied().unwrap_or(new.bytes.len());
            (least..=most).contains(&pc)
        };
        let (was, is) = (Tables::of(&old, &before), Tables::of(&new, &after));
        assert_eq!((was.ranges.len(), was.offsets.len()), (is.ranges.len(), is.offsets.len()));
        for (was, is) in was.ranges.iter().zip(&is.ranges) {
            assert_eq!(was.0 == 0, is.0 == 0, "what begins with the method still does");
            assert!(is_at(is.0, was.0) && is_at(is.1, was.1), "{was:?} is {is:?}: {old_pcs:?} {new_pcs:?}");
            moved += usize::from(is != was);
            ranges += 1;
        }
        for (was, is) in was.offsets.iter().zip(&is.offsets) {
            assert_eq!(*is, new_pcs[number(*was)], "{was}: {old_pcs:?} {new_pcs:?}");
            offsets += 1;
        }
    }
    // The number that `javac` generates; with an entry at the start, all but the empty ones have moved.
    assert!(ranges >= 25 && offsets >= 10 && moved >= 25, "{ranges} {offsets} {moved}");
}

/// The parts of a method in `javap`'s output.
#[derive(Debug, Default)]
struct Listed {
    /// Instructions, by their offsets.
    code: BTreeMap<usize, String>,
    /// The start, length, number and name of each variable.
    variables: Vec<(usize, usize, usize, String)>,
    /// Annotations of types: their target, and the offset.
    annotations: Vec<(String, usize)>,
}

fn listed(jdk: &Jdk, class: &Path) -> Vec<Listed> {
    let mut javap = Command::new(jdk.home().join("bin/javap"));
    javap.args(["-v", "-p"]).arg(class);
    let finished = run(javap);
    finished.expect_code(0);
    assert_eq!(finished.stderr, "", "{finished}");
    let mut methods: Vec<Listed> = Vec::new();
    let mut table = "";
    for line in finished.text().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["Code:"] => {
                methods.push(Listed::default());
                table = "code";
                continue;
            }
            // `Start  Length  Slot  Name   Signature`
            ["LocalVariableTable:"] => table = "variables",
            [one] if one.ends_with(':') => table = "",
            ["Exception", "table:"] | ["StackMapTable:", ..] => table = "",
            _ => {}
        }
        let Some(method) = methods.last_mut() else { continue };
        let number = |word: &str| word.trim_end_matches(':').parse::<usize>();
        if let Some((before, offset)) = line.split_once(", offset=") {
            let kind = before.rsplit(' ').next().unwrap();
            let digits = offset.split(|c: char| !c.is_ascii_digit()).next().unwrap();
            method.annotations.push((kind.to_owned(), digits.parse().unwrap()));
        } else if table == "code"
            && let [pc, rest @ ..] = &words[..]
            && pc.ends_with(':')
            && let Ok(pc) = number(pc)
        {
            let end = rest.iter().position(|word| *word == "//").unwrap_or(rest.len());
            method.code.insert(pc, rest[..end].join(" "));
        } else if table == "variables"
            && let [start, length, slot, name, _] = words[..]
            && let (Ok(start), Ok(length), Ok(slot)) = (number(start), number(length), number(slot))
        {
            method.variables.push((start, length, slot, name.to_owned()));
        }
    }
    methods
}

#[test]
fn a_reader_that_is_not_ours_finds_them_too() {
    let jdk = require!(Jdk::with_compiler());
    let (before, after) = require!(annotated());
    let folder = tempfile::tempdir().unwrap();
    let list = |name: &str, bytes: &[u8]| {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        let file = folder.join("Annotated.class");
        fs::write(&file, bytes).unwrap();
        listed(&jdk, &file)
    };
    let (before, after) = (list("before", &before), list("after", &after));
    assert_eq!(before.len(), after.len());
    let (mut written, mut used) = (0, 0);
    for (old, new) in before.iter().zip(&after) {
        let names = |method: &Listed| -> Vec<(usize, String)> {
            method.variables.iter().map(|(_, _, slot, name)| (*slot, name.clone())).collect()
        };
        assert_eq!(names(old), names(new));
        for (start, length, slot, name) in &new.variables {
            let last = new.code.keys().next_back().unwrap();
            let end = start + length;
            assert!(
                new.code.contains_key(&end) || end > *last,
                "{name} ends in the middle of an instruction"
            );
            if *start > 0 {
                // The variable has its value from here on: the instruction before has written it.
                let (_, store) = new.code.range(..start).next_back().unwrap();
                let (store, index) = store.split_once(['_', ' ']).unwrap();
                assert!(store.ends_with("store") && index == slot.to_string(), "{name}: {store} {index}");
                written += 1;
            }
        }
        let opcode = |method: &Listed, pc: usize| method.code[&pc].split(' ').next().unwrap().to_owned();
        assert_eq!(old.annotations.len(), new.annotations.len());
        for ((was, at), (is, now)) in old.annotations.iter().zip(&new.annotations) {
            assert_eq!((was, opcode(old, *at)), (is, opcode(new, *now)));
            used += 1;
        }
    }
    assert!(written >= 9 && used >= 9, "{written} {used}");
}
