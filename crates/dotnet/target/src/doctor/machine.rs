//! What is wrong with the machine, for all its processes. Pure.

use std::path::PathBuf;

use runtap_discover::{CAP_SYS_PTRACE, Code, Fix, Machine, Reason, TempState};

use super::{Finding, Severity};

/// What is wrong with a machine. `leftovers` are those of its sockets on which truly nobody listens: whoever calls has
/// tried.
pub fn machine(machine: &Machine, leftovers: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let temp = machine.temp.path.display();
    let unusable = match machine.temp.state {
        TempState::Missing => Some("does not exist"),
        TempState::ReadOnly => Some("is mounted read-only"),
        TempState::NotWritable => Some("can't be written to by us"),
        _ => None,
    };
    if let Some(what) = unusable {
        let detail = format!(
            "our temporary directory {temp} {what}: no process with it has a socket, and we can't listen"
        );
        findings.push(Finding::new(
            Code::TmpReadOnly,
            Severity::Warning,
            detail,
            "set TMPDIR to a directory that can be written to, for the programs too",
        ));
    }
    match machine.policy.ptrace_scope {
        Some(3..) => findings.push(Finding::new(
            Code::PtraceScope,
            Severity::Warning,
            "kernel.yama.ptrace_scope is 3: no process can write a dump of itself",
            "boot with kernel.yama.ptrace_scope=1 (it can't be lowered on a running kernel)",
        )),
        Some(2) => findings.push(Finding::new(
            Code::PtraceScope,
            Severity::Warning,
            "kernel.yama.ptrace_scope is 2: only processes with CAP_SYS_PTRACE can write dumps of themselves",
            "sudo sysctl kernel.yama.ptrace_scope=1",
        )),
        _ => {}
    }
    let confining = |name: &&String| matches!(name.as_str(), "apparmor" | "smack" | "tomoyo");
    let modules: Vec<&str> = machine.policy.modules.iter().filter(confining).map(String::as_str).collect();
    if machine.policy.selinux_enforcing == Some(true) {
        findings.push(Finding::new(
            Code::Lsm,
            Severity::Info,
            "SELinux enforces its policy: it may keep us from processes of other domains",
            "if a process can't be reached that should be, look for denials: ausearch -m AVC -ts recent",
        ));
    } else if !modules.is_empty() {
        findings.push(Finding::new(
            Code::Lsm,
            Severity::Info,
            format!("security modules are active: {}", modules.join(", ")),
            "if a process can't be reached that should be, look for denials: journalctl -k | grep -i denied",
        ));
    }
    if machine.viewer.uid != 0 {
        findings.push(Finding::new(
            Code::OtherUser,
            Severity::Info,
            if machine.hides_others {
                "we are not root, and /proc shows us no process of other users (hidepid)"
            } else {
                "we are not root: processes of other users can be seen, not reached"
            },
            Fix::ExamineAsRoot { pid: None },
        ));
    } else if !machine.viewer.capabilities.has(CAP_SYS_PTRACE) {
        findings.push(Finding::new(
            Code::OtherNamespace,
            Severity::Info,
            "we are root without CAP_SYS_PTRACE (in a container?): processes of other namespaces can't be looked into",
            "try it on the host, or give our container the capability: --cap-add SYS_PTRACE",
        ));
    }
    if !leftovers.is_empty() {
        findings.push(Finding::new(
            Code::StaleSocket,
            Severity::Info,
            format!("{} sockets of killed processes lie in {temp}: other tools list them", leftovers.len()),
            Reason::StaleSocket { sockets: leftovers.to_vec() }.fix(),
        ));
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}
