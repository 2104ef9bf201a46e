//! The agent's library, which is embedded in this executable, and the options it is loaded with. See
//! docs/design/jvm-agent-place.md.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;

use flate2::read::ZlibDecoder;
use runtap_jvm_attach::Jvm;

use crate::exit::{self, expected};

/// The beginning of the library's file name, common to all builds of runtap. The remainder identifies the build.
pub(super) const NAME: &str = "libruntap_jvm_agent";
/// The option that unloads the agent.
pub(super) const DETACH: &str = "detach";

/// The compressed library; empty if this build has none.
const COMPRESSED_LIBRARY: &[u8] = include_bytes!(env!("RUNTAP_JVM_AGENT"));

/// The agent's library, decompressed.
#[derive(Debug)]
pub(super) struct AgentLibrary {
    /// The file name, which differs between builds.
    pub(super) name: String,
    /// The contents of the file.
    pub(super) bytes: Vec<u8>,
}

impl AgentLibrary {
    /// Decompresses the library.
    ///
    /// # Errors
    /// Fails if this build contains no library.
    pub(super) fn unpack() -> anyhow::Result<Self> {
        if COMPRESSED_LIBRARY.is_empty() {
            let hint =
                "build it on Linux, from the whole repository: cargo install --path crates/runtap".to_owned();
            return Err(expected(exit::FAILED, "this build of runtap carries no agent for JVMs", hint));
        }
        let mut bytes = Vec::new();
        ZlibDecoder::new(COMPRESSED_LIBRARY).read_to_end(&mut bytes)?;
        Ok(Self { name: name(), bytes })
    }
}

/// Returns the library's file name, which differs between builds.
pub(super) fn name() -> String {
    format!("{NAME}-{:016x}.so", fingerprint(COMPRESSED_LIBRARY))
}

/// FNV-1a: only distinguishes builds; nothing relies on it for security.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Returns the agent's options: the collector's address, and whether to trace classes of the JDK. The collector sends the rest
/// of the configuration.
pub(super) fn options(hq: SocketAddr, boot: bool) -> String {
    format!("host={},port={}{}", hq.ip(), hq.port(), if boot { ",boot=yes" } else { "" })
}

/// Returns the agent's options for a command. Its environment outlives the collector, so a JVM that starts later must not
/// retry.
pub(super) fn options_for_command(hq: SocketAddr, boot: bool) -> String {
    format!("{},retry=no", options(hq, boot))
}

/// Returns the agent's options for a host name. Commas and backslashes in a value are escaped with a backslash.
pub(super) fn options_for_host(host: &str, port: u16) -> String {
    format!("host={},port={port}", host.replace('\\', "\\\\").replace(',', "\\,"))
}

/// Adds the option that makes a JVM accept a collector of this user. A JVM always accepts its own user and root. In another
/// user namespace user ids differ, so any user is accepted there.
pub(super) fn options_for_user(options: &str, user: u32, jvm: &Jvm) -> String {
    if jvm.has_other_users() {
        format!("{options},hq-user=any")
    } else if user == 0 || user == jvm.user() {
        options.to_owned()
    } else {
        format!("{options},hq-user={user}")
    }
}

/// Adds the path of the file in which the agent reports why it does not start.
pub(super) fn with_answer(options: &str, answer: &Path) -> String {
    format!("{options},answer={}", answer.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_library_is_an_agent_for_jvms() {
        let carried = AgentLibrary::unpack().unwrap();
        assert!(carried.bytes.starts_with(b"\x7fELF"), "{} bytes", carried.bytes.len());
        assert!(carried.bytes.windows(15).any(|bytes| bytes == b"Agent_OnAttach\0"));
        assert!(carried.name.starts_with(NAME) && carried.name.strip_suffix(".so").is_some());
    }

    /// Checks the library as shipped, built with its own profile. `tests/it/library.rs` of the agent checks its own build in
    /// more detail, for which the linker may choose other symbol versions.
    #[test]
    fn the_library_is_small_and_needs_no_new_glibc() {
        let bytes = AgentLibrary::unpack().unwrap().bytes;
        assert!(bytes.len() <= 1_500_000, "{} bytes", bytes.len());
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

    #[test]
    fn options_contain_the_collectors_address_escaped() {
        let hq = "127.0.0.1:80".parse().unwrap();
        assert_eq!(options(hq, false), "host=127.0.0.1,port=80");
        assert_eq!(options_for_command(hq, true), "host=127.0.0.1,port=80,boot=yes,retry=no");
        assert_eq!(options_for_host("a,b\\c", 1), "host=a\\,b\\\\c,port=1");
    }
}
