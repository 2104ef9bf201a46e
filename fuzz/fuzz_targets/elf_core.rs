//! Any bytes as an ELF file, and as a minidump: no panic, and no more items than bytes allow.
#![no_main]

use runtap_os::objfile::elf::{CoreFile, Header, exports};
use runtap_os::objfile::minidump;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let core = CoreFile::inspect(file);
    if let Ok(core) = &core {
        assert!(core.process.threads.len() <= file.len() && core.bytes == file.len() as u64);
    }
    if let Ok(core) = minidump::inspect(file) {
        assert!(core.process.threads.len() <= file.len() && core.memory <= file.len() as u64);
    }
    let _ = exports(file, ["DotNetRuntimeInfo"]);
    // A file whose header can't be read is never accepted as a core.
    assert!(Header::decode(file).is_ok() || core.is_err());
});
