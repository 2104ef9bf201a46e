//! Members that the compilers of Kotlin and Scala add are not counted; members that only look like them are.

use runtap_classfile::assemble::{ClassBuilder, CodeBuilder};
use runtap_classfile::code::Opcode;
use runtap_classfile::{AccessFlags, Version};
use runtap_jvm::coverage::{Coverage, Inventory, NeverCalled, NeverOptions, Observed, Options};

/// A method, its flags and lines.
type Row<'a> = (&'a str, &'a str, AccessFlags, &'a [u16]);

const PUBLIC: AccessFlags = AccessFlags::PUBLIC;

/// Returns a class with these methods and with this annotation.
fn class(annotation: &str, has_source: bool, methods: &[Row<'_>]) -> Vec<u8> {
    let version = Version { major: 52, minor: 0 };
    let mut class = ClassBuilder::new(version, PUBLIC, "a/A", "java/lang/Object");
    // Replaces the attribute `SourceFile`, which the builder writes last.
    class.source_file("A");
    let [attribute, kind] =
        ["RuntimeVisibleAnnotations", annotation].map(|text| class.constants().text(text).0);
    for (name, descriptor, access, lines) in methods {
        let mut code = CodeBuilder::new(1, 2);
        for line in *lines {
            code.line(*line).op(Opcode::NOP);
        }
        code.op(Opcode::RETURN);
        class.method(*access, name, descriptor, Some(&code)).unwrap();
    }
    let mut bytes = class.finish().unwrap();
    let source = bytes.split_off(bytes.len() - 10);
    assert_eq!(source[..2], [0, 1], "one attribute");
    bytes.extend(u16::to_be_bytes(1 + u16::from(has_source)));
    if has_source {
        bytes.extend(&source[2..]);
    }
    // One annotation without values.
    bytes.extend(
        [attribute.to_be_bytes().as_slice(), &[0, 0, 0, 6, 0, 1], &kind.to_be_bytes(), &[0, 0]].concat(),
    );
    bytes
}

/// Returns the methods that are counted, in coverage and in the list of methods that were never called.
fn counted(bytes: &[u8]) -> Vec<String> {
    let mut inventory = Inventory::default();
    inventory.add_class("a/A.class", bytes);
    assert!(inventory.unread.is_empty(), "{:?}", inventory.unread);
    let coverage = |compiler_methods| {
        let options = Options { compiler_methods, ..Options::default() };
        let coverage = Coverage::of(&Observed::default(), Some(&inventory), &options);
        let methods = &coverage.packages["a"].classes["a/A"].methods;
        let mut names: Vec<String> = methods.iter().map(|method| method.name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(coverage(true).len(), inventory.classes["a/A"].methods.len());
    let never = NeverCalled::of(&Observed::default(), &inventory, &NeverOptions::default());
    let mut names: Vec<String> = never.classes[0].methods.iter().map(|method| method.name.clone()).collect();
    names.sort();
    assert_eq!(names, coverage(false));
    names
}

const KOTLIN: &str = "Lkotlin/Metadata;";
const SCALA: &str = "Lscala/reflect/ScalaSignature;";

/// A `data class`, a default argument and an open suspending function, as Kotlin's compiler writes them.
const DATA_CLASS: &[Row<'static>] = &[
    ("<init>", "(I)V", PUBLIC, &[3]),
    ("getX", "()I", PUBLIC, &[3]),
    ("component1", "()I", PUBLIC, &[]),
    ("copy", "(I)La/A;", PUBLIC, &[]),
    ("copy$default", "(La/A;IILjava/lang/Object;)La/A;", AccessFlags::SYNTHETIC, &[]),
    ("equals", "(Ljava/lang/Object;)Z", PUBLIC, &[]),
    ("toString", "()Ljava/lang/String;", PUBLIC, &[9]),
    ("greet$default", "(La/A;IILjava/lang/Object;)V", AccessFlags::SYNTHETIC, &[5]),
    ("wait$suspendImpl", "(La/A;Ljava/lang/Object;)Ljava/lang/Object;", AccessFlags::SYNTHETIC, &[7]),
    ("run$lambda$0", "(I)I", AccessFlags::PRIVATE, &[8]),
];

#[test]
fn kotlin() {
    let kept = ["<init>", "getX", "run$lambda$0", "toString", "wait$suspendImpl"];
    assert_eq!(counted(&class(KOTLIN, true, DATA_CLASS)), kept);
    // Without a source file no method has lines, so missing lines mean nothing.
    let bare = [("component1", "()I", PUBLIC, &[][..]), ("run", "()V", PUBLIC, &[])];
    assert_eq!(counted(&class(KOTLIN, false, &bare)), ["component1", "run"]);
    assert_eq!(counted(&class(KOTLIN, true, &[bare[0], ("run", "()V", PUBLIC, &[1])])), ["run"]);
    // Nor in another language.
    assert_eq!(counted(&class("La/Metadata;", true, &bare)), ["component1", "run"]);
}

/// A `case class`, as Scala 2.12's compiler writes it, with `toString` and `copy` written by hand on more lines.
#[test]
fn scala() {
    let rows: &[Row<'_>] = &[
        ("apply", "(I)La/A;", AccessFlags::STATIC, &[]),
        ("x", "()I", PUBLIC, &[4]),
        ("copy", "(I)La/A;", PUBLIC, &[4]),
        ("copy$default$1", "()I", PUBLIC, &[4]),
        ("productPrefix", "()Ljava/lang/String;", PUBLIC, &[4]),
        ("productArity", "()I", PUBLIC, &[4]),
        ("productElement", "(I)Ljava/lang/Object;", PUBLIC, &[4]),
        ("productIterator", "()Lscala/collection/Iterator;", PUBLIC, &[4]),
        ("canEqual", "(Ljava/lang/Object;)Z", PUBLIC, &[4]),
        ("hashCode", "()I", PUBLIC, &[4]),
        ("toString", "()Ljava/lang/String;", PUBLIC, &[6]),
        ("equals", "(Ljava/lang/Object;)Z", PUBLIC, &[7, 8]),
        ("$anonfun$twice$1", "(I)I", AccessFlags::SYNTHETIC, &[9]),
        ("$anonfun$twice$1$adapted", "(Ljava/lang/Object;)Ljava/lang/Object;", AccessFlags::SYNTHETIC, &[9]),
        ("greet$default$1", "()I", PUBLIC, &[10]),
        ("<init>", "(I)V", PUBLIC, &[4]),
    ];
    let kept = ["$anonfun$twice$1", "<init>", "equals", "greet$default$1", "toString", "x"];
    assert_eq!(counted(&class(SCALA, true, rows)), kept);
    // Methods of these names are counted in other classes.
    let rows = [("copy", "()La/A;", PUBLIC, &[4][..]), ("hashCode", "()I", PUBLIC, &[4])];
    assert_eq!(counted(&class(SCALA, true, &rows)), ["copy", "hashCode"]);
    let read = ("readResolve", "()Ljava/lang/Object;", AccessFlags::PRIVATE, &[4][..]);
    assert_eq!(counted(&class(SCALA, true, &[read, rows[0]])), ["copy"]);
    // In Java all of these methods are counted.
    assert_eq!(counted(&class("La/Metadata;", true, DATA_CLASS)).len(), 7);
}
