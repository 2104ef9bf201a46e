//! A class assembled by hand, compared byte by byte.

use runtap_classfile::attribute::{Attribute, LineNumber};
use runtap_classfile::code::{Instruction, Opcode};
use runtap_classfile::{AccessFlags, ClassFile, Constant, Index, Version};

/// Returns the class `name` with `public static void run()`: `iconst_1` of line 7, `pop` and `return` of line 9.
pub(crate) fn class_with_lines(name: &str) -> Vec<u8> {
    let mut class = b"\xca\xfe\xba\xbe\0\0\0\x34".to_vec();
    class.extend(b"\0\x0d");
    let texts = [name, "java/lang/Object", "run", "()V", "Code", "LineNumberTable", "SourceFile"];
    let simple = name.rsplit('/').next().unwrap().split('$').next().unwrap();
    for text in texts.iter().map(|text| (*text).to_owned()).chain([format!("{simple}.java")]) {
        class.push(1);
        class.extend((text.len() as u16).to_be_bytes());
        class.extend(text.as_bytes());
    }
    // 9 and 10: the two classes. 11 and 12: a long.
    class.extend(b"\x07\0\x01\x07\0\x02\x05\0\0\0\x01\0\0\0\x02");
    // public super, this, super, no interfaces, no fields, one method.
    class.extend(b"\0\x21\0\x09\0\x0a\0\0\0\0\0\x01");
    // public static run ()V, one attribute: Code of 31 bytes.
    class.extend(b"\0\x09\0\x03\0\x04\0\x01\0\x05\0\0\0\x1f");
    // Stack, locals, the code, no handlers, one attribute: LineNumberTable of 10 bytes.
    class.extend(b"\0\x01\0\0\0\0\0\x03\x04\x57\xb1\0\0\0\x01\0\x06\0\0\0\x0a\0\x02\0\0\0\x07\0\x01\0\x09");
    // One attribute of the class: SourceFile.
    class.extend(b"\0\x01\0\x07\0\0\0\x02\0\x08");
    class
}

#[test]
fn every_part_has_its_bytes() {
    let bytes = class_with_lines("a/B");
    let class = ClassFile::parse(&bytes).unwrap();
    assert_eq!(class.version(), Version { major: 52, minor: 0 });
    assert_eq!(class.access(), AccessFlags(0x21));
    assert_eq!(class.name().unwrap(), "a/B");
    assert_eq!(class.super_name().unwrap().unwrap(), "java/lang/Object");
    assert_eq!(class.source_file().unwrap().unwrap(), "B.java");
    let pool = class.pool();
    assert_eq!(pool.count(), 13);
    assert_eq!(pool.get(Index(11), "long").unwrap(), Constant::Long { high: 1, low: 2 });
    let error = pool.get(Index(12), "second half").unwrap_err();
    assert_eq!(
        error.to_string(),
        "second half at offset 109: is 0xc, expected an index of the constant pool"
    );
    assert_eq!(pool.iter().count(), 11, "the second half of the long is no entry");
    let [method] = class.methods() else { panic!("{:?}", class.methods()) };
    assert_eq!(method.access, AccessFlags::PUBLIC | AccessFlags::STATIC);
    let code = method.code(pool).unwrap().unwrap();
    assert_eq!((code.max_stack, code.max_locals, code.bytes), (1, 0, b"\x04\x57\xb1".as_slice()));
    let instructions: Vec<_> = code.instructions().map(Result::unwrap).collect();
    let simple = |pc, opcode| (pc, Instruction::Simple(opcode));
    assert_eq!(
        instructions,
        [simple(0, Opcode::ICONST_1), simple(1, Opcode::POP), simple(2, Opcode::RETURN)]
    );
    let attributes: Vec<_> = code.attributes.parse(pool).map(Result::unwrap).collect();
    let line = |start_pc, line_number| LineNumber { start_pc, line_number };
    assert_eq!(attributes, [Attribute::LineNumberTable(vec![line(0, 7), line(1, 9)])]);
    assert_eq!(class.encode().unwrap(), bytes);
}

#[test]
fn every_prefix_is_an_error_with_a_place_and_more_bytes_too() {
    let bytes = class_with_lines("a/B");
    for n in 0..bytes.len() {
        let error = ClassFile::parse(&bytes[..n]).unwrap_err();
        assert!(error.is_incomplete(), "{n}: {error}");
        assert!(error.offset <= n as u64, "{n}: {error}");
    }
    let longer = [bytes.as_slice(), &[0]].concat();
    let error = ClassFile::parse(&longer).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("bytes after the class at offset {}: is 1, more than the allowed 0", bytes.len())
    );
}
