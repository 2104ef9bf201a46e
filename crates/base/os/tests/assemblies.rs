//! Tests with real assemblies: those of the shared folder and of a complete runtime.

#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};

use runtap_os::objfile::pe::{Assembly, Method, PeError, Signature, TypeDef};
use runtap_testkit::{RealRuntime, Skip, require, shared_dir};

fn shared(path: &str) -> Result<Vec<u8>, Skip> {
    let shared = shared_dir().ok_or_else(|| Skip::because("no shared folder (RUNTAP_SHARED)"))?;
    Ok(fs::read(shared.join(path)).unwrap())
}

fn hook() -> Result<Vec<u8>, Skip> {
    shared("apps/dotnet/startuphook/bin/startuphook.dll")
}

fn find<'a>(assembly: &Assembly<'a>, name: &str) -> TypeDef<'a> {
    let mut types = assembly.types().map(Result::unwrap);
    types.find(|found| found.name == name).unwrap_or_else(|| panic!("no type {name}"))
}

#[test]
fn a_startup_hook_can_be_read() {
    let bytes = require!(hook());
    let assembly = Assembly::parse(&bytes).unwrap();
    assert_eq!(assembly.name().unwrap().unwrap().name, "startuphook");
    assert_eq!((assembly.is_portable(), assembly.machine(), assembly.system()), (true, None, None));
    let references: Vec<_> = assembly.references().map(Result::unwrap).collect();
    assert!(references.iter().any(|it| it.name == "System.Runtime" && it.version[0] == 8), "{references:?}");
    let class = find(&assembly, "StartupHook");
    assert_eq!((class.namespace, class.nested, assembly.is_generic(&class)), ("", false, Ok(false)));
    let methods: Vec<Method<'_>> = assembly.methods(&class).map(Result::unwrap).collect();
    let initialize = methods.iter().find(|method| method.name == "Initialize").unwrap();
    let signature = Signature { generic: false, parameters: 0, returns_void: true };
    assert_eq!(*initialize, Method { name: "Initialize", is_static: true, is_abstract: false, signature });
}

#[test]
fn types_and_methods_of_a_program_can_be_read() {
    let bytes = require!(shared("apps/dotnet/spin/bin/spin.dll"));
    let assembly = Assembly::parse(&bytes).unwrap();
    assert_eq!(find(&assembly, "<Module>").namespace, "");
    for found in assembly.types().map(Result::unwrap).filter(|found| !found.nested) {
        assert_eq!(assembly.is_generic(&found), Ok(found.name.contains('`')), "{found:?}");
    }
    assert!(assembly.types().map(Result::unwrap).any(|found| found.nested && found.name.starts_with('<')));
}

/// No byte is read after the end of a truncated file, and every missing byte is noticed.
#[test]
fn a_truncated_file_is_rejected() {
    let bytes = require!(hook());
    for n in 0..bytes.len() {
        let Ok(assembly) = Assembly::parse(&bytes[..n]) else { continue };
        // Data after the metadata is not needed here.
        assert!(assembly.types().all(|found| found.is_ok()));
    }
    assert_eq!(Assembly::parse(&bytes[..100]).unwrap_err(), PeError::NotPe);
}

/// A file with any byte changed is read or rejected.
#[test]
fn a_file_with_a_changed_byte_is_read_or_rejected() {
    let mut bytes = require!(hook());
    for n in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            bytes[n] ^= flip;
            if let Ok(assembly) = Assembly::parse(&bytes) {
                let _ = (assembly.name(), assembly.machine(), assembly.references().count());
                for found in assembly.types().flatten() {
                    assert!(assembly.methods(&found).count() < 1_000);
                }
            }
            bytes[n] ^= flip;
        }
    }
}

/// All files of a runtime: each is an assembly whose types and methods can all be read, or is rejected as another file.
#[test]
fn every_file_of_a_runtime_can_be_read_or_rejected() {
    for runtime in require!(RealRuntime::all()) {
        let (mut assemblies, mut precompiled) = (0, 0);
        for path in libraries(&runtime.root().join("shared")) {
            let bytes = fs::read(&path).unwrap();
            let assembly =
                Assembly::parse(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assemblies += 1;
            let name = assembly.name().unwrap().unwrap();
            assert_eq!(Some(name.name), path.file_stem().and_then(|stem| stem.to_str()));
            assert!(assembly.is_portable(), "{}", path.display());
            let made_for = (assembly.machine(), assembly.system());
            // Most files of a runtime are precompiled.
            let expected = [(None, None), (Some("x64"), None), (Some("x64"), Some("Linux"))];
            assert!(expected.contains(&made_for), "{} {made_for:?}", path.display());
            precompiled += u32::from(assembly.system().is_some());
            assert!(assembly.references().all(|it| it.is_ok()));
            let mut methods = 0;
            for found in assembly.types() {
                methods += assembly.methods(&found.unwrap()).map(Result::unwrap).count();
            }
            if name.name == "System.Private.CoreLib" {
                assert!(methods > 20_000, "{methods}");
                let text = find(&assembly, "String");
                assert_eq!((text.namespace, text.nested), ("System", false));
            }
        }
        assert!(assemblies > 100 && precompiled > 100, "{assemblies} in {}", runtime.root().display());
    }
}

fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(libraries(&path));
        } else if path.extension().is_some_and(|extension| extension == "dll") {
            found.push(path);
        }
    }
    found
}

#[test]
fn other_files_are_distinguished() {
    assert_eq!(Assembly::parse(b"\x7fELF").unwrap_err().to_string(), "not a PE file");
    assert_eq!(Assembly::parse(b"").unwrap_err(), PeError::NotPe);
    let mut bytes = require!(hook());
    // Without the directory of the CLI header it is a native library.
    let pe = usize::from(bytes[60]);
    let plus = bytes[pe + 24 + 1] == 2;
    let directory = pe + 24 + if plus { 112 } else { 96 } + 14 * 8;
    bytes[directory..directory + 8].fill(0);
    assert_eq!(Assembly::parse(&bytes).unwrap_err(), PeError::NotManaged);
}
