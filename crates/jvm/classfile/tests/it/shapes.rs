//! Code that Java's compiler does not, or no longer, generate; other compilers do.

use std::process::Output;

use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::{FrameKind, Instruction, Opcode, VerificationType};
use runtap_classfile::rewrite::{Lines, Probe, Probes, Reason, Rewritten, rewrite, rewrite_lines};
use runtap_classfile::{AccessFlags, ClassFile, Index, Version};
use runtap_testkit::{Jdk, Skip, require};

use crate::jdk::Programs as _;

const PROBES: Probes<'_> = Probes {
    class: "Recorder",
    entry: Some(Probe { name: "entry", line: false }),
    exit: Some(Probe { name: "exit", line: true }),
    throwing: Some(Probe { name: "throwing", line: true }),
    unwinding: Some(Probe { name: "unwinding", line: false }),
    constructing: None,
};
const STATIC: AccessFlags = AccessFlags(0x0009);
const NAME: &str = "Shape";

fn class(version: u16) -> ClassBuilder {
    ClassBuilder::new(Version { major: version, minor: 0 }, AccessFlags::PUBLIC, NAME, "java/lang/Object")
}

/// Adds `static int of(int, Object)`, which creates an object with the number and returns it.
fn with_maker(mut class: ClassBuilder) -> Vec<u8> {
    let (this, init) = (class.constants().class(NAME), class.constants().method(NAME, "<init>", "(I)V"));
    let mut code = CodeBuilder::new(3, 2);
    code.constant(Opcode::NEW, this).op(Opcode::ILOAD_0).constant(Opcode::INVOKESPECIAL, init);
    code.op(Opcode::ILOAD_0).op(Opcode::IRETURN);
    class.method(STATIC, "of", "(ILjava/lang/Object;)I", Some(&code)).unwrap();
    class.finish().unwrap()
}

/// Rewrites a class; ids are the numbers of the methods.
fn traced(bytes: &[u8]) -> Rewritten {
    rewrite(&ClassFile::parse(bytes).unwrap(), &PROBES, |method| Some(method.number as i32)).unwrap()
}

fn run(jdk: &Jdk, bytes: &[u8], numbers: &[&str]) -> Result<Output, Skip> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("class");
    std::fs::write(&file, bytes).unwrap();
    let arguments: Vec<&str> = [file.to_str().unwrap()].into_iter().chain(numbers.iter().copied()).collect();
    jdk.program("Far", &["-Xverify:all"], &arguments)
}

/// Checks a class's output on every JDK, without and with probes.
fn says(bytes: &[u8], numbers: &[&str], results: &str, traces: &str) -> Result<(), Skip> {
    let result = traced(bytes);
    assert_eq!(result.unchanged, []);
    let rewritten = result.bytes.unwrap();
    assert_eq!(ClassFile::parse(&rewritten).unwrap().encode().unwrap(), rewritten);
    for jdk in Jdk::all()? {
        for (bytes, traces) in [(bytes, "wrong null\nlines []\n"), (&rewritten, traces)] {
            let ran = run(&jdk, bytes, numbers)?;
            let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            assert_eq!(out, format!("{results}{traces}"), "JDK {}: {err}", jdk.major());
        }
    }
    Ok(())
}

/// Subroutines, which compilers before Java 6 generated for `finally`.
#[test]
fn subroutines() {
    let mut class = class(48);
    let mut code = CodeBuilder::new(2, 3);
    let (sub, other) = (code.label(), code.label());
    code.branch(Opcode::JSR, sub).op(Opcode::ILOAD_0).branch(Opcode::IFLT, other);
    code.branch(Opcode::JSR, sub).op(Opcode::ILOAD_0).op(Opcode::IRETURN);
    code.bind(other).op(Opcode::ICONST_0).op(Opcode::IRETURN);
    code.bind(sub).op(Opcode::ASTORE_2);
    code.instruction(&Instruction::Increment { index: 0, by: 1, wide: false });
    code.instruction(&Instruction::Local { opcode: Opcode::RET, index: 2, wide: false });
    class.method(STATIC, "of", "(ILjava/lang/Object;)I", Some(&code)).unwrap();
    let bytes = class.finish().unwrap();
    require!(says(&bytes, &["5", "-9"], "7\n0\n", "wrong null\nmethod 0 2 2 0 0\nlines [-1]\n"));
}

/// A loop at the start of a method does not repeat the method's entry.
#[test]
fn a_branch_to_the_first_instruction() {
    let mut class = class(52);
    let mut code = CodeBuilder::new(2, 2);
    let start = code.label();
    code.bind(start).frame(FrameKind::Same);
    code.instruction(&Instruction::Increment { index: 0, by: -1, wide: false });
    code.op(Opcode::ILOAD_0).branch(Opcode::IFGT, start).op(Opcode::ILOAD_0).op(Opcode::IRETURN);
    class.method(STATIC, "of", "(ILjava/lang/Object;)I", Some(&code)).unwrap();
    let bytes = class.finish().unwrap();
    require!(says(&bytes, &["100"], "0\n", "wrong null\nmethod 0 1 1 0 0\nlines [-1]\n"));
}

/// A constructor that calls another one in two places, and handles an exception before, which Java 25 allows in source code.
#[test]
fn a_constructor_with_two_ways_to_its_superclass() {
    for version in [48, 55] {
        let mut class = class(version);
        let init = class.constants().method("java/lang/Object", "<init>", "()V");
        let arithmetic = class.constants().class("java/lang/ArithmeticException");
        let this = class.constants().class(NAME);
        let mut code = CodeBuilder::new(3, 3);
        let frame = |code: &mut CodeBuilder, locals: Vec<VerificationType>, stack: Vec<VerificationType>| {
            if version >= 50 {
                code.frame(FrameKind::Full { locals, stack });
            }
        };
        let uninitialized = vec![VerificationType::UninitializedThis, VerificationType::Integer];
        let (from, to, caught, other, both) =
            (code.label(), code.label(), code.label(), code.label(), code.label());
        code.bind(from)
            .push(class.constants(), 100)
            .op(Opcode::ILOAD_1)
            .op(Opcode::IDIV)
            .op(Opcode::POP)
            .bind(to);
        // The object is copied and swapped before the call.
        code.op(Opcode::ALOAD_0).op(Opcode::ILOAD_1).op(Opcode::SWAP).op(Opcode::ASTORE_2).op(Opcode::POP);
        code.op(Opcode::ALOAD_2).constant(Opcode::INVOKESPECIAL, init).branch(Opcode::GOTO, both);
        code.bind(caught);
        frame(&mut code, uninitialized.clone(), vec![VerificationType::Object(arithmetic)]);
        code.op(Opcode::POP).branch(Opcode::GOTO, other);
        code.bind(other);
        frame(&mut code, uninitialized, vec![]);
        code.op(Opcode::ALOAD_0).constant(Opcode::INVOKESPECIAL, init);
        code.bind(both);
        frame(&mut code, vec![VerificationType::Object(this), VerificationType::Integer], vec![]);
        code.op(Opcode::RETURN);
        code.handler(from, to, caught, arithmetic);
        class.method(AccessFlags::PUBLIC, "<init>", "(I)V", Some(&code)).unwrap();
        let bytes = with_maker(class);
        let trace = "wrong null\nmethod 0 2 2 0 0\nmethod 1 2 2 0 0\nlines [-1]\n";
        require!(says(&bytes, &["0", "7"], "0\n7\n", trace));
    }
}

fn reason_of(code: &CodeBuilder, mut class: ClassBuilder) -> Option<Reason> {
    class.method(AccessFlags::PUBLIC, "<init>", "(I)V", Some(code)).unwrap();
    let result = traced(&with_maker(class));
    let [reason] = result.unchanged.as_slice() else { return None };
    assert_eq!((reason.number, result.changed.len()), (0, 1), "the other method is changed");
    Some(reason.reason.clone())
}

#[test]
fn constructors_that_are_left_alone() {
    let code = |class: &mut ClassBuilder| {
        let init = class.constants().method("java/lang/Object", "<init>", "()V");
        let mut code = CodeBuilder::new(2, 2);
        let start = code.label();
        code.bind(start);
        (code, start, init)
    };

    let mut never = class(49);
    let (mut never_code, ..) = code(&mut never);
    never_code.op(Opcode::ACONST_NULL).op(Opcode::ATHROW);
    assert_eq!(reason_of(&never_code, never), Some(Reason::NeverBegins));

    // A catch-all handler, before and after the call.
    let mut shared = class(49);
    let (mut shared_code, start, init) = code(&mut shared);
    let end = shared_code.label();
    shared_code
        .op(Opcode::NOP)
        .op(Opcode::ALOAD_0)
        .constant(Opcode::INVOKESPECIAL, init)
        .op(Opcode::RETURN)
        .bind(end);
    shared_code.op(Opcode::ATHROW).handler(start, end, end, Index::NONE);
    assert_eq!(reason_of(&shared_code, shared), Some(Reason::Shared));

    // The stack has a different value where the object should be.
    let mut wrong = class(49);
    let (mut wrong_code, _, init) = code(&mut wrong);
    wrong_code.constant(Opcode::INVOKESPECIAL, init).op(Opcode::RETURN);
    assert!(matches!(reason_of(&wrong_code, wrong), Some(Reason::Misplaced(_))));
}

#[test]
fn an_empty_finalizer_stays_empty() {
    let mut builder = class(52);
    let mut code = CodeBuilder::new(0, 1);
    code.op(Opcode::RETURN);
    builder.method(AccessFlags::PROTECTED, "finalize", "()V", Some(&code)).unwrap();
    builder.method(AccessFlags::PUBLIC | AccessFlags::ABSTRACT, "none", "()V", None).unwrap();
    let result = traced(&builder.finish().unwrap());
    let reasons: Vec<_> = result.unchanged.into_iter().map(|unchanged| unchanged.reason).collect();
    assert_eq!((result.bytes, reasons), (None, vec![Reason::EmptyFinalizer, Reason::NoCode]));
}

/// A method with room for the probe of its entry, but not for those of its lines, gets the former.
#[test]
fn lines_that_have_no_room() {
    let mut builder = class(52);
    let mut code = CodeBuilder::new(0, 0);
    for line in 1..=16_000 {
        code.line(line).op(Opcode::NOP).op(Opcode::NOP).op(Opcode::NOP);
    }
    code.op(Opcode::RETURN);
    builder.method(STATIC, "a", "()V", Some(&code)).unwrap();
    let mut code = CodeBuilder::new(0, 0);
    code.line(1).op(Opcode::NOP).line(2).op(Opcode::RETURN);
    builder.method(STATIC, "b", "()V", Some(&code)).unwrap();
    let bytes = builder.finish().unwrap();
    let parsed = ClassFile::parse(&bytes).unwrap();
    let only_entry = Probes { exit: None, throwing: None, unwinding: None, ..PROBES };
    let mut id = |_, line: u16| Some(i32::from(line));
    let lines = Lines { name: "line", id: &mut id };
    let result = rewrite_lines(&parsed, &only_entry, lines, |method| Some(method.number as i32)).unwrap();
    assert_eq!((result.changed.len(), result.unchanged.as_slice()), (2, [].as_slice()));
    let [left] = result.without_lines.as_slice() else { panic!("{:?}", result.without_lines) };
    assert_eq!(left.number, 0);
    assert!(matches!(left.reason, Reason::TooLong(_)), "{}", left.reason);
    let rewritten = ClassFile::parse(result.bytes.as_deref().unwrap()).unwrap();
    let calls = rewritten.methods().iter().map(|method| {
        let code = method.code(rewritten.pool()).unwrap().unwrap();
        code.instructions().filter(|found| found.as_ref().unwrap().1.opcode() == Opcode::INVOKESTATIC).count()
    });
    assert_eq!(calls.collect::<Vec<_>>(), [1, 2]);
}

/// Lines above 32,767 are those of a `short`; a pool with no room is reported for the method that needs it.
#[test]
fn limits_of_numbers() {
    let mut builder = class(52);
    let mut code = CodeBuilder::new(0, 2);
    code.line(65_000).op(Opcode::RETURN);
    builder.method(STATIC, "a", "()V", Some(&code)).unwrap();
    let bytes = builder.finish().unwrap();
    let rewritten = traced(&bytes).bytes.unwrap();
    let rewritten = ClassFile::parse(&rewritten).unwrap();
    let code = rewritten.methods()[0].code(rewritten.pool()).unwrap().unwrap();
    let pushed = code.instructions().filter_map(|found| match found.unwrap().1 {
        Instruction::Push { value, .. } => Some(value.cast_unsigned()),
        _ => None,
    });
    assert_eq!(pushed.collect::<Vec<_>>(), [65_000]);
    // Nothing throws between the entry and the exit.
    assert_eq!(code.handlers, []);

    let mut builder = class(52);
    let mut code = CodeBuilder::new(0, 2);
    code.op(Opcode::RETURN);
    for method in ["a", "b", "c"] {
        builder.method(STATIC, method, "()V", Some(&code)).unwrap();
    }
    // Room for the ten constants of the probes, and for two ids.
    let mut fill = 0;
    let used = ClassFile::parse(&class(52).finish().unwrap()).unwrap().pool().count() + 5;
    while fill < 65_535 - i32::from(used) - 12 {
        builder.constants().integer(fill);
        fill += 1;
    }
    let bytes = builder.finish().unwrap();
    let class = ClassFile::parse(&bytes).unwrap();
    let count = class.pool().count();
    let result = rewrite(&class, &PROBES, |method| Some(100_000_000 + method.number as i32)).unwrap();
    let rewritten = ClassFile::parse(result.bytes.as_deref().unwrap()).unwrap();
    assert_eq!((result.changed.len(), result.unchanged.len()), (2, 1), "{count}");
    assert!(matches!(result.unchanged[0].reason, Reason::TooMany(_)));
    assert_eq!(rewritten.encode().unwrap(), rewritten.bytes());
    assert!(rewritten.pool().count() > count);
}
