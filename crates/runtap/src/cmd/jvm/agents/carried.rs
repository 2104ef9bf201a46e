//! The agent's library, which this program carries, and what it is told. docs/design/jvm-agent-place.md says why.

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;

use flate2::read::ZlibDecoder;
use runtap_jvm_attach::Jvm;

use crate::exit::{self, expected};

/// How the name of the library begins, also of one that another build of ours has loaded. The rest says which build it is.
pub(super) const NAME: &str = "libruntap_jvm_agent";
/// The option by which it leaves.
pub(super) const DETACH: &str = "detach";

/// Compressed; empty where there is none.
const PACKED: &[u8] = include_bytes!(env!("RUNTAP_JVM_AGENT"));

/// The library.
#[derive(Debug)]
pub(super) struct Carried {
    /// The name of its file: another one for another build.
    pub(super) name: String,
    /// What is in it.
    pub(super) bytes: Vec<u8>,
}

impl Carried {
    /// Unpacks it.
    ///
    /// # Errors
    /// There is none in this build.
    pub(super) fn unpack() -> anyhow::Result<Self> {
        if PACKED.is_empty() {
            let hint =
                "build it on Linux, from the whole repository: cargo install --path crates/runtap".to_owned();
            return Err(expected(exit::FAILED, "this build of runtap carries no agent for JVMs", hint));
        }
        let mut bytes = Vec::new();
        ZlibDecoder::new(PACKED).read_to_end(&mut bytes)?;
        Ok(Self { name: name(), bytes })
    }
}

/// The name of the library's file: another one for another build.
pub(super) fn name() -> String {
    format!("{NAME}-{:016x}.so", fingerprint(PACKED))
}

/// FNV-1a: tells builds apart, and nothing is trusted for it.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// What the agent is told: where HQ is, and whether classes of the JDK are wanted. All else HQ says.
pub(super) fn options(hq: SocketAddr, boot: bool) -> String {
    format!("host={},port={}{}", hq.ip(), hq.port(), if boot { ",boot=yes" } else { "" })
}

/// The same for a command, whose variables outlive HQ: a JVM that starts later does not wait for it.
pub(super) fn options_of_a_command(hq: SocketAddr, boot: bool) -> String {
    format!("{},retry=no", options(hq, boot))
}

/// The same for a host by its name. In a value a comma and a backslash stand behind a backslash.
pub(super) fn options_for(host: &str, port: u16) -> String {
    format!("host={},port={port}", host.replace('\\', "\\\\").replace(',', "\\,"))
}

/// The same for a JVM that is to obey this user's HQ. Its own user and root it obeys anyhow; in another user namespace the
/// numbers of users are others.
pub(super) fn options_for_user(options: &str, user: u32, jvm: &Jvm) -> String {
    if jvm.has_other_users() {
        format!("{options},hq-user=any")
    } else if user == 0 || user == jvm.user() {
        options.to_owned()
    } else {
        format!("{options},hq-user={user}")
    }
}

/// The same, and where it says why it refuses.
pub(super) fn with_answer(options: &str, answer: &Path) -> String {
    format!("{options},answer={}", answer.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_one() {
        let carried = Carried::unpack().unwrap();
        assert!(carried.bytes.starts_with(b"\x7fELF"), "{} bytes", carried.bytes.len());
        assert!(carried.bytes.windows(15).any(|bytes| bytes == b"Agent_OnAttach\0"));
        assert!(carried.name.starts_with(NAME) && carried.name.strip_suffix(".so").is_some());
    }

    /// This is the library that is shipped, with its own profile. `tests/it/library.rs` of the agent looks at its own build in
    /// more detail; the linker can find other versions for another profile.
    #[test]
    fn the_library_is_small_and_needs_no_new_glibc() {
        let bytes = Carried::unpack().unwrap().bytes;
        assert!(bytes.len() <= 1_500_000, "{} bytes", bytes.len());
        // Each version that is needed is a text of its own in the table of names: `GLIBC_2.17`.
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
    fn what_it_is_told() {
        let hq = "127.0.0.1:80".parse().unwrap();
        assert_eq!(options(hq, false), "host=127.0.0.1,port=80");
        assert_eq!(options_of_a_command(hq, true), "host=127.0.0.1,port=80,boot=yes,retry=no");
        assert_eq!(options_for("a,b\\c", 1), "host=a\\,b\\\\c,port=1");
    }
}
