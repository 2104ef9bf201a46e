//! Small generated assemblies for every way in which a hook can fail. The tests on real runtimes use real assemblies and
//! compare with the runtime's own result.

use std::path::Path;

use runtap_diag_proto::{ProcessInfo, Uuid};
use runtap_wire::Writer;

use super::*;

const STATIC: u16 = 0x10;
const ABSTRACT: u16 = 0x400;
const VOID: &[u8] = &[0x00, 0x00, 0x01];
const GENERIC: &[u8] = &[0x10, 0x01, 0x00, 0x01];

const TYPE_DEF: u32 = 0x02;
const METHOD_DEF: u32 = 0x06;
const ASSEMBLY: u32 = 0x20;
const ASSEMBLY_REF: u32 = 0x23;
const GENERIC_PARAM: u32 = 0x2a;

/// The index of the CLI header in the data directories.
const CLI_DIRECTORY: usize = 14;

/// A class: flags, namespace, name, and its methods with flags, name and signature.
type Class<'a> = (u32, &'a str, &'a str, &'a [(u16, &'a str, &'a [u8])]);

/// An assembly to generate.
struct Made<'a> {
    classes: &'a [Class<'a>],
    /// The number of a class, from 1, that has a type parameter.
    generic: Option<u16>,
    /// The major version of the System.Runtime that it refers to.
    version: u16,
    machine: u16,
    /// The flags of the CLI header.
    flags: u32,
    has_manifest: bool,
}

const ANY: u16 = 0x14c;
const X64: u16 = 0x8664;
const ARM64: u16 = 0xaa64;
const LINUX: u16 = 0x7b79;

impl<'a> Made<'a> {
    fn of(classes: &'a [Class<'a>]) -> Self {
        Self { classes, generic: None, version: 8, machine: ANY, flags: 1, has_manifest: true }
    }

    fn bytes(&self) -> Vec<u8> {
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
        // The class <Module> is the first one in every assembly.
        for (flags, namespace, name, members) in
            [(0, "", "<Module>", &[][..])].into_iter().chain(self.classes.iter().copied())
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
        let mut present = 1 << TYPE_DEF | 1 << METHOD_DEF | 1 << ASSEMBLY_REF;
        present |= u64::from(self.has_manifest) << ASSEMBLY;
        present |= u64::from(self.generic.is_some()) << GENERIC_PARAM;
        tables.u64(present).u64(0);
        tables.u32(u32::try_from(self.classes.len()).unwrap() + 1).u32(count.into());
        tables.bytes(&[1, 0, 0, 0].repeat(usize::try_from((present >> ASSEMBLY).count_ones()).unwrap()));
        tables.bytes(types.as_bytes()).bytes(methods.as_bytes());
        if self.has_manifest {
            tables.u32(0x8004).u64(0).u32(0).u16(0).u16(string("Made", &mut strings)).u16(0);
        }
        tables.u16(self.version).u16(0).u16(0).u16(0).u32(0).u16(0);
        tables.u16(string("System.Runtime", &mut strings)).u16(0).u16(0);
        if let Some(class) = self.generic {
            // The owner is encoded in all but the low bit, which would select a method.
            tables.u16(0).u16(0).u16((class + 1) << 1).u16(0);
        }

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
        self.pe(root.as_bytes())
    }

    /// Returns a PE file with one section, at 0x2000 in memory and 0x200 in the file.
    fn pe(&self, metadata: &[u8]) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes(b"MZ").bytes(&[0; 58]).u32(64);
        w.bytes(b"PE\0\0").u16(self.machine).u16(1).bytes(&[0; 12]).u16(224).u16(0);
        w.u16(0x10b).bytes(&[0; 90]).u32(16).bytes(&[0; 8 * CLI_DIRECTORY]).u32(0x2000).u32(72).u64(0);
        let size = u32::try_from(72 + metadata.len()).unwrap();
        w.bytes(b".text\0\0\0").u32(size).u32(0x2000).u32(size).u32(0x200).bytes(&[0; 16]);
        let padding = 0x200 - w.len();
        w.bytes(&vec![0; padding]);
        w.u32(72).u16(2).u16(5).u32(0x2048).u32(u32::try_from(metadata.len()).unwrap());
        w.u32(self.flags).bytes(&[0; 52]);
        w.bytes(metadata);
        w.into_bytes()
    }

    /// Returns the result of the check for .NET 8 on x64 Linux.
    fn said(&self) -> Result<(), String> {
        said(&self.bytes(), "8.0.33")
    }
}

fn said(file: &[u8], version: &str) -> Result<(), String> {
    let info = ProcessInfo {
        process_id: 1,
        runtime_cookie: Uuid::nil(),
        command_line: String::new(),
        os: "Linux".into(),
        arch: "x64".into(),
        entry_assembly: None,
        runtime_version: Some(version.into()),
        portable_rid: None,
    };
    check(Path::new("/x.dll"), file, Some(&info)).map_err(|objection| objection.to_string())
}

const GOOD: &[(u16, &str, &[u8])] = &[(STATIC, "Initialize", VOID)];
const HOOK: &[Class<'static>] = &[(1, "", "StartupHook", GOOD)];

/// A valid hook.
pub(in crate::preflight) fn hook(version: u16) -> Vec<u8> {
    Made { version, ..Made::of(HOOK) }.bytes()
}

/// A library without a hook.
pub(in crate::preflight) fn without_class() -> Vec<u8> {
    Made::of(&[(1, "Demo", "StartupHook", GOOD)]).bytes()
}

/// A hook that cannot be called.
pub(in crate::preflight) fn without_method() -> Vec<u8> {
    Made::of(&[(1, "", "StartupHook", &[(0, "Initialize", VOID)])]).bytes()
}

fn found(classes: &[Class<'_>]) -> Hook {
    Hook::find(&Assembly::parse(&Made::of(classes).bytes()).unwrap()).unwrap()
}

#[test]
fn a_hook_is_a_static_void_initialize_of_a_class_outside_of_namespaces() {
    assert_eq!(found(&[(0, "", "StartupHook", GOOD)]), Hook::Callable);
    // Public, and not the only class and method.
    let other = &[(0, ".ctor", &[0x20, 0x00, 0x01][..]), (STATIC, "Other", VOID)][..];
    let last = &[(0, ".ctor", VOID), (STATIC | 0x06, "Initialize", VOID)][..];
    assert_eq!(
        found(&[(1, "A", "B", other), (1, "", "StartupHook", last), (1, "A", "C", other)]),
        Hook::Callable
    );
    assert_eq!(found(&[]), Hook::NoClass);
    assert_eq!(found(&[(1, "A", "StartupHook", GOOD)]), Hook::NoClass, "in a namespace");
    assert_eq!(found(&[(2, "", "StartupHook", GOOD)]), Hook::NoClass, "within a class");
    assert_eq!(found(&[(1, "", "startuphook", GOOD)]), Hook::NoClass);
    assert_eq!(found(&[(1, "", "StartupHook`1", GOOD)]), Hook::NoClass, "what compilers call a generic one");
    assert_eq!(found(&[(1, "", "StartupHook", other)]), Hook::NoMethod, "no such method");
    assert_eq!(
        found(&[(1, "", "StartupHook", &[]), (1, "", "X", GOOD)]),
        Hook::NoMethod,
        "of the next class"
    );
    for (flags, signature) in [
        (0, VOID),                           // not static
        (STATIC, &[0x00, 0x01, 0x01, 0x0e]), // a parameter
        (STATIC, &[0x00, 0x00, 0x08]),       // returns a number
        (STATIC, GENERIC),
        (STATIC | ABSTRACT, VOID),
    ] {
        let methods = &[(flags, "Initialize", signature)][..];
        assert_eq!(found(&[(1, "", "StartupHook", methods)]), Hook::NoMethod, "{signature:?}");
    }
}

#[test]
fn methods_that_the_runtime_cannot_tell_apart() {
    let overloads = |other: (u16, &'static [u8])| {
        let methods = &[(STATIC, "Initialize", VOID), (other.0, "Initialize", other.1)][..];
        found(&[(1, "", "StartupHook", methods)])
    };
    assert_eq!(overloads((STATIC, &[0x00, 0x01, 0x01, 0x0e])), Hook::Callable, "with a parameter");
    assert_eq!(overloads((0, &[0x20, 0x00, 0x01])), Hook::Callable, "of an object");
    assert_eq!(overloads((STATIC, GENERIC)), Hook::SeveralMethods);
    assert_eq!(overloads((STATIC, &[0x10, 0x01, 0x00, 0x08])), Hook::SeveralMethods);
}

#[test]
fn a_class_with_type_parameters_has_nothing_to_call() {
    let other = (1, "", "Other", GOOD);
    let classes = [other, (1, "", "StartupHook", GOOD), other];
    let why = |generic| Made { generic: Some(generic), ..Made::of(&classes) }.said();
    assert_eq!(why(2), Err("the class StartupHook of /x.dll has type parameters".into()));
    assert_eq!((why(1), why(3)), (Ok(()), Ok(())));
}

#[test]
fn code_for_another_place() {
    let why = |machine, flags| Made { machine, flags, ..Made::of(HOOK) }.said();
    let for_other = |what: &str, target: &str| {
        Err(format!("/x.dll is built for {what}, but the target runs on {target}"))
    };
    // As compilers make them: any processor, prefers 32 bits, x64; precompiled.
    for (machine, flags) in [(ANY, 1), (ANY, 0x2_0003), (ANY, 0x2_0001), (X64, 1), (X64 ^ LINUX, 4)] {
        assert_eq!(why(machine, flags), Ok(()), "{machine:x} {flags:x}");
    }
    assert_eq!(why(ANY, 3), for_other("x86", "x64"));
    assert_eq!(why(ARM64, 1), for_other("arm64", "x64"));
    assert_eq!(why(0x200, 1), for_other("?", "x64"), "Itanium");
    assert_eq!(why(ARM64 ^ LINUX, 4), for_other("arm64 on Linux", "x64 on Linux"));
    assert_eq!(why(X64, 4), for_other("x64 on Windows", "x64 on Linux"));
    assert_eq!(why(X64 ^ 0x4644, 4), for_other("x64 on macOS", "x64 on Linux"));
    // Native code in addition to managed code, and native code as its entry.
    for flags in [0, 0x10] {
        assert_eq!(why(X64, flags), Err("/x.dll contains native code".into()));
    }
    // Where the target does not tell what it is.
    let bytes = Made { machine: ARM64, ..Made::of(HOOK) }.bytes();
    assert!(check(Path::new("/x.dll"), &bytes, None).is_ok());
}

#[test]
fn a_part_of_an_assembly_is_none() {
    let part = Made { has_manifest: false, ..Made::of(HOOK) };
    assert_eq!(part.said(), Err("/x.dll has no manifest: it is a part of an assembly".into()));
}

#[test]
fn the_version_is_that_of_the_runtimes_assembly() {
    let bytes = Made { version: 10, ..Made::of(HOOK) }.bytes();
    assert_eq!(built_for(&Assembly::parse(&bytes).unwrap()), Ok(Some(10)));
    assert_eq!(said(&bytes, "10.0.1"), Ok(()));
    assert_eq!(said(&bytes, ""), Ok(()));
    assert!(said(&bytes, "9.0.1").unwrap_err().contains("built for .NET 10"));
}

#[test]
fn what_is_no_assembly_is_said_with_its_place() {
    let why = |bytes: &[u8]| {
        let said = said(bytes, "8.0.33").unwrap_err();
        said.strip_prefix("/x.dll is not a .NET assembly: ").unwrap_or(&said).to_owned()
    };
    let whole = Made::of(HOOK).bytes();
    let change = |at: usize, with: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        why(&bytes)
    };
    let header = change(88, &[0x07]);
    for said in [why(b""), why(b"\x7fELF\x02\x01"), change(60, &[0xff; 4]), change(64, b"NE"), header] {
        assert_eq!(said, "not a PE file");
    }
    let broken = |what: &str| format!("malformed or truncated: {what}");
    let sections = change(64 + 6, &[0xff; 2]);
    assert!(sections.starts_with(&broken("PE headers at offset 0: are truncated")), "{sections}");
    assert_eq!(change(296, &[0; 4]), "a native library, not a .NET assembly");
    let left = whole.len() - 0x200;
    assert_eq!(
        change(300, &[0xff, 0xff]),
        broken(&format!("CLI header at offset 512: needs 65535 bytes, {left} are left"))
    );
    assert_eq!(
        change(0x200 + 8, &[0; 4]),
        broken("metadata at offset 0: is outside of all sections of the file")
    );
    assert_eq!(change(0x248, b"X"), broken("metadata magic at offset 584: is not BSJB"));
    assert_eq!(change(0x248 + 40, b"#?"), broken("metadata at offset 584: has no tables"));
}

#[test]
fn a_cut_assembly_is_none_and_changed_bytes_never_panic() {
    let whole = Made::of(HOOK).bytes();
    assert_eq!(said(&whole, "8.0.33"), Ok(()));
    for n in 0..whole.len() {
        assert!(said(&whole[..n], "8.0.33").is_err(), "{n}");
    }
    for at in 0..whole.len() {
        for value in [0x00, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = said(&bytes, "8.0.33");
        }
    }
}
