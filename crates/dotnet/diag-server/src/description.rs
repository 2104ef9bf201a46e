//! The description of the server's process.

use std::hash::{BuildHasher, RandomState};

use runtap_diag_proto::{ProcessInfo, Variable};
use uuid::Uuid;

/// A description of the process, as in ProcessInfo.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessDescription {
    /// The reply to every form of ProcessInfo; older forms omit fields.
    pub info: ProcessInfo,
    /// The reply to ProcessEnvironment. `None` means this process's current variables.
    pub environment: Option<Vec<Variable>>,
}

impl ProcessDescription {
    /// Describes this process: its pid, arguments, system and executable, with a new cookie. The runtime version is
    /// that of this crate.
    pub fn of_this_process() -> Self {
        let command_line: Vec<_> =
            std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let program = std::env::current_exe().ok();
        let name = program.as_deref().and_then(|path| path.file_stem());
        let arch = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            "arm" => "arm32",
            other => other,
        };
        let (os, rid) = match std::env::consts::OS {
            "linux" if cfg!(target_env = "musl") => ("Linux", "linux-musl"),
            "linux" => ("Linux", "linux"),
            "macos" => ("macOS", "osx"),
            "windows" => ("Windows", "win"),
            other => (other, other),
        };
        Self {
            info: ProcessInfo {
                process_id: u64::from(std::process::id()),
                runtime_cookie: random_cookie(),
                command_line: command_line.join(" "),
                os: os.to_owned(),
                arch: arch.to_owned(),
                entry_assembly: name.map(|name| name.to_string_lossy().into_owned()),
                runtime_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                portable_rid: Some(format!("{rid}-{arch}")),
            },
            environment: None,
        }
    }

    /// Sets the name of the entry assembly.
    #[must_use]
    pub fn entry_assembly(mut self, name: impl Into<String>) -> Self {
        self.info.entry_assembly = Some(name.into());
        self
    }

    /// Sets the runtime version.
    #[must_use]
    pub fn runtime_version(mut self, version: impl Into<String>) -> Self {
        self.info.runtime_version = Some(version.into());
        self
    }

    /// Sets a fixed environment instead of this process's own.
    #[must_use]
    pub fn environment(mut self, variables: Vec<Variable>) -> Self {
        self.environment = Some(variables);
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let Some(fixed) = &self.environment else {
            // No variable has such a name, so the system is not queried.
            let is_valid = !name.is_empty() && !name.contains(['=', '\0']);
            return is_valid
                .then(|| std::env::var_os(name))?
                .map(|value| value.to_string_lossy().into_owned());
        };
        let found = fixed.iter().find(|variable| variable.name() == name)?;
        found.value().map(str::to_owned)
    }

    pub(crate) fn variables(&self) -> Vec<Variable> {
        let own = || {
            std::env::vars_os()
                .map(|(name, value)| Variable::new(&name.to_string_lossy(), &value.to_string_lossy()))
                .collect()
        };
        self.environment.clone().unwrap_or_else(own)
    }
}

/// Returns a cookie that differs between processes and calls. Not secret.
fn random_cookie() -> Uuid {
    let half = || RandomState::new().hash_one(std::process::id());
    Uuid::from_u64_pair(half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described() {
        let description = ProcessDescription::of_this_process();
        assert_eq!(description.info.process_id, u64::from(std::process::id()));
        assert!(description.info.command_line.contains("runtap_diag"), "{description:?}");
        assert_ne!(description.info.runtime_cookie, Uuid::nil());
        assert_ne!(
            description.info.runtime_cookie,
            ProcessDescription::of_this_process().info.runtime_cookie
        );
        let path = std::env::var_os("PATH").unwrap();
        let found = description.variables().into_iter().find(|variable| variable.name() == "PATH").unwrap();
        assert_eq!(found.value(), Some(&*path.to_string_lossy()));
    }
}
