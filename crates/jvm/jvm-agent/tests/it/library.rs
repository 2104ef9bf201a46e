//! The library's imports and exports. The optimized library that is shipped is checked where it is embedded
//! (`crates/runtap/tests/e2e/cli_jvm_library.rs`).

use object::read::elf::{Dyn as _, FileHeader as _, Sym as _};
use object::{Endianness, elf};

use crate::common::library;

type Elf = elf::FileHeader64<Endianness>;

/// Returns `GLIBC_2.17` as numbers.
fn number(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().expect("a number")).collect()
}

#[test]
fn it_needs_no_newer_glibc_than_2_17() {
    let bytes = std::fs::read(library()).unwrap();
    let data = bytes.as_slice();
    let header = Elf::parse(data).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, data).unwrap();
    let (mut needs, link) = sections.gnu_verneed(endian, data).unwrap().expect("versions that it needs");
    let strings = sections.strings(endian, data, link).unwrap();
    let mut seen = 0;
    while let Some((_, mut versions)) = needs.next().unwrap() {
        while let Some(version) = versions.next().unwrap() {
            let name = std::str::from_utf8(version.name(endian, strings).unwrap()).unwrap();
            if let Some(version) = name.strip_prefix("GLIBC_") {
                seen += 1;
                assert!(number(version) <= number("2.17"), "{name}");
            }
        }
    }
    assert!(seen > 0, "it is linked against glibc");
}

#[test]
fn it_exports_what_a_jvm_looks_for_and_nothing_else() {
    let bytes = std::fs::read(library()).unwrap();
    let data = bytes.as_slice();
    let header = Elf::parse(data).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, data).unwrap();
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM).unwrap();
    let defined = symbols.iter().filter(|symbol| symbol.is_definition(endian, symbols.strings()));
    let mut names: Vec<_> =
        defined.map(|symbol| String::from_utf8_lossy(symbols.symbol_name(endian, symbol).unwrap())).collect();
    names.sort();
    assert_eq!(names, ["Agent_OnAttach", "Agent_OnLoad", "Agent_OnUnload"]);
}

/// A JVM that unloads the library (because the agent did not start) leaves it mapped: threads may be in it.
#[test]
fn it_stays_where_it_is() {
    let bytes = std::fs::read(library()).unwrap();
    let data = bytes.as_slice();
    let header = Elf::parse(data).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, data).unwrap();
    let (dynamic, _) = sections.dynamic(endian, data).unwrap().expect("what the loader is told");
    let flags = dynamic.iter().find(|entry| entry.tag32(endian).map(i64::from) == Some(elf::DT_FLAGS_1.0));
    let flags = flags.expect("flags").d_val.get(endian);
    assert_ne!(flags & elf::DF_1_NODELETE.0, 0, "{flags:#x}");
}
