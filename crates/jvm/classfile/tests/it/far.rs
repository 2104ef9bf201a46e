//! Methods whose branches become too long for 16 bits when probes are inserted.

use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::{FrameKind, Instruction, Opcode, VerificationType};
use runtap_classfile::rewrite::{Probe, Probes, Reason, Rewritten, rewrite};
use runtap_classfile::{AccessFlags, ClassFile, Index, Version};
use runtap_testkit::{Jdk, require};

use crate::jdk::Programs as _;

const PROBES: Probes<'_> = Probes {
    class: "Recorder",
    entry: Some(Probe { name: "entry", line: false }),
    exit: Some(Probe { name: "exit", line: true }),
    throwing: None,
    unwinding: Some(Probe { name: "unwinding", line: false }),
    constructing: None,
};

/// Returns a class with `static int of(int, Object)`, which has `returns` returns, each after an `if`, and two long branches
/// over all of them: an `if` (taken for 0) and a `goto` (taken for −1). A `String` is in a variable at their target, so that
/// the frames differ. Each return takes 16 bytes.
fn class(returns: i32, version: u16) -> Vec<u8> {
    let public_static = AccessFlags::PUBLIC | AccessFlags::STATIC;
    let version = Version { major: version, minor: 0 };
    let mut class = ClassBuilder::new(version, AccessFlags::PUBLIC, "Long", "java/lang/Object");
    let string = class.constants().class("java/lang/String");
    let with_frames = version.major >= 50;
    let mut code = CodeBuilder::new(3, 3);
    let frame = |code: &mut CodeBuilder, kind: FrameKind| {
        if with_frames {
            code.frame(kind);
        }
    };
    let (zero, minus_one, positive) = (code.label(), code.label(), code.label());
    code.op(Opcode::ALOAD_1).constant(Opcode::CHECKCAST, string).op(Opcode::ASTORE_2);
    code.op(Opcode::ILOAD_0).branch(Opcode::IFEQ, zero);
    code.op(Opcode::ILOAD_0).branch(Opcode::IFGE, positive);
    code.branch(Opcode::GOTO, minus_one);
    code.bind(positive);
    frame(&mut code, FrameKind::Append(vec![VerificationType::Object(string)]));
    for number in 1..=returns {
        let next = code.label();
        code.line(u16::try_from(number % 60_000).unwrap());
        code.op(Opcode::ILOAD_0).constant(Opcode::LDC_W, class.constants().integer(number));
        code.branch(Opcode::IF_ICMPNE, next);
        code.op(Opcode::NOP).op(Opcode::NOP).op(Opcode::NOP).op(Opcode::NOP);
        code.constant(Opcode::LDC_W, class.constants().integer(number * 10)).op(Opcode::IRETURN);
        code.bind(next);
        frame(&mut code, FrameKind::Same);
        code.op(Opcode::NOP);
    }
    code.push(class.constants(), -2).op(Opcode::IRETURN);
    code.bind(zero);
    frame(&mut code, FrameKind::Same);
    code.op(Opcode::ALOAD_2)
        .constant(Opcode::INVOKEVIRTUAL, class.constants().method("java/lang/String", "length", "()I"));
    code.op(Opcode::IRETURN);
    code.bind(minus_one);
    frame(&mut code, FrameKind::Same);
    code.instruction(&Instruction::Push { opcode: Opcode::SIPUSH, value: -1000 }).op(Opcode::IRETURN);
    class.method(public_static, "of", "(ILjava/lang/Object;)I", Some(&code)).unwrap();
    class.finish().unwrap()
}

fn traced(bytes: &[u8]) -> Rewritten {
    rewrite(&ClassFile::parse(bytes).unwrap(), &PROBES, |_| Some(7)).unwrap()
}

fn opcodes(bytes: &[u8]) -> Vec<Opcode> {
    let class = ClassFile::parse(bytes).unwrap();
    let code = class.methods()[0].code(class.pool()).unwrap().unwrap();
    code.instructions().map(|found| found.unwrap().1.opcode()).collect()
}

/// The number of returns at which all branches still fit into 16 bits, close to 32,767.
const MOST: i32 = 2040;

#[test]
fn branches_become_wide() {
    let folder = tempfile::tempdir().unwrap();
    // Versions with frames, and the last version without frames.
    for version in [49, 52, 55] {
        let bytes = class(MOST, version);
        assert!(!opcodes(&bytes).contains(&Opcode::GOTO_W));
        let result = traced(&bytes);
        let [changed] = result.changed.as_slice() else { panic!("{:?}", result.unchanged) };
        assert!(changed.before < 33_000 && changed.after > 40_000, "{changed:?}");
        let rewritten = result.bytes.unwrap();
        let wide = opcodes(&rewritten).into_iter().filter(|opcode| *opcode == Opcode::GOTO_W).count();
        assert_eq!(wide, 2, "the goto, and the island of the if");
        assert_eq!(ClassFile::parse(&rewritten).unwrap().encode().unwrap(), rewritten);
        let file = folder.path().join(format!("{version}.class"));
        std::fs::write(&file, rewritten).unwrap();
        for jdk in require!(Jdk::all()) {
            let numbers = ["0", "-1", "1", "900", "2040", "5000"];
            let arguments: Vec<&str> = [file.to_str().unwrap()].into_iter().chain(numbers).collect();
            let ran = jdk.program("Far", &["-Xverify:all"], &arguments);
            let ran = require!(ran);
            let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            let expected =
                "6\n-1000\n10\n9000\n20400\n-2\nwrong null\nmethod 7 6 6 0 0\nlines [1, 900, 2040]\n";
            assert_eq!(out, expected, "JDK {} version {version}: {err}", jdk.major());
        }
    }
}

/// One block of 60,000 bytes with a return at its end: there is room for the probes of one return only.
#[test]
fn the_limit_of_a_code_is_exact() {
    let of = |length: usize| {
        let mut class = ClassBuilder::new(
            Version { major: 52, minor: 0 },
            AccessFlags::PUBLIC,
            "Long",
            "java/lang/Object",
        );
        let mut code = CodeBuilder::new(1, 0);
        (1..length).for_each(|_| _ = code.op(Opcode::NOP));
        code.op(Opcode::RETURN);
        class.method(AccessFlags::STATIC, "of", "()V", Some(&code)).unwrap();
        traced(&class.finish().unwrap())
    };
    // bipush 7 and a call, bipush, iconst_m1 and a call, dup, bipush, a call and athrow.
    let probes = 5 + 6 + 7;
    assert_eq!(of(65_535 - probes).changed[0].after, 65_535);
    let result = of(65_535 - probes + 1);
    assert_eq!((result.bytes, &result.unchanged[0].reason), (None, &Reason::TooLong(65_536)));
}

/// An `if` over a block without an end: there is no place for an island.
#[test]
fn a_branch_without_a_way_is_reported() {
    let mut class =
        ClassBuilder::new(Version { major: 49, minor: 0 }, AccessFlags::PUBLIC, "Long", "java/lang/Object");
    let mut code = CodeBuilder::new(1, 1);
    let (start, end) = (code.label(), code.label());
    code.bind(start);
    code.op(Opcode::ILOAD_0).branch(Opcode::IFEQ, end);
    (0..32_763).for_each(|_| _ = code.op(Opcode::NOP));
    code.bind(end);
    // The branch only becomes too long with the probe of this method.
    code.op(Opcode::ACONST_NULL).op(Opcode::ATHROW);
    (0..32_000).for_each(|_| _ = code.op(Opcode::NOP));
    code.op(Opcode::RETURN);
    class.method(AccessFlags::STATIC, "of", "(I)V", Some(&code)).unwrap();
    let bytes = class.finish().unwrap();
    let class = ClassFile::parse(&bytes).unwrap();
    // No probe is inserted between the branch and its target.
    let result = rewrite(&class, &PROBES, |_| Some(1)).unwrap();
    assert_eq!(result.unchanged, []);

    let mut class =
        ClassBuilder::new(Version { major: 49, minor: 0 }, AccessFlags::PUBLIC, "Long", "java/lang/Object");
    let mut code = CodeBuilder::new(1, 1);
    let (start, after) = (code.label(), code.label());
    code.bind(start);
    (0..16_000).for_each(|_| _ = code.op(Opcode::NOP));
    // The only instruction that ends a block is inside the range of a handler.
    let (from, to) = (code.label(), code.label());
    code.bind(from).op(Opcode::ILOAD_0).branch(Opcode::IFEQ, after).op(Opcode::RETURN).bind(after);
    (0..16_760).for_each(|_| _ = code.op(Opcode::NOP));
    code.op(Opcode::ILOAD_0).branch(Opcode::IFEQ, start).bind(to).op(Opcode::NOP);
    (0..31_000).for_each(|_| _ = code.op(Opcode::NOP));
    code.op(Opcode::RETURN);
    code.handler(from, to, to, Index::NONE);
    class.method(AccessFlags::STATIC, "of", "(I)V", Some(&code)).unwrap();
    let bytes = class.finish().unwrap();
    let result = rewrite(&ClassFile::parse(&bytes).unwrap(), &PROBES, |_| Some(1)).unwrap();
    assert_eq!(
        result.unchanged.iter().map(|unchanged| &unchanged.reason).collect::<Vec<_>>(),
        [&Reason::OutOfReach]
    );
}
