//! `jvm agent`: the library that the executable contains, as shipped. `tests/it/library.rs` of the agent checks its own build in
//! more detail, for which the linker may choose other symbol versions.

use std::fs;

use runtap_testkit::run;

use crate::common::{command, folder};

fn library() -> Vec<u8> {
    let folder = folder();
    let file = folder.path().join("agent.so");
    let mut agent = command(["jvm", "agent", "-o"]);
    agent.arg(&file);
    run(agent).expect_code(0);
    fs::read(&file).unwrap()
}

#[test]
fn the_embedded_library_is_an_agent_for_jvms() {
    let bytes = library();
    assert!(bytes.starts_with(b"\x7fELF"), "{} bytes", bytes.len());
    assert!(bytes.windows(15).any(|bytes| bytes == b"Agent_OnAttach\0"));
}

#[test]
fn the_library_is_small_and_needs_no_new_glibc() {
    let bytes = library();
    // A development build contains a library that was not optimized.
    if option_env!("RUNTAP_JVM_AGENT_PROFILE") != Some("agent-dev") {
        assert!(bytes.len() <= 1_500_000, "{} bytes", bytes.len());
    }
    // Each required version is a separate entry of the string table: `GLIBC_2.17`.
    let texts = bytes.split(|byte| *byte == 0);
    let versions = texts.filter_map(|text| std::str::from_utf8(text).ok()?.strip_prefix("GLIBC_"));
    let mut seen = 0;
    for version in versions {
        let numbers: Vec<u32> = version.split('.').map(|part| part.parse().unwrap()).collect();
        assert!(numbers <= vec![2, 17], "GLIBC_{version}");
        seen += 1;
    }
    assert!(seen > 0, "the library is linked against glibc");
}
