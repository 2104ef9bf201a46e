//! Problems of the machine that affect all processes. Pure.

use std::path::PathBuf;

use runtap_discover::{CAP_SYS_PTRACE, Fix, Machine, Reason, ReasonCode, TempState};
use runtap_model::order;

use super::{Finding, Severity};

/// Returns the problems of a machine. `leftovers` are the sockets on which certainly nothing listens, as verified by the caller.
pub fn machine(machine: &Machine, leftovers: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let temp = machine.temp.path.display();
    let unusable = match machine.temp.state {
        TempState::Missing => Some("does not exist"),
        TempState::ReadOnly => Some("is mounted read-only"),
        TempState::NotWritable => Some("is not writable for you"),
        _ => None,
    };
    if let Some(what) = unusable {
        let detail = format!(
            "your temporary directory {temp} {what}: processes that use it have no socket, and runtap can't listen there"
        );
        findings.push(Finding::new(
            ReasonCode::TmpReadOnly,
            Severity::Warning,
            detail,
            "set TMPDIR to a writable directory, for the programs too",
        ));
    }
    match machine.policy.ptrace_scope {
        Some(3..) => findings.push(Finding::new(
            ReasonCode::PtraceScope,
            Severity::Warning,
            "kernel.yama.ptrace_scope is 3: no process can write a dump of itself",
            "boot with kernel.yama.ptrace_scope=1 (it can't be lowered on a running kernel)",
        )),
        Some(2) => findings.push(Finding::new(
            ReasonCode::PtraceScope,
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
            ReasonCode::Lsm,
            Severity::Info,
            "SELinux enforces its policy: it may deny access to processes of other domains",
            "if runtap can't reach a process that it should reach, look for denials: ausearch -m AVC -ts recent",
        ));
    } else if !modules.is_empty() {
        findings.push(Finding::new(
            ReasonCode::Lsm,
            Severity::Info,
            format!("security modules are active: {}", modules.join(", ")),
            "if runtap can't reach a process that it should reach, look for denials: journalctl -k | grep -i denied",
        ));
    }
    if machine.viewer.uid != 0 {
        findings.push(Finding::new(
            ReasonCode::OtherUser,
            Severity::Info,
            if machine.hides_others {
                "you are not root, and /proc does not show the processes of other users (hidepid)"
            } else {
                "you are not root: processes of other users are visible, but can't be reached"
            },
            Fix::ExamineAsRoot { pid: None },
        ));
    } else if !machine.viewer.capabilities.has(CAP_SYS_PTRACE) {
        findings.push(Finding::new(
            ReasonCode::OtherNamespace,
            Severity::Info,
            "you are root without CAP_SYS_PTRACE (in a container?): processes in other namespaces can't be inspected",
            "try it on the host, or give your container the capability: --cap-add SYS_PTRACE",
        ));
    }
    if !leftovers.is_empty() {
        findings.push(Finding::new(
            ReasonCode::StaleSocket,
            Severity::Info,
            format!(
                "{} stale sockets of terminated processes in {temp}; other tools still list those processes",
                leftovers.len()
            ),
            Reason::StaleSocket { sockets: leftovers.to_vec() }.fix(),
        ));
    }
    order::sort_by_key(&mut findings, |finding| finding.severity);
    findings
}
