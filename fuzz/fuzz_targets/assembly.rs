//! Any bytes as a PE file: no panic, and no more items than bytes allow.
#![no_main]

use runtap_os::objfile::pe::Assembly;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let Ok(assembly) = Assembly::parse(file) else { return };
    let _ = (assembly.name(), assembly.machine(), assembly.system(), assembly.is_portable());
    assert!(assembly.references().count() <= file.len());
    let types: Vec<_> = assembly.types().flatten().collect();
    assert!(types.len() <= file.len());
    for found in types.iter().take(16) {
        let _ = assembly.is_generic(found);
        assert!(assembly.methods(found).count() <= file.len());
    }
});
