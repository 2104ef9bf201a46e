//! Findings about Java programs.

use runtap_discover::{Fix, Java, ProcessState, ReasonCode, Runtime, TempDir, TempState};

use super::super::jvm::{JvmExamination, Listener};
use super::super::{Answer, Diagnosis, Examination, Severity};
use super::{codes, healthy};

/// A Java program without problems, with changes.
fn but(change: impl FnOnce(&mut Examination, &mut JvmExamination)) -> Diagnosis {
    let mut examination = healthy();
    examination.facts.sockets.clear();
    (examination.facts.runtime, examination.answer) = (Runtime::Jvm, Answer::NotQueried);
    let mut java = Java::default();
    java.has_counters = true;
    examination.facts.java = Some(java);
    let mut jvm = JvmExamination { handles_signal: true, ..JvmExamination::default() };
    change(&mut examination, &mut jvm);
    examination.jvm = Some(jvm);
    examination.diagnose()
}

fn error(code: ReasonCode) -> (bool, Vec<(ReasonCode, Severity)>) {
    (false, vec![(code, Severity::Error)])
}

fn judged(change: impl FnOnce(&mut Examination, &mut JvmExamination)) -> (bool, Vec<(ReasonCode, Severity)>) {
    let diagnosis = but(change);
    (diagnosis.reachable, codes(&diagnosis))
}

#[test]
fn a_java_program_without_problems_can_be_attached_to() {
    assert_eq!(judged(|_, _| {}), (true, Vec::new()));
    assert_eq!(judged(|_, jvm| jvm.listener = Listener::Answers), (true, Vec::new()));
}

#[test]
fn obstacles_to_attaching_are_errors() {
    assert_eq!(judged(|_, jvm| jvm.attach_disabled = true), error(ReasonCode::AttachDisabled));
    assert_eq!(judged(|_, jvm| jvm.agents_disabled = true), error(ReasonCode::AgentsDisabled));
    assert_eq!(judged(|_, jvm| jvm.handles_signal = false), error(ReasonCode::SignalNotHandled));
    assert_eq!(judged(|_, jvm| jvm.has_musl = true), error(ReasonCode::Musl));
    assert_eq!(judged(|_, jvm| jvm.is_openj9 = true), error(ReasonCode::OpenJ9));
    assert_eq!(judged(|_, jvm| jvm.is_hidden = true), error(ReasonCode::Lsm));
    assert_eq!(
        judged(|_, jvm| jvm.listener = Listener::Fails("no reply".to_owned())),
        error(ReasonCode::Busy)
    );
    assert_eq!(judged(|it, _| it.facts.state = ProcessState::Stopped), error(ReasonCode::Busy));
    for state in [TempState::Missing, TempState::ReadOnly, TempState::NotWritable] {
        let judged = judged(|it, _| it.facts.temp = Some(TempDir::new("/tmp", "/tmp", state)));
        assert_eq!(judged, error(ReasonCode::TmpReadOnly));
    }
    let disabled = but(|_, jvm| jvm.attach_disabled = true);
    assert_eq!(disabled.findings[0].fixes, [Fix::TraceJvmFromStart]);
}

/// What makes a machine listen does not matter if it listens.
#[test]
fn a_machine_that_listens_needs_no_signal() {
    let judged = judged(|it, jvm| {
        (jvm.listener, jvm.handles_signal) = (Listener::Answers, false);
        it.facts.temp = Some(TempDir::new("/tmp", "/tmp", TempState::ReadOnly));
    });
    assert_eq!(judged, (true, Vec::new()));
}

#[test]
fn circumstances_are_no_obstacles() {
    let diagnosis = but(|it, jvm| {
        let mut java = Java::default();
        java.arguments = "-Xmx1g -Xint".to_owned();
        it.facts.java = Some(java);
        (it.facts.other_pid_namespace, it.facts.ns_pid) = (true, 7);
        (jvm.has_other_network, jvm.agent_loaded, jvm.counters_disabled) = (true, true, true);
    });
    assert!(diagnosis.reachable);
    assert_eq!(
        codes(&diagnosis),
        [
            (ReasonCode::OtherNetwork, Severity::Warning),
            (ReasonCode::Interpreted, Severity::Warning),
            (ReasonCode::AgentLoaded, Severity::Info),
            (ReasonCode::NoPerfData, Severity::Info),
            (ReasonCode::OtherNamespace, Severity::Info),
        ]
    );
    assert!(diagnosis.findings[4].detail.contains("/tmp/.java_pid7"), "{diagnosis:#?}");
}
