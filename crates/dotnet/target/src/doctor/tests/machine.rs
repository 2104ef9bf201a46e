//! Problems of a machine, and findings of a fake one.

use std::path::PathBuf;

use runtap_discover::{Capabilities, Machine, ReasonCode, System, TempState};
use runtap_transport::naming::SocketName;

use super::{PTRACE, fix, only};
use crate::doctor::{Answer, Examination, Severity, machine};

#[test]
fn a_machine() {
    // A fake machine in an empty directory, on which nothing is configured.
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("tmp")).unwrap();
    let fresh = || -> Machine {
        let mut machine = System::at(root.path(), 0).machine();
        machine.viewer.capabilities = PTRACE;
        machine
    };
    let found = |change: fn(&mut Machine), leftovers: &[PathBuf]| {
        let mut it = fresh();
        it.temp.state = TempState::Fine;
        change(&mut it);
        machine(&it, leftovers)
            .into_iter()
            .map(|finding| (finding.code, finding.severity))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(|_| {}, &[]), []);
    assert_eq!(
        found(|it| it.temp.state = TempState::ReadOnly, &[]),
        [(ReasonCode::TmpReadOnly, Severity::Warning)]
    );
    for scope in [2, 3] {
        let mut it = fresh();
        (it.policy.ptrace_scope, it.temp.state) = (Some(scope), TempState::Fine);
        assert_eq!(machine(&it, &[])[0].code, ReasonCode::PtraceScope);
    }
    assert_eq!(found(|it| it.policy.ptrace_scope = Some(1), &[]), []);
    assert_eq!(
        found(|it| it.policy.selinux_enforcing = Some(true), &[]),
        [(ReasonCode::Lsm, Severity::Info)]
    );
    assert_eq!(found(|it| it.policy.selinux_enforcing = Some(false), &[]), []);
    assert_eq!(
        found(|it| it.policy.modules = vec!["apparmor".into()], &[]),
        [(ReasonCode::Lsm, Severity::Info)]
    );
    assert_eq!(found(|it| it.policy.modules = vec!["capability".into()], &[]), []);
    assert_eq!(found(|it| it.viewer.uid = 5, &[]), [(ReasonCode::OtherUser, Severity::Info)]);
    let weak: fn(&mut Machine) = |it| it.viewer.capabilities = Capabilities(0);
    assert_eq!(found(weak, &[]), [(ReasonCode::OtherNamespace, Severity::Info)]);
}

#[test]
fn stale_sockets_that_are_not_listed_are_counted() {
    let root = tempfile::tempdir().unwrap();
    let looked_at = System::at(root.path(), 0).machine();
    let shown = |folder: &str, n: usize| {
        let leftovers: Vec<PathBuf> = (0..n).map(|n| format!("{folder}/{n}").into()).collect();
        let findings = machine(&looked_at, &leftovers);
        let stale = findings.iter().find(|finding| finding.code == ReasonCode::StaleSocket).unwrap();
        assert!(stale.detail.starts_with(&format!("{n} ")), "{stale:?}");
        fix(stale).to_owned()
    };
    let few = shown("/tmp", 20);
    assert!(few.contains("rm /tmp/0 /tmp/1 ") && few.ends_with(" /tmp/19"), "{few}");
    for folder in ["/tmp", "/proc/42/root/tmp"] {
        let many = shown(folder, 45);
        assert!(many.ends_with("/tmp/19 (and 25 more, which are listed once these are deleted)"), "{many}");
    }
}

/// From the kernel's files to findings, on a fake system with Yama and `SELinux`.
#[test]
fn security_settings_of_a_fake_system() {
    let root = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("proc/self/status", "State:\tR\nTgid:\t1\nUid:\t0\t0\t0\t0\nCapEff:\t1ffffffffff\n");
    put("proc/sys/kernel/yama/ptrace_scope", "2\n");
    put("sys/fs/selinux/enforce", "1");
    put("proc/42/stat", &format!("42 (dotnet) S 1{} 900 0 0\n", " 0".repeat(17)));
    put("proc/42/status", "State:\tS\nTgid:\t42\nUid:\t5\t5\t5\t5\nNSpid:\t42\nCapEff:\t0\n");
    put("proc/42/environ", "");
    put("proc/42/maps", "7f00-7f01 r-xp 0 08:01 1 /n/libcoreclr.so\n");
    put("proc/42/attr/current", "system_u:system_r:app_t:s0\0");
    put("proc/42/task/42/comm", ".NET Finalizer\n");
    std::fs::create_dir(root.path().join("tmp")).unwrap();
    let name = SocketName::runtime(42, 900).to_string();
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("tmp").join(name)).unwrap();
    let system = System::at(root.path(), 0);
    let mut examination = Examination::default();
    (examination.facts, examination.answer) = (system.facts(42), Answer::Answered(None));
    only(&examination.diagnose(), ReasonCode::PtraceScope, Severity::Warning);

    examination.answer = Answer::NotPermitted;
    let diagnosis = examination.diagnose();
    assert_eq!(diagnosis.reason(), Some(ReasonCode::Lsm));
    assert!(diagnosis.findings[0].detail.contains("app_t"), "{diagnosis:#?}");

    let machine = machine(&system.machine(), &[]);
    let found: Vec<ReasonCode> = machine.iter().map(|finding| finding.code).collect();
    assert!(found.contains(&ReasonCode::PtraceScope) && found.contains(&ReasonCode::Lsm), "{machine:#?}");
}
