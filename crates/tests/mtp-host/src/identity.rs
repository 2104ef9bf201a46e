//! The identity that a process sends in its handshake. The properties without which `dotnet test` crashes (SDK
//! 10.0.401: `KeyNotFoundException` for each of the properties 1, 2, 4, 5, 7 and 8) are always present.

use std::env;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process;

use runtap_mtp_proto::{ExecutionMode, Handshake, HandshakeKey, HostType, Versions};

use crate::HostError;

/// The variable with the id of the run, which a server or a parent process may set.
pub const EXECUTION_ID: &str = "TESTINGPLATFORM_DOTNETTEST_EXECUTIONID";
/// The variable with the number of the attempt, which an orchestrator sets.
pub const ATTEMPT_NUMBER: &str = "TESTINGPLATFORM_DOTNETTEST_ATTEMPTNUMBER";
/// The variable with exit codes that count as success.
pub(crate) const EXIT_CODE_IGNORE: &str = "TESTINGPLATFORM_EXITCODE_IGNORE";

/// The role of a process in its application.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// Runs the tests, as the attempt with this number.
    TestHost {
        /// The number of the attempt, starting at 1.
        attempt: NonZeroU32,
    },
    /// Started a test host and monitors it. Its connection carries artifacts only.
    Controller,
    /// Starts the application once per attempt. Its connection carries only the handshake.
    Orchestrator {
        /// The extension that repeats tests, such as `RetryOrchestrator`.
        feature: String,
    },
}

impl Role {
    /// Returns a test host, with the attempt from the environment, or the first attempt if the variable is not set.
    ///
    /// # Errors
    /// Returns an error if the variable is set and is not a positive number. The platform's own hosts fail in this case
    /// too.
    pub fn test_host() -> Result<Self, HostError> {
        let attempt = match env::var(ATTEMPT_NUMBER) {
            Ok(text) => text.parse().map_err(|_no_number| HostError::Attempt(text))?,
            Err(env::VarError::NotPresent) => NonZeroU32::MIN,
            Err(env::VarError::NotUnicode(text)) => {
                return Err(HostError::Attempt(text.to_string_lossy().into_owned()));
            }
        };
        Ok(Self::TestHost { attempt })
    }

    fn host_type(&self) -> HostType {
        match self {
            Self::TestHost { .. } => HostType::TestHost,
            Self::Controller => HostType::TestHostController,
            Self::Orchestrator { .. } => HostType::TestHostOrchestrator,
        }
    }
}

/// The properties of a handshake. All processes of an application must agree on framework, architecture and execution
/// id, otherwise `dotnet test` crashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The test framework; `.NET 10.0.12` is shown as `net10.0`, other texts are shown unchanged.
    pub framework: String,
    /// The processor architecture: `X64`, `Arm64` and others.
    pub architecture: String,
    /// The operating system.
    pub os: String,
    /// The file of the application.
    pub module: PathBuf,
    /// The id of the run.
    pub execution_id: String,
    /// The id of this connection. Another connection with a different id is a shard or a retry.
    pub instance_id: String,
}

impl Identity {
    /// Returns the identity of this program: framework `native`, and the id of the run from the environment or a new
    /// one.
    pub fn this_program() -> Self {
        let architecture = match env::consts::ARCH {
            "x86_64" => "X64",
            "x86" => "X86",
            "aarch64" => "Arm64",
            "arm" => "Arm",
            "riscv64" => "RiscV64",
            "s390x" => "S390x",
            "loongarch64" => "LoongArch64",
            other => other,
        };
        let module = env::current_exe().ok().or_else(|| env::args_os().next().map(PathBuf::from));
        Self {
            framework: "native".to_owned(),
            architecture: architecture.to_owned(),
            os: env::consts::OS.to_owned(),
            module: module.unwrap_or_default(),
            execution_id: env::var(EXECUTION_ID).ok().filter(|id| !id.is_empty()).unwrap_or_else(new_id),
            instance_id: new_id(),
        }
    }

    pub(crate) fn handshake(&self, role: &Role, mode: &ExecutionMode) -> Handshake {
        let mut handshake = Handshake::new()
            .with(HandshakeKey::PID, process::id().to_string())
            .with(HandshakeKey::ARCHITECTURE, self.architecture.as_str())
            .with(HandshakeKey::FRAMEWORK, self.framework.as_str())
            .with(HandshakeKey::OS, self.os.as_str())
            .with(HandshakeKey::SUPPORTED_VERSIONS, Versions::all().to_string())
            .with(HandshakeKey::HOST_TYPE, role.host_type().as_str())
            .with(HandshakeKey::MODULE_PATH, self.module.to_string_lossy())
            .with(HandshakeKey::EXECUTION_ID, self.execution_id.as_str())
            .with(HandshakeKey::INSTANCE_ID, self.instance_id.as_str())
            .with(HandshakeKey::EXECUTION_MODE, mode.as_str());
        match role {
            Role::TestHost { attempt } => handshake.set(HandshakeKey::ATTEMPT_NUMBER, attempt.to_string()),
            Role::Controller => {}
            Role::Orchestrator { feature } => {
                handshake.set(HandshakeKey::ORCHESTRATOR_FEATURE, feature.as_str());
            }
        }
        handshake
    }

    /// Returns the environment variables that make a child process the test host of an attempt of this run.
    pub fn for_attempt(&self, attempt: NonZeroU32) -> [(&'static str, String); 2] {
        [(EXECUTION_ID, self.execution_id.clone()), (ATTEMPT_NUMBER, attempt.to_string())]
    }
}

/// Returns a unique id of 32 hexadecimal digits: .NET's GUID format `N`.
pub(crate) fn new_id() -> String {
    // `RandomState` has a random seed per process, and differs between instances.
    let random = || RandomState::new().hash_one(process::id());
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_required_by_the_sdk_are_always_present() {
        let identity = Identity::this_program();
        for role in [
            Role::TestHost { attempt: NonZeroU32::MIN },
            Role::Controller,
            Role::Orchestrator { feature: "RetryOrchestrator".into() },
        ] {
            let handshake = identity.handshake(&role, &ExecutionMode::Run);
            for key in [1, 2, 4, 5, 7, 8] {
                assert!(handshake.get(HandshakeKey(key)).is_some_and(|value| !value.is_empty()), "{key}");
            }
            assert_eq!(handshake.versions(), Some(Versions::all()));
            assert_eq!(handshake.attempt_number().is_some(), matches!(role, Role::TestHost { .. }));
            assert_eq!(handshake.orchestrator_feature().is_some(), matches!(role, Role::Orchestrator { .. }));
        }
    }

    #[test]
    fn ids_are_new_each_time() {
        let ids = [new_id(), new_id(), new_id()];
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|c| c.is_ascii_hexdigit())));
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }
}
