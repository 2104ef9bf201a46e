//! Runtap's agent: the name of its library, its options, loading it into a JVM and unloading it.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::client::Client;
use crate::codec::LoadError;
use crate::error::AttachError;
use crate::jvm::Jvm;
use crate::library::{AgentAnswer, PlacedLibrary};

/// The beginning of the library's file name, common to all builds of runtap. The remainder identifies the build.
pub const AGENT_NAME: &str = "libruntap_jvm_agent";
/// The option that unloads the agent.
const DETACH: &str = "detach";
/// The first version of Java whose JVMs print a warning when an agent is loaded (JEP 451).
const FIRST_WARNING_VERSION: u32 = 21;
/// The time within which the process of a JVM that is shutting down must exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The agent's library.
#[derive(Debug)]
pub struct AgentLibrary {
    /// The file name, which differs between builds.
    pub name: String,
    /// The contents of the file.
    pub bytes: Vec<u8>,
}

/// Returns the file name for a library with this content, which differs between builds.
pub fn agent_file_name(content: &[u8]) -> String {
    format!("{AGENT_NAME}-{:016x}.so", fingerprint(content))
}

/// FNV-1a: only distinguishes builds; nothing relies on it for security.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The options of the agent: the collector's address and what the collector cannot configure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentOptions(String);

impl AgentOptions {
    /// Creates options for a collector at a host name and port. Commas and backslashes in a value are escaped with a
    /// backslash.
    pub fn connecting_to(host: &str, port: u16) -> Self {
        Self(format!("host={},port={port}", host.replace('\\', "\\\\").replace(',', "\\,")))
    }

    /// Creates options for a collector at an address.
    pub fn connecting_to_address(hq: SocketAddr) -> Self {
        Self::connecting_to(&hq.ip().to_string(), hq.port())
    }

    /// Adds that classes of the JDK are traced as well, if `boot` is set.
    #[must_use]
    pub fn with_boot_classes(self, boot: bool) -> Self {
        if boot { Self(self.0 + ",boot=yes") } else { self }
    }

    /// Adds that the agent does not retry to connect: a command's environment outlives the collector, and JVMs may
    /// start later.
    #[must_use]
    pub fn without_retry(self) -> Self {
        Self(self.0 + ",retry=no")
    }

    /// Adds that a JVM accepts a collector of this user. A JVM always accepts its own user and root. In another user
    /// namespace user ids differ, so any user is accepted there.
    #[must_use]
    pub fn for_user(self, user: u32, jvm: &Jvm) -> Self {
        if jvm.has_other_users() {
            Self(self.0 + ",hq-user=any")
        } else if user == 0 || user == jvm.user() {
            self
        } else {
            Self(format!("{},hq-user={user}", self.0))
        }
    }

    /// Returns the options as the agent parses them.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds the path of the file in which the agent reports why it does not start.
fn with_answer(options: &str, answer: &Path) -> String {
    format!("{options},answer={}", answer.display())
}

impl Client {
    /// Loads the agent, or passes new options to one that is already loaded. Calls `warns` if the JVM is about to
    /// print a warning that an agent is loaded.
    ///
    /// # Errors
    /// Fails if the agent does not start.
    pub async fn load_agent(
        &self,
        library: AgentLibrary,
        options: &AgentOptions,
        warns: impl FnOnce(),
    ) -> Result<(), AttachError> {
        // Also checks that the JVM responds, before the longer time-out of loading applies.
        let version = self.java_version().await?;
        let answer = AgentAnswer::create(self.jvm()).await?;
        let options = with_answer(options.as_str(), answer.path());
        let refused = |error| match (error, answer.read()) {
            (AttachError::NotLoaded(LoadError::Failed { .. }), Some(why)) => {
                AttachError::AgentRefused { pid: self.jvm().pid(), why }
            }
            (error, _) => error,
        };
        for path in self.loaded_libraries(&library.name)? {
            match self.load(&path, &options).await {
                Ok(()) => return Ok(()),
                // The JVM tried to open the file again, which has been deleted.
                Err(AttachError::NotLoaded(LoadError::NotLoaded { .. })) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        if version >= FIRST_WARNING_VERSION
            && self.jvm().has_option("EnableDynamicAgentLoading") != Some(true)
        {
            warns();
        }
        let placed = PlacedLibrary::write(self.jvm(), &library.name, library.bytes).await?;
        self.load(placed.path(), &options).await.map_err(refused)
    }

    /// Returns the major version of Java; 0 if unknown.
    async fn java_version(&self) -> Result<u32, AttachError> {
        let properties = self.properties().await?;
        let version = properties.get("java.specification.version");
        Ok(version.and_then(|version| version.parse().ok()).unwrap_or(0))
    }

    /// Unloads all agents of runtap, of any build; `name` is the file name of this build's library. Returns whether
    /// one of them was tracing.
    ///
    /// # Errors
    /// Fails if an agent cannot be unloaded.
    pub async fn unload_agents(&self, name: &str) -> Result<bool, AttachError> {
        let mut traced = false;
        for path in &self.loaded_libraries(AGENT_NAME)? {
            // Agents of other builds may not support the answer file.
            if path.file_name().is_none_or(|found| found != name) {
                self.load(path, DETACH).await?;
                traced = true;
                continue;
            }
            let answer = AgentAnswer::create(self.jvm()).await?;
            self.load(path, &with_answer(DETACH, answer.path())).await?;
            traced |= answer.read().is_none();
        }
        Ok(traced)
    }

    /// Returns whether a command has failed because the JVM has exited. A JVM that shuts down closes its connections
    /// and rejects commands before its process exits.
    pub async fn has_exited(&self, error: &AttachError) -> bool {
        match error {
            AttachError::NoProcess { .. } => true,
            AttachError::Stopped { .. } => false,
            _ => {
                let exited = async {
                    while !self.jvm().has_ended() {
                        tokio::time::sleep(POLL_INTERVAL).await;
                    }
                };
                tokio::time::timeout(EXIT_TIMEOUT, exited).await.is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_contain_the_collectors_address_escaped() {
        let hq = AgentOptions::connecting_to_address("127.0.0.1:80".parse().unwrap());
        assert_eq!(hq.clone().with_boot_classes(false).as_str(), "host=127.0.0.1,port=80");
        let command = hq.with_boot_classes(true).without_retry();
        assert_eq!(command.to_string(), "host=127.0.0.1,port=80,boot=yes,retry=no");
        assert_eq!(AgentOptions::connecting_to("a,b\\c", 1).as_str(), "host=a\\,b\\\\c,port=1");
    }

    #[test]
    fn builds_have_different_file_names() {
        let names = [&b"one"[..], b"two"].map(agent_file_name);
        assert!(names.iter().all(|name| name.starts_with(AGENT_NAME) && name.strip_suffix(".so").is_some()));
        assert_ne!(names[0], names[1]);
    }
}
