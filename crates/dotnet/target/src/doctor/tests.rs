//! Every finding from its facts. How such facts occur is tested on real processes elsewhere.

mod jvm;
mod machine;

use std::path::{Path, PathBuf};

use runtap_diag_proto::diagnostic_ports::{self, DiagnosticPort};
use runtap_discover::{
    Capabilities, Clients, Connection, Createdump, Environment, Facts, Fix, Holder, ProcessState, Reason,
    ReasonCode, Runtime, Startup, TempDir, TempState, Wait,
};
use runtap_transport::naming::SocketName;
use runtap_transport::{Socket, SocketState};

use super::{Answer, AwaitedPort, Diagnosis, Examination, Finding, Severity};

const PTRACE: Capabilities = Capabilities(1 << 19);

fn socket(path: &str, key: u64, state: SocketState) -> Socket {
    Socket::new(path, SocketName::runtime(42, key), state)
}

/// A healthy process of the current user that answers.
fn healthy() -> Examination {
    let mut facts = Facts::default();
    facts.pid = 42;
    facts.ns_pid = 42;
    facts.state = ProcessState::Running;
    (facts.uid, facts.user) = (1000, "ann".to_owned());
    facts.environment = Some(Environment::default());
    facts.runtime = Runtime::CoreClr { library: "/n/8.0.33/libcoreclr.so".into() };
    facts.startup = Startup::Done;
    facts.serves = Some(true);
    facts.sockets = vec![socket("/tmp/s", 900, SocketState::Matching)];
    facts.temp = Some(TempDir::new("/tmp", "/tmp", TempState::Fine));
    facts.createdump = Createdump::Ready("/n/8.0.33/createdump".into());
    facts.viewer.uid = 1000;
    facts.viewer.temp = "/tmp".into();
    let mut examination = Examination::default();
    (examination.facts, examination.answer) = (facts, Answer::Answered(None));
    examination
}

/// The healthy process with changes.
fn but(change: impl FnOnce(&mut Examination)) -> Diagnosis {
    let mut examination = healthy();
    change(&mut examination);
    examination.diagnose()
}

fn codes(diagnosis: &Diagnosis) -> Vec<(ReasonCode, Severity)> {
    diagnosis.findings.iter().map(|finding| (finding.code, finding.severity)).collect()
}

#[track_caller]
fn only(diagnosis: &Diagnosis, code: ReasonCode, severity: Severity) -> Finding {
    assert_eq!(codes(diagnosis), [(code, severity)], "{diagnosis:#?}");
    assert_eq!(diagnosis.reachable, severity != Severity::Error, "{diagnosis:#?}");
    assert_eq!(diagnosis.reason(), (severity == Severity::Error).then_some(code));
    let finding = diagnosis.findings[0].clone();
    assert!(!finding.detail.is_empty() && !finding.fixes.is_empty(), "{finding:?}");
    finding
}

/// Returns the text of a suggestion.
#[track_caller]
fn words(fix: &Fix) -> &str {
    let Fix::Text(text) = fix else { panic!("it is not in words: {fix:?}") };
    text
}

#[track_caller]
fn fix(finding: &Finding) -> &str {
    let [fix] = &finding.fixes[..] else { panic!("one thing to do: {finding:?}") };
    words(fix)
}

fn holder(pid: u32, command: &str) -> Holder {
    let mut holder = Holder::default();
    holder.pid = pid;
    "comm".clone_into(&mut holder.comm);
    holder.command_line = command.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    holder
}

fn connection(holders: Vec<Holder>, wait: Wait) -> Connection {
    let mut connection = Connection::default();
    (connection.holders, connection.wait) = (holders, wait);
    connection
}

#[test]
fn a_healthy_process_has_no_findings() {
    let diagnosis = but(|_| {});
    assert!(diagnosis.reachable);
    assert_eq!(diagnosis.findings, []);
}

#[test]
fn obstacles_come_from_the_facts() {
    let gone = but(|it| {
        it.facts = Facts::default();
        it.answer = Answer::NotQueried;
    });
    only(&gone, ReasonCode::NoSuchProcess, Severity::Error);
    let other = but(|it| {
        it.facts.sockets.clear();
        (it.facts.runtime, it.answer) = (Runtime::None, Answer::NotQueried);
        // A program without a runtime has no createdump, which is not reported.
        it.facts.createdump = Createdump::Unknown;
    });
    only(&other, ReasonCode::NotDotnet, Severity::Error);
    let java = but(|it| {
        it.facts.sockets.clear();
        (it.facts.runtime, it.answer) = (Runtime::Jvm, Answer::NotQueried);
        it.facts.createdump = Createdump::Unknown;
    });
    assert_eq!(only(&java, ReasonCode::NotDotnet, Severity::Error).fixes, [Fix::TraceJvm { pid: 42 }]);
    let old = but(|it| {
        it.facts.sockets.clear();
        (it.facts.runtime, it.answer) = (Runtime::Mono, Answer::NotQueried);
    });
    only(&old, ReasonCode::TooOld, Severity::Error);
}

#[test]
fn results_of_connecting() {
    let asked = |answer: Answer, viewer: u32, capabilities: Capabilities| {
        but(|it| {
            it.answer = answer;
            (it.facts.viewer.uid, it.facts.viewer.capabilities) = (viewer, capabilities);
        })
    };
    let none = Capabilities(0);
    let finding = only(&asked(Answer::NotPermitted, 33, none), ReasonCode::OtherUser, Severity::Error);
    assert!(finding.detail.contains("ann"), "{finding:?}");
    assert_eq!(finding.fixes, [Fix::AsUser { user: Some("ann".to_owned()) }]);
    only(&asked(Answer::NotPermitted, 1000, none), ReasonCode::Lsm, Severity::Error);
    only(&asked(Answer::NotPermitted, 0, PTRACE), ReasonCode::Lsm, Severity::Error);
    only(&asked(Answer::NoListener, 1000, none), ReasonCode::StaleSocket, Severity::Error);
    only(&asked(Answer::NoSocket, 1000, none), ReasonCode::StaleSocket, Severity::Error);
    let finding =
        only(&asked(Answer::Failed("no magic".into()), 1000, none), ReasonCode::NotDotnet, Severity::Error);
    assert!(finding.detail.contains("no magic"));
}

#[test]
fn a_label_is_reported_if_access_is_denied() {
    let denied = but(|it| {
        it.answer = Answer::NotPermitted;
        it.facts.viewer.capabilities = PTRACE;
        it.facts.label = Some("system_u:system_r:app_t:s0".to_owned());
    });
    let finding = only(&denied, ReasonCode::Lsm, Severity::Error);
    assert!(finding.detail.contains("app_t") && fix(&finding).contains("denied"), "{finding:?}");
}

#[test]
fn clients_that_block_the_server() {
    let busy = |change: fn(&mut Examination)| {
        let diagnosis = but(|it| {
            it.answer = Answer::TimedOut;
            change(it);
        });
        only(&diagnosis, ReasonCode::Busy, Severity::Error)
    };
    let silent = busy(|it| {
        let connections = vec![
            connection(vec![holder(7, "dotnet-trace collect")], Wait::No),
            connection(vec![holder(8, "python3 silent.py")], Wait::Reading),
        ];
        it.clients.connections = Some(connections);
    });
    assert!(silent.detail.contains("process 8 (python3 silent.py)"), "{silent:?}");
    assert!(silent.detail.contains("sends nothing") && fix(&silent).contains("kill 8"), "{silent:?}");

    let deaf = busy(|it| {
        it.clients.connections = Some(vec![connection(vec![holder(9, "")], Wait::Writing)]);
    });
    assert!(deaf.detail.contains("process 9 (comm)") && deaf.detail.contains("does not read"), "{deaf:?}");

    let unseen = busy(|it| it.clients.connections = Some(vec![connection(vec![], Wait::Reading)]));
    assert!(unseen.detail.contains("can't be seen"), "{unseen:?}");
    assert_eq!(unseen.fixes, [Fix::ExamineAsRoot { pid: Some(42) }]);
    let untold = busy(|it| it.clients = Clients::default());
    assert!(untold.detail.contains("can't be seen"), "{untold:?}");

    let several = busy(|it| {
        it.clients.connections = Some(vec![
            connection(vec![holder(7, "a")], Wait::No),
            connection(vec![holder(8, "b")], Wait::No),
        ]);
    });
    assert!(several.detail.contains("process 7 (a), process 8 (b)"), "{several:?}");
    let nobody = busy(|it| it.clients.connections = Some(vec![]));
    assert!(nobody.detail.contains("no client is connected"), "{nobody:?}");

    let stopped = busy(|it| it.facts.state = ProcessState::Stopped);
    assert_eq!(fix(&stopped), "kill -CONT 42");
    let traced = busy(|it| {
        it.facts.state = ProcessState::Traced { by: 5 };
        it.tracer = Some(holder(5, "gdb -p 42"));
    });
    assert!(traced.detail.contains("process 5 (gdb -p 42)"), "{traced:?}");
    let dumping = busy(|it| it.clients.createdump = Some(77));
    assert!(dumping.detail.contains("createdump, process 77"), "{dumping:?}");
    let held = busy(|it| {
        it.facts.state = ProcessState::Traced { by: 78 };
        let mut tracer = holder(78, "/n/createdump -n x");
        tracer.comm = "createdump".to_owned();
        it.tracer = Some(tracer);
    });
    assert!(held.detail.contains("createdump, process 78"), "{held:?}");
}

fn suspended(value: &str, listeners: &[Holder]) -> Finding {
    let diagnosis = but(|it| {
        it.facts.startup = Startup::Waiting;
        let environment = it.facts.environment.as_mut().unwrap();
        environment.ports = Some(value.into());
        it.warnings = diagnostic_ports::lint(value.as_bytes());
        let awaited = diagnostic_ports::parse(value.as_bytes()).filter(DiagnosticPort::is_waited_for);
        it.awaited = awaited
            .map(|port| AwaitedPort {
                address: String::from_utf8(port.address.to_vec()).unwrap(),
                host: PathBuf::from("/host").join(String::from_utf8(port.address.to_vec()).unwrap()),
                too_long: port.address.len() > diagnostic_ports::LONGEST_ADDRESS,
                listeners: listeners.to_vec(),
                dead: listeners.is_empty(),
            })
            .collect();
    });
    only(&diagnosis, ReasonCode::Suspended, Severity::Warning)
}

#[test]
fn what_a_suspended_process_waits_for() {
    let abandoned = suspended("p.sock", &[]);
    assert!(abandoned.detail.contains("p.sock, but nothing is listening there"), "{abandoned:?}");
    assert_eq!(abandoned.fixes, [Fix::Resume { pid: 42, port: Some("/host/p.sock".into()) }]);
    let waited_for = suspended("p.sock", &[holder(9, "dotnet-monitor collect")]);
    assert!(waited_for.detail.contains("where process 9 (dotnet-monitor collect) is listening"));

    let misspelt = suspended(",nosuspend", &[]);
    assert!(misspelt.detail.contains("'nosuspend' is in the position of the address"), "{misspelt:?}");
    let long = suspended(&"x".repeat(200), &[]);
    assert!(long.detail.contains("too long") && fix(&long).contains("shorter"), "{long:?}");
    let both = suspended("a;b", &[]);
    assert!(both.detail.contains("port a,") && both.detail.contains("port b,"), "{both:?}");

    let own = but(|it| {
        it.facts.startup = Startup::Waiting;
        it.facts.environment.as_mut().unwrap().default_port_suspend = true;
    });
    let own = only(&own, ReasonCode::Suspended, Severity::Warning);
    assert_eq!(own.fixes, [Fix::Resume { pid: 42, port: None }]);
}

#[test]
fn ignored_ports_are_reported_for_a_running_process() {
    let ignored = but(|it| it.warnings = diagnostic_ports::lint(b"/p,listen"));
    let ignored = only(&ignored, ReasonCode::DiagnosticPorts, Severity::Warning);
    assert!(ignored.detail.contains("the port is ignored"), "{ignored:?}");
    assert!(fix(&ignored).contains("remove 'listen'"), "{ignored:?}");
}

#[test]
fn a_truncated_name_of_a_socket_is_reported() {
    let truncated = |it: &mut Examination| {
        it.facts.start_time = 900;
        it.facts.sockets = vec![socket("/tmp/dotnet-diagnostic-42-900-sock", 900, SocketState::Matching)];
        let environment = it.facts.environment.as_mut().unwrap();
        environment.tmpdir = Some("/d".repeat(40).into());
    };
    let reached = only(&but(truncated), ReasonCode::OtherTmpdir, Severity::Info);
    assert!(reached.detail.contains("80 bytes") && fix(&reached).contains("at most 75 bytes"), "{reached:?}");
    // Another process with the same directory listens there.
    let foreign = but(|it| {
        truncated(it);
        it.answer = Answer::WrongPeer("process 43".to_owned());
    });
    let foreign = only(&foreign, ReasonCode::OtherTmpdir, Severity::Error);
    assert!(foreign.detail.contains("80 bytes"), "{foreign:?}");
}

#[test]
fn a_process_that_runs_or_only_starts_is_not_suspended() {
    let resumed = but(|it| {
        let environment = it.facts.environment.as_mut().unwrap();
        (environment.ports, environment.default_port_suspend) = (Some("/p".into()), true);
    });
    assert_eq!(resumed.findings, []);
    assert_eq!(but(|it| it.facts.startup = Startup::Waiting).findings, []);
}

#[test]
fn dumps_that_would_fail() {
    let with = |createdump: Createdump| but(|it| it.facts.createdump = createdump);
    let path = PathBuf::from("/n/createdump");
    let missing = only(&with(Createdump::Missing(path.clone())), ReasonCode::NoCreatedump, Severity::Warning);
    assert!(missing.detail.contains("/n/createdump is missing"), "{missing:?}");
    let mode = only(&with(Createdump::NotExecutable(path)), ReasonCode::NoCreatedump, Severity::Warning);
    assert!(fix(&mode).contains("chmod a+x /n/createdump"), "{mode:?}");
    let aot = only(&with(Createdump::Unsupported), ReasonCode::NoCreatedump, Severity::Warning);
    assert_eq!(fix(&aot), "gcore 42");
    assert_eq!(with(Createdump::Unknown).findings, []);

    let scope = |scope, capabilities| {
        but(|it| {
            it.facts.policy.ptrace_scope = Some(scope);
            it.facts.capabilities = capabilities;
        })
    };
    for (level, capabilities, told) in [
        (0, Capabilities(0), false),
        (1, Capabilities(0), false),
        (2, Capabilities(0), true),
        (2, PTRACE, false),
        (3, PTRACE, true),
    ] {
        let diagnosis = scope(level, capabilities);
        if told {
            only(&diagnosis, ReasonCode::PtraceScope, Severity::Warning);
        } else {
            assert_eq!(diagnosis.findings, [], "{level}");
        }
    }
}

#[test]
fn what_may_mislead_other_tools() {
    let elsewhere = but(|it| {
        (it.facts.other_mount_namespace, it.facts.ns_pid) = (true, 1);
        it.facts.container = Some("0123456789abcdef".repeat(4));
    });
    let finding = only(&elsewhere, ReasonCode::OtherNamespace, Severity::Info);
    assert!(finding.detail.contains("container 0123456789ab)") && finding.detail.contains("PID is 1"));

    let tmpdir = but(|it| it.facts.temp = Some(TempDir::new("/var/tmp", "/var/tmp", TempState::Fine)));
    assert!(fix(&only(&tmpdir, ReasonCode::OtherTmpdir, Severity::Info)).contains("TMPDIR=/var/tmp"));
    let slash = but(|it| it.facts.temp = Some(TempDir::new("/tmp/", "/tmp/", TempState::Fine)));
    assert_eq!(slash.findings, []);

    let stale = but(|it| it.facts.sockets.push(socket("/tmp/it's old", 7, SocketState::Stale)));
    assert!(fix(&only(&stale, ReasonCode::StaleSocket, Severity::Info)).contains(r"rm '/tmp/it'\''s old'"));
}

/// Processes choose their directories, and root may paste the suggested commands. Suggestions of this program's own commands are
/// formatted elsewhere.
#[test]
fn names_chosen_by_a_process_are_quoted() {
    const NAME: &str = "/tmp/x $(touch it)'y";
    let named = || PathBuf::from(NAME);
    let other = |code, change: &dyn Fn(&mut Examination)| {
        let diagnosis = but(|it| change(it));
        diagnosis.findings.into_iter().find(|finding| finding.code == code).unwrap().fixes.remove(0)
    };
    let fixes = [
        other(ReasonCode::NoCreatedump, &|it| it.facts.createdump = Createdump::NotExecutable(named())),
        other(ReasonCode::OtherTmpdir, &|it| {
            it.facts.temp = Some(TempDir::new(NAME, NAME, TempState::Fine));
        }),
        other(ReasonCode::StaleSocket, &|it| it.facts.sockets.push(socket(NAME, 7, SocketState::Stale))),
        Reason::NoTmpdir { directory: named(), elsewhere: false }.fix(),
    ];
    for fix in fixes {
        let fix = words(&fix);
        let (before, quoted) = fix.split_once('\'').unwrap_or_else(|| panic!("it is not quoted: {fix}"));
        assert!(!before.contains("touch") && quoted.contains(r"x $(touch it)'\''y"), "{fix}");
    }
}

/// Paths of a container are not valid outside, and translated paths could be redirected by links in the container.
#[test]
fn paths_of_a_container_are_marked() {
    let mode = but(|it| {
        it.facts.other_root = true;
        it.facts.createdump = Createdump::NotExecutable("/n/createdump".into());
    });
    let mode = only(&mode, ReasonCode::NoCreatedump, Severity::Warning);
    let folder = Reason::NoTmpdir { directory: "/t".into(), elsewhere: true }.fix();
    for (fix, command) in [(fix(&mode), "chmod a+x /n/createdump"), (words(&folder), "mkdir -p /t")] {
        assert!(fix.contains(&format!("{command} in the file system of the process")), "{fix}");
    }
    for (below, name) in [("root/tmp/s", "rm /tmp/s"), ("cwd/t/s", "rm t/s")] {
        let fix = Reason::StaleSocket { sockets: vec![Path::new("/proc/42").join(below)] }.fix();
        let fix = words(&fix);
        assert!(fix.contains("file system of process 42") && fix.ends_with(name), "{fix}");
    }
}

#[test]
fn the_worst_comes_first() {
    let diagnosis = but(|it| {
        it.answer = Answer::TimedOut;
        it.facts.createdump = Createdump::Missing("/n/createdump".into());
        it.facts.startup = Startup::Waiting;
        it.facts.environment.as_mut().unwrap().default_port_suspend = true;
    });
    let expected = [
        (ReasonCode::Busy, Severity::Error),
        (ReasonCode::Suspended, Severity::Warning),
        (ReasonCode::NoCreatedump, Severity::Warning),
    ];
    assert_eq!(codes(&diagnosis), expected);
    assert_eq!(diagnosis.reason(), Some(ReasonCode::Busy));
}
