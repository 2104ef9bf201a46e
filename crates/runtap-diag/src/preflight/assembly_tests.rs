//! A real hook and other real assemblies where they are at hand, and small ones made here for every shape that a hook
//! can fail in.

use runtap_wire::Writer;

use super::*;

/// A class: flags, namespace, name, and its methods with flags, name and signature.
type Class<'a> = (u32, &'a str, &'a str, &'a [(u16, &'a str, &'a [u8])]);

const STATIC: u16 = 0x10;
const VOID: &[u8] = &[0x00, 0x00, 0x01];

/// An assembly with these classes, which refers to System.Runtime of this major version.
fn assembly(classes: &[Class<'_>], version: u16) -> Vec<u8> {
    let mut strings = vec![0];
    let mut blobs = vec![0];
    let string = |text: &str, strings: &mut Vec<u8>| {
        let at = u16::try_from(strings.len()).unwrap();
        strings.extend(text.as_bytes());
        strings.push(0);
        if text.is_empty() { 0 } else { at }
    };
    let mut types = Writer::new();
    let mut methods = Writer::new();
    let mut count = 0u16;
    // The class <Module> stands first in every assembly.
    for (flags, namespace, name, members) in
        [(0, "", "<Module>", &[][..])].into_iter().chain(classes.iter().copied())
    {
        types.u32(flags).u16(string(name, &mut strings)).u16(string(namespace, &mut strings));
        types.u16(0).u16(1).u16(count + 1);
        for (flags, name, signature) in members {
            let blob = u16::try_from(blobs.len()).unwrap();
            blobs.push(u8::try_from(signature.len()).unwrap());
            blobs.extend(*signature);
            methods.u32(0).u16(0).u16(*flags).u16(string(name, &mut strings)).u16(blob).u16(1);
            count += 1;
        }
    }
    let mut tables = Writer::new();
    tables.u32(0).u16(2).u8(0).u8(1);
    tables.u64(1 << TYPE_DEF | 1 << METHOD_DEF | 1 << ASSEMBLY_REF).u64(0);
    tables.u32(u32::try_from(classes.len()).unwrap() + 1).u32(count.into()).u32(1);
    tables.bytes(types.as_bytes()).bytes(methods.as_bytes());
    tables.u16(version).u16(0).u16(0).u16(0).u32(0).u16(0);
    tables.u16(string("System.Runtime", &mut strings)).u16(0).u16(0);

    let streams =
        [(&b"#~\0\0"[..], tables.into_bytes()), (b"#Strings\0\0\0\0", strings), (b"#Blob\0\0\0", blobs)];
    let mut root = Writer::new();
    root.bytes(b"BSJB").u16(1).u16(1).u32(0).u32(12).bytes(b"v4.0.30319\0\0").u16(0).u16(3);
    let mut offset = 32 + streams.iter().map(|(name, _)| 8 + name.len()).sum::<usize>();
    let mut bodies = Vec::new();
    for (name, body) in streams {
        root.u32(u32::try_from(offset).unwrap()).u32(u32::try_from(body.len()).unwrap()).bytes(name);
        offset += body.len();
        bodies.extend(body);
    }
    root.bytes(&bodies);
    pe(root.as_bytes())
}

/// A PE file of one section, at 0x2000 in memory and 0x200 in the file.
fn pe(metadata: &[u8]) -> Vec<u8> {
    let mut w = Writer::new();
    w.bytes(b"MZ").bytes(&[0; 58]).u32(64);
    w.bytes(b"PE\0\0").u16(0x14c).u16(1).bytes(&[0; 12]).u16(224).u16(0);
    w.u16(0x10b).bytes(&[0; 94 + 8 * CLI_DIRECTORY]).u32(0x2000).u32(72).u64(0);
    let size = u32::try_from(72 + metadata.len()).unwrap();
    w.bytes(b".text\0\0\0").u32(size).u32(0x2000).u32(size).u32(0x200).bytes(&[0; 16]);
    let padding = 0x200 - w.len();
    w.bytes(&vec![0; padding]);
    w.u32(72).u16(2).u16(5).u32(0x2048).u32(u32::try_from(metadata.len()).unwrap()).bytes(&[0; 56]);
    w.bytes(metadata);
    w.into_bytes()
}

/// A good hook.
pub(in crate::preflight) fn hook(version: u16) -> Vec<u8> {
    assembly(&[(1, "", "StartupHook", &[(STATIC, "Initialize", VOID)])], version)
}

/// A library that is no hook.
pub(in crate::preflight) fn without_class() -> Vec<u8> {
    assembly(&[(1, "Demo", "StartupHook", &[(STATIC, "Initialize", VOID)])], 8)
}

/// A hook that can't be called.
pub(in crate::preflight) fn without_method() -> Vec<u8> {
    assembly(&[(1, "", "StartupHook", &[(0, "Initialize", VOID)])], 8)
}

fn shape(classes: &[Class<'_>]) -> (bool, bool) {
    let hook = HookAssembly::read(&assembly(classes, 8)).unwrap();
    (hook.has_class, hook.has_method)
}

#[test]
fn a_hook_is_a_static_void_initialize_of_a_class_outside_of_namespaces() {
    let good = &[(STATIC, "Initialize", VOID)][..];
    assert_eq!(shape(&[(0, "", "StartupHook", good)]), (true, true));
    // Public, and not the only class and method.
    let other = &[(0, ".ctor", &[0x20, 0x00, 0x01][..]), (STATIC, "Other", VOID)][..];
    let last = &[(0, ".ctor", VOID), (STATIC | 0x06, "Initialize", VOID)][..];
    assert_eq!(
        shape(&[(1, "A", "B", other), (1, "", "StartupHook", last), (1, "A", "C", other)]),
        (true, true)
    );
    assert_eq!(shape(&[]), (false, false));
    assert_eq!(shape(&[(1, "A", "StartupHook", good)]), (false, false), "in a namespace");
    assert_eq!(shape(&[(2, "", "StartupHook", good)]), (false, false), "within a class");
    assert_eq!(shape(&[(1, "", "startuphook", good)]), (false, false));
    assert_eq!(shape(&[(1, "", "StartupHook", other)]), (true, false), "no such method");
    assert_eq!(shape(&[(1, "", "StartupHook", &[]), (1, "", "X", good)]), (true, false), "of the next class");
    for (flags, signature) in [
        (0, VOID),                           // not static
        (STATIC, &[0x00, 0x01, 0x01, 0x0e]), // a parameter
        (STATIC, &[0x00, 0x00, 0x08]),       // returns a number
        (STATIC, &[0x10, 0x01, 0x00, 0x01]), // generic
        (STATIC, &[]),
    ] {
        let methods = &[(flags, "Initialize", signature)][..];
        assert_eq!(shape(&[(1, "", "StartupHook", methods)]), (true, false), "{signature:?}");
    }
}

#[test]
fn the_version_is_that_of_the_runtimes_assembly() {
    assert_eq!(HookAssembly::read(&assembly(&[], 10)).unwrap().built_for, Some(10));
}

#[test]
fn what_is_no_assembly_is_said_with_its_place() {
    let why = |bytes: &[u8]| HookAssembly::read(bytes).unwrap_err().to_string();
    assert_eq!(why(b""), "DOS signature at offset 0: needs 2 bytes, 0 are left");
    assert_eq!(why(b"\x7fELF\x02\x01"), "DOS signature at offset 0: is not \"MZ\"");
    let whole = assembly(&[], 8);
    let change = |at: usize, with: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        why(&bytes)
    };
    assert_eq!(
        change(60, &[0xff; 4]),
        format!("PE header at offset 0: needs 4294967295 bytes, {} are left", whole.len())
    );
    assert_eq!(change(64, b"NE"), "PE signature at offset 64: is not \"PE\"");
    assert_eq!(change(88, &[0x07]), "optional header magic at offset 88: is 0x107, expected 0x10b or 0x20b");
    assert_eq!(change(296, &[0; 4]), "CLI header at offset 304: is missing: this is native code");
    let left = whole.len() - 0x200;
    assert_eq!(
        change(300, &[0xff, 0xff]),
        format!("CLI header at offset 512: needs 65535 bytes, {left} are left")
    );
    assert_eq!(change(0x200 + 8, &[0; 4]), "metadata at offset 0: lies in no section");
    assert_eq!(change(0x248, b"X"), "metadata signature at offset 584: is not \"BSJB\"");
    assert_eq!(change(0x248 + 40, b"#?"), "table stream at offset 584: is missing");
}

#[test]
fn a_part_of_an_assembly_is_none_and_changed_bytes_never_panic() {
    let whole = assembly(&[(1, "", "StartupHook", &[(STATIC, "Initialize", VOID)])], 8);
    let good = HookAssembly::read(&whole).unwrap();
    assert!(good.has_method);
    for n in 0..whole.len() {
        assert_ne!(HookAssembly::read(&whole[..n]).ok(), Some(good), "{n}");
    }
    for at in 0..whole.len() {
        for value in [0x00, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = HookAssembly::read(&bytes);
        }
    }
}
