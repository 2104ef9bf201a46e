//! Any bytes as an ELF file, and what follows its header as notes: no panic, and no more of anything than bytes allow.
#![no_main]

use runtap_objfile::elf::{Header, core_process, notes, segments};

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let rest = file.get(Header::LEN..).unwrap_or_default();
    if let Ok(process) = core_process(notes(rest, 64)) {
        assert!(process.threads.len() <= rest.len());
    }
    let Ok(header) = Header::decode(file) else { return };
    let Some(table) = header.segments else { return };
    let count = table.count_part().map(|_| rest.get(..64).unwrap_or(rest));
    let Ok(part) = table.part(count) else { return };
    assert!(segments(rest.get(..part.len).unwrap_or(rest)).count() <= rest.len());
});
