//! Any bytes as an ELF file: no panic, and no more of anything than bytes allow.
#![no_main]

use runtap_objfile::elf::{CoreFile, Header, exports};

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let core = CoreFile::inspect(file);
    if let Ok(core) = &core {
        assert!(core.process.threads.len() <= file.len() && core.bytes == file.len() as u64);
    }
    let _ = exports(file, ["DotNetRuntimeInfo"]);
    // Whatever the rest says, one with a header that can't be read is nothing.
    assert!(Header::decode(file).is_ok() || core.is_err());
});
