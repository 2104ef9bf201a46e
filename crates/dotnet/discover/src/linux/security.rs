//! The kernel's security settings for a process: Yama's ptrace scope and security modules. Source: `proc(5)`, the kernel's
//! `Yama.rst`.

use std::path::Path;

use runtap_transport::linux::{self, ProcDir};

/// The security settings of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Yama's ptrace scope, 0 to 3. `None` without Yama.
    pub ptrace_scope: Option<u8>,
    /// The active security modules, in the kernel's order. Empty if unknown.
    pub modules: Vec<String>,
    /// Whether `SELinux` enforces its policy instead of only logging. `None` without `SELinux`.
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

/// Returns the label that a security module has assigned to a process, such as `docker-default (enforce)` or
/// `system_u:system_r:app_t:s0`. `None` without a module, without permission to read it, and for unconfined processes.
pub(super) fn label(dir: &ProcDir) -> Option<String> {
    // With several modules, the plain file belongs to the first one.
    let text = dir.read("attr/apparmor/current").or_else(|_| dir.read("attr/current")).ok()?;
    let label = first_line(&text);
    (!matches!(label.as_str(), "" | "unconfined" | "kernel")).then_some(label)
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
}
