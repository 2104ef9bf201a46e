//! What the kernel's security settings say of a process: capabilities, yama's ptrace scope, security modules.
//! Only reads; what follows from it is the diagnosis's. Source: `proc(5)`, the kernel's `Yama.rst`, `capabilities(7)`.

use std::path::Path;

use super::linux::{self, ProcDir};

/// `CAP_SYS_PTRACE`: may look into and trace processes of others.
pub const CAP_SYS_PTRACE: u32 = 19;
/// `CAP_DAC_OVERRIDE`: file modes do not count.
const CAP_DAC_OVERRIDE: u32 = 1;

/// The settings of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Yama's ptrace scope, 0 to 3; `None` without yama.
    pub ptrace_scope: Option<u8>,
    /// The active security modules, as the kernel lists them. Empty where it does not tell.
    pub modules: Vec<String>,
    /// Whether `SELinux` enforces its policy (and not only logs); `None` without `SELinux`.
    pub selinux_enforcing: Option<bool>,
}

impl Policy {
    pub(super) fn read(proc_root: &Path, sys_root: &Path) -> Self {
        let text = |path: &Path| linux::read(path).ok().map(|text| first_line(&text));
        let list = text(&sys_root.join("kernel/security/lsm")).unwrap_or_default();
        Self {
            ptrace_scope: text(&proc_root.join("sys/kernel/yama/ptrace_scope"))
                .and_then(|scope| scope.parse().ok()),
            modules: list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            selinux_enforcing: text(&sys_root.join("fs/selinux/enforce")).map(|enforce| enforce == "1"),
        }
    }
}

/// The rights of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Whether it has this one.
    pub fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 == 1
    }

    /// Whether file modes do not bind it.
    pub fn overrides_modes(self) -> bool {
        self.has(CAP_DAC_OVERRIDE)
    }
}

/// The label that a security module has put on a process: `docker-default (enforce)`, `system_u:system_r:app_t:s0`.
/// `None` without a module, without a right to ask, and for a process that is not confined.
pub(super) fn label(dir: &ProcDir) -> Option<String> {
    // With several modules the plain file belongs to the first one.
    let text = dir.read("attr/apparmor/current").or_else(|_| dir.read("attr/current")).ok()?;
    let label = first_line(&text);
    (!matches!(label.as_str(), "" | "unconfined" | "kernel")).then_some(label)
}

/// A capability set of `/proc/PID/status`, in hexadecimal.
pub(super) fn parse_capabilities(text: &str) -> Option<Capabilities> {
    u64::from_str_radix(text.trim(), 16).ok().map(Capabilities)
}

fn first_line(text: &[u8]) -> String {
    let line = text.split(|b| matches!(b, b'\n' | 0)).next().unwrap_or_default();
    String::from_utf8_lossy(line).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_machine_with_everything_and_one_with_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        assert_eq!(Policy::read(&proc, &sys), Policy::default());
        for (path, text) in [
            ("proc/sys/kernel/yama/ptrace_scope", "2\n"),
            ("sys/kernel/security/lsm", "lockdown,capability,yama,apparmor"),
            ("sys/fs/selinux/enforce", "1"),
        ] {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), text).unwrap();
        }
        let policy = Policy::read(&proc, &sys);
        assert_eq!(policy.ptrace_scope, Some(2));
        assert_eq!(policy.modules, ["lockdown", "capability", "yama", "apparmor"]);
        assert_eq!(policy.selinux_enforcing, Some(true));
    }

    #[test]
    fn labels() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("1/attr/apparmor")).unwrap();
        let dir = ProcDir::open(root.path(), 1).unwrap();
        assert_eq!(label(&dir), None);
        fs::write(root.path().join("1/attr/current"), "system_u:system_r:app_t:s0\0").unwrap();
        assert_eq!(label(&dir).as_deref(), Some("system_u:system_r:app_t:s0"));
        fs::write(root.path().join("1/attr/apparmor/current"), "docker-default (enforce)\n").unwrap();
        assert_eq!(label(&dir).as_deref(), Some("docker-default (enforce)"));
        fs::write(root.path().join("1/attr/apparmor/current"), "unconfined\n").unwrap();
        assert_eq!(label(&dir), None);
    }

    #[test]
    fn capabilities() {
        let all = parse_capabilities("\t000001ffffffffff").unwrap();
        assert!(all.has(CAP_SYS_PTRACE) && all.overrides_modes());
        let docker = parse_capabilities("00000000a80425fb").unwrap();
        assert!(!docker.has(CAP_SYS_PTRACE) && docker.overrides_modes());
        assert_eq!(parse_capabilities("x"), None);
    }
}
