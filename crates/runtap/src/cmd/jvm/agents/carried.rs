//! The agent's library, which is embedded in this executable. See docs/design/jvm-agent-place.md.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use runtap_jvm_attach::{AgentLibrary, agent_file_name};

use crate::exit::{self, expected};

/// The compressed library; empty if this build has none.
const COMPRESSED_LIBRARY: &[u8] = include_bytes!(env!("RUNTAP_JVM_AGENT"));

/// Decompresses the library.
///
/// # Errors
/// Fails if this build contains no library.
pub(super) fn unpack() -> anyhow::Result<AgentLibrary> {
    if COMPRESSED_LIBRARY.is_empty() {
        let hint =
            "build it on Linux, from the whole repository: cargo install --path crates/runtap".to_owned();
        return Err(expected(exit::FAILED, "this build of runtap carries no agent for JVMs", hint));
    }
    let mut bytes = Vec::new();
    ZlibDecoder::new(COMPRESSED_LIBRARY).read_to_end(&mut bytes)?;
    Ok(AgentLibrary { name: name(), bytes })
}

/// Returns the library's file name, which differs between builds.
pub(super) fn name() -> String {
    agent_file_name(COMPRESSED_LIBRARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_library_is_an_agent_for_jvms() {
        let carried = unpack().unwrap();
        assert!(carried.bytes.starts_with(b"\x7fELF"), "{} bytes", carried.bytes.len());
        assert!(carried.bytes.windows(15).any(|bytes| bytes == b"Agent_OnAttach\0"));
    }

    /// Checks the library as shipped, built with its own profile. `tests/it/library.rs` of the agent checks its own build in
    /// more detail, for which the linker may choose other symbol versions.
    #[test]
    fn the_library_is_small_and_needs_no_new_glibc() {
        let bytes = unpack().unwrap().bytes;
        // A development build carries a library that was not optimized.
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
        assert!(seen > 0, "it is linked against glibc");
    }
}
