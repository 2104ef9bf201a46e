//! The agent's library, which is embedded in this executable. See docs/design/jvm-agent-place.md.

use runtap_jvm_attach::{AgentLibrary, agent_file_name};

use crate::embedded;
use crate::exit::{self, expected};

/// The compressed library; empty if this build has none.
const COMPRESSED_LIBRARY: &[u8] = include_bytes!(env!("RUNTAP_JVM_AGENT"));

/// Decompresses the library.
///
/// # Errors
/// Fails if this build contains no library.
pub(super) fn unpack() -> anyhow::Result<AgentLibrary> {
    if COMPRESSED_LIBRARY.is_empty() {
        let hint = "Build runtap on Linux, from the complete repository: cargo install --path crates/runtap"
            .to_owned();
        return Err(expected(exit::FAILED, "this build of runtap contains no agent for JVMs", hint));
    }
    Ok(AgentLibrary { name: name(), bytes: embedded::decompress(COMPRESSED_LIBRARY)? })
}

/// Returns the library's file name, which differs between builds.
pub(super) fn name() -> String {
    agent_file_name(COMPRESSED_LIBRARY)
}
