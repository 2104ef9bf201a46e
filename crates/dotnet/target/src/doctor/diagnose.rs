//! Derives findings from the facts about a process. Pure.

use std::path::Path;

use runtap_discover::{
    CAP_SYS_PTRACE, Createdump, Facts, Fix, Holder, ProcessState, Reason, ReasonCode, Runtime, Startup,
    TempDir, Wait, in_its_files,
};
use runtap_model::order;
use runtap_os::shell;
use runtap_transport::{Socket, SocketState};

use super::{Answer, Diagnosis, Examination, Finding, Severity};

impl Examination {
    /// Returns the problems and how to fix them.
    pub fn diagnose(&self) -> Diagnosis {
        if let Some(jvm) = &self.jvm {
            return self.diagnose_jvm(jvm);
        }
        let mut findings: Vec<Finding> = Reason::all(&self.facts).iter().map(obstacle).collect();
        if self.facts.runtime == (Runtime::Hidden { likely: false })
            && let Some(first) = findings.first_mut()
        {
            first.detail.push_str("; runtap can't see whether it is a .NET or Java program");
        }
        if self.facts.runtime == (Runtime::Unread { likely: false })
            && let Some(first) = findings.first_mut()
        {
            first
                .detail
                .push_str("; its memory map is too long to determine whether it is a .NET or Java program");
        }
        if findings.is_empty() {
            findings.extend(self.unanswered());
        }
        let reachable = findings.is_empty() && matches!(self.answer, Answer::Answered(_));
        let lives = !matches!(
            self.facts.state,
            ProcessState::Gone | ProcessState::Hidden | ProcessState::Thread { .. } | ProcessState::Ended
        );
        if lives
            && !findings
                .iter()
                .any(|finding| matches!(finding.code, ReasonCode::NotDotnet | ReasonCode::TooOld))
        {
            findings.extend(self.suspended().or_else(|| self.ports()));
            findings.extend(self.dumps());
            if reachable {
                findings.extend(self.oddities());
            }
        }
        order::sort_by_key(&mut findings, |finding| finding.severity);
        Diagnosis { reachable, findings }
    }

    /// Returns why the runtime did not answer on a socket that exists.
    fn unanswered(&self) -> Option<Finding> {
        let Facts { uid, viewer, label, .. } = &self.facts;
        let sockets = || self.facts.usable_sockets().map(|socket| socket.path.clone()).collect();
        let reason = match &self.answer {
            Answer::Answered(_) => return None,
            Answer::TimedOut => return Some(self.busy()),
            Answer::NotPermitted if viewer.uid != 0 && *uid != viewer.uid => {
                Reason::OtherUser { uid: *uid, user: self.facts.user.clone() }
            }
            Answer::NotPermitted => {
                Reason::Denied { label: label.clone(), capable: viewer.capabilities.has(CAP_SYS_PTRACE) }
            }
            Answer::NoListener => Reason::StaleSocket { sockets: sockets() },
            Answer::NoSocket | Answer::NotQueried => Reason::SocketDeleted { sockets: sockets() },
            Answer::WrongPeer(_) if self.facts.runtime == Runtime::None => Reason::NotDotnet,
            Answer::WrongPeer(_) if self.facts.runtime == Runtime::Jvm => Reason::Jvm { pid: self.facts.pid },
            // Several processes may have equal truncated names.
            Answer::WrongPeer(_) if self.facts.usable_sockets().any(is_truncated) => {
                Reason::long_tmpdir(&self.facts)
                    .unwrap_or_else(|| Reason::SocketDeleted { sockets: sockets() })
            }
            Answer::WrongPeer(who) => {
                let detail =
                    format!("does not own the socket with its name; another process listens there: {who}");
                let fix = "check what that process is and stop it: it impersonates this process (nothing was sent to it)";
                return Some(Finding::new(ReasonCode::ForeignSocket, Severity::Error, detail, fix));
            }
            Answer::Failed(error) => {
                let detail = format!("does not respond like a .NET runtime: {error}");
                return Some(Finding::new(
                    ReasonCode::NotDotnet,
                    Severity::Error,
                    detail,
                    "check what listens there: ss -xlp",
                ));
            }
        };
        Some(obstacle(&reason))
    }

    /// The runtime did not answer in time: finds what blocks it.
    pub(super) fn busy(&self) -> Finding {
        let pid = self.facts.pid;
        // createdump traces the process while it writes the dump.
        let tracer =
            self.tracer.as_ref().filter(|tracer| tracer.comm == "createdump").map(|tracer| tracer.pid);
        let (why, fix) = match (self.facts.state, &self.tracer, tracer.or(self.clients.createdump)) {
            (ProcessState::Traced { .. } | ProcessState::Running, _, Some(createdump)) => (
                format!("it is writing a dump of itself (createdump, process {createdump})"),
                "wait until the dump is written".into(),
            ),
            (ProcessState::Stopped, ..) => {
                ("it was stopped by a signal".to_owned(), format!("kill -CONT {pid}").into())
            }
            (ProcessState::Traced { by }, tracer, _) => (
                format!(
                    "a debugger has stopped it: {}",
                    tracer.as_ref().map_or_else(|| format!("process {by}"), name)
                ),
                "continue or detach the debugger".into(),
            ),
            _ => self.held_up(),
        };
        Finding::new(ReasonCode::Busy, Severity::Error, format!("is not responding: {why}"), fix)
    }

    fn held_up(&self) -> (String, Fix) {
        let again = "stop that process, or wait for it and try again";
        let Some(connections) = &self.clients.connections else {
            let (why, fix) = self.unseen();
            return (
                format!(
                    "its diagnostics server serves one client at a time, and another one is connected; which one {why}"
                ),
                fix,
            );
        };
        if let Some(blocking) = self.clients.blocking() {
            let what = match blocking.wait {
                Wait::Reading => "which is connected and sends nothing",
                Wait::Writing => "which does not read the data that it requested",
                _ => "which is connected",
            };
            let Some(first) = blocking.holders.first() else {
                let (why, fix) = self.unseen();
                return (format!("another client is connected to it; which process that is {why}"), fix);
            };
            let who: Vec<String> = blocking.holders.iter().map(name).collect();
            let why = format!("its diagnostics server waits for {}, {what}", who.join(" and "));
            return (why, format!("stop that process (kill {}), or wait for it", first.pid).into());
        }
        let holders: Vec<String> =
            connections.iter().flat_map(|connection| &connection.holders).map(name).collect();
        if holders.is_empty() {
            (
                "no client is connected to it, so it is executing a long command (a startup hook, a profiler), or \
                 gets no CPU time"
                    .to_owned(),
                "wait and try again".into(),
            )
        } else {
            (format!("one of these clients blocks it: {}", holders.join(", ")), again.into())
        }
    }

    /// Returns why the owner of a connection is unknown, and how to find it out.
    fn unseen(&self) -> (String, Fix) {
        let pid = self.facts.pid;
        match self.clients.not_looked_at {
            0 => ("can't be seen from here".to_owned(), Fix::ExamineAsRoot { pid: Some(pid) }),
            n => (
                format!("is unknown: {n} processes have too many open descriptors to check all of them"),
                format!("lsof checks all of them: sudo lsof -aU +E -p {pid}").into(),
            ),
        }
    }

    /// Returns what a runtime that is suspended at startup waits for.
    pub(super) fn suspended(&self) -> Option<Finding> {
        let facts = &self.facts;
        let environment = facts.environment.as_ref()?;
        if facts.startup != Startup::Waiting {
            return None;
        }
        let pid = facts.pid;
        let mut waits = Vec::new();
        let mut fixes = Vec::new();
        for port in &self.awaited {
            let address = &port.address;
            if port.too_long {
                waits
                    .push(format!("a tool on port {address}, but the path is too long for it to connect to"));
                fixes.push("restart it with a shorter path in DOTNET_DiagnosticPorts".into());
            } else if port.listeners.is_empty() && !port.dead {
                waits.push(format!(
                    "a tool on port {address} (whether one is listening there can't be seen from here)"
                ));
                fixes.push(Fix::ExamineAsRoot { pid: Some(pid) });
            } else if port.listeners.is_empty() {
                waits.push(format!(
                    "a tool on port {address}, but nothing is listening there (the tool has exited, or has not started yet)"
                ));
                fixes.push(Fix::Resume { pid, port: Some(port.host.clone()) });
            } else {
                let who: Vec<String> = port.listeners.iter().map(name).collect();
                waits.push(format!("a tool on port {address}, where {} is listening", who.join(" and ")));
                fixes.push("resume it with that tool, or stop the tool and try again".into());
            }
        }
        if environment.default_port_suspend {
            waits.push("a command on its own port (DOTNET_DefaultDiagnosticPortSuspend)".to_owned());
            if !fixes.iter().any(|fix| matches!(fix, Fix::Resume { .. })) {
                fixes.push(Fix::Resume { pid, port: None });
            }
        }
        if waits.is_empty() {
            return None;
        }
        let mut detail = format!("is suspended at startup, waiting for {}", waits.join(", and for "));
        for warning in &self.warnings {
            detail.push_str("; in DOTNET_DiagnosticPorts ");
            detail.push_str(&warning.to_string());
        }
        Some(Finding { code: ReasonCode::Suspended, severity: Severity::Warning, detail, fixes })
    }

    /// Returns the problems of the diagnostic ports of a process that runs.
    fn ports(&self) -> Option<Finding> {
        let effects: Vec<_> =
            self.warnings.iter().map(|warning| format!("{warning}: {}", warning.effect())).collect();
        let fixes: Vec<_> = self.warnings.iter().map(|warning| Fix::from(warning.fix())).collect();
        let (code, severity) = (ReasonCode::DiagnosticPorts, Severity::Warning);
        let detail = format!("was started with DOTNET_DiagnosticPorts, in which {}", effects.join("; "));
        (!fixes.is_empty()).then_some(Finding { code, severity, detail, fixes })
    }

    /// Returns why the process cannot write dumps.
    pub(super) fn dumps(&self) -> Vec<Finding> {
        let facts = &self.facts;
        let warning = |code, detail: String, fix: Fix| Finding::new(code, Severity::Warning, detail, fix);
        let mut findings = Vec::new();
        match &facts.createdump {
            Createdump::Missing(path) => findings.push(warning(
                ReasonCode::NoCreatedump,
                format!(
                    "can't write dumps: {} is missing, and an attempt would delete its diagnostics socket",
                    path.display()
                ),
                "put the createdump of the same runtime version there, or use gcore".into(),
            )),
            Createdump::NotExecutable(path) => findings.push(warning(
                ReasonCode::NoCreatedump,
                format!(
                    "can't write dumps: it is not permitted to execute {}, and an attempt would delete its diagnostics socket",
                    path.display()
                ),
                format!(
                    "chmod a+x {}{} (and no noexec on its file system)",
                    shell::path(path),
                    in_its_files(facts.other_root)
                )
                .into(),
            )),
            Createdump::Unsupported => findings.push(warning(
                ReasonCode::NoCreatedump,
                "can't write dumps: it was compiled ahead of time (NativeAOT), without createdump".to_owned(),
                format!("gcore {}", facts.pid).into(),
            )),
            Createdump::Ready(_) | Createdump::Unknown | _ => {}
        }
        let capable = facts.capabilities.has(CAP_SYS_PTRACE);
        match facts.policy.ptrace_scope {
            Some(3..) => findings.push(warning(
                ReasonCode::PtraceScope,
                "can't write dumps: kernel.yama.ptrace_scope is 3, which forbids all tracing".to_owned(),
                "boot with kernel.yama.ptrace_scope=1 (it can't be lowered on a running kernel)".into(),
            )),
            Some(2) if !capable => findings.push(warning(
                ReasonCode::PtraceScope,
                "can't write dumps: kernel.yama.ptrace_scope is 2, and it lacks CAP_SYS_PTRACE".to_owned(),
                "sudo sysctl kernel.yama.ptrace_scope=1, or restart it with the capability (--cap-add SYS_PTRACE)"
                    .into(),
            )),
            _ => {}
        }
        findings
    }

    /// Returns conditions that may mislead other tools although the process answers.
    fn oddities(&self) -> Vec<Finding> {
        let facts = &self.facts;
        let info = |code, detail: String, fix: Fix| Finding::new(code, Severity::Info, detail, fix);
        let mut findings = Vec::new();
        findings.extend(other_namespace(facts, "paths that you pass for dumps and hooks are opened there"));
        match &facts.temp {
            Some(TempDir { path, .. })
                if !facts.other_mount_namespace
                    && !facts.other_root
                    && !same_dir(path, &facts.viewer.temp) =>
            {
                findings.push(info(
                    ReasonCode::OtherTmpdir,
                    format!(
                        "uses the temporary directory {}; yours is {}",
                        path.display(),
                        facts.viewer.temp.display()
                    ),
                    format!("other tools find it with TMPDIR={}", shell::word(path)).into(),
                ));
            }
            _ => {}
        }
        if let Some(socket) = facts.usable_sockets().next().filter(|socket| is_truncated(socket))
            && let Some(Reason::LongTmpdir { directory, longest }) = Reason::long_tmpdir(facts)
        {
            findings.push(info(
                ReasonCode::OtherTmpdir,
                format!(
                    "has a socket with a truncated name, which other tools do not find, because TMPDIR is {} bytes long: {}",
                    directory.as_os_str().len(),
                    socket.path.display()
                ),
                format!("restart it with a TMPDIR of at most {longest} bytes (runtap can reach it as it is)").into(),
            ));
        }
        let stale: Vec<_> = facts
            .sockets
            .iter()
            .filter(|socket| socket.state == SocketState::Stale)
            .map(|socket| socket.path.clone())
            .collect();
        if !stale.is_empty() {
            let reason = Reason::StaleSocket { sockets: stale.clone() };
            let detail =
                format!("has {} stale sockets beside its own, which may mislead other tools", stale.len());
            findings.push(info(ReasonCode::StaleSocket, detail, reason.fix()));
        }
        findings
    }
}

/// Whether the path was too long for the whole name of the socket.
fn is_truncated(socket: &Socket) -> bool {
    socket.path.file_name().is_none_or(|name| *name != *socket.name.to_string())
}

/// Returns the finding for a process in other namespaces, with what follows from that.
pub(super) fn other_namespace(facts: &Facts, effect: &str) -> Option<Finding> {
    let container = facts.container.as_ref().map(|id| format!(" (container {})", id.get(..12).unwrap_or(id)));
    let detail = format!(
        "runs in other namespaces{}, where its PID is {}: {effect}",
        container.unwrap_or_default(),
        facts.ns_pid
    );
    let fix = format!("from here, its files are under /proc/{}/root", facts.pid);
    (facts.other_mount_namespace || facts.other_pid_namespace)
        .then(|| Finding::new(ReasonCode::OtherNamespace, Severity::Info, detail, fix))
}

pub(super) fn obstacle(reason: &Reason) -> Finding {
    Finding::new(reason.code(), Severity::Error, reason.to_string(), reason.fix())
}

/// Formats a process as `process 42 (python3 x.py)`.
fn name(holder: &Holder) -> String {
    let command =
        if holder.command_line.is_empty() { holder.comm.clone() } else { holder.command_line.join(" ") };
    let mut short: String = command.chars().take(80).collect();
    if short.len() < command.len() {
        short.push('…');
    }
    format!("process {} ({short})", holder.pid)
}

/// Treats `/tmp` and `/tmp/` as equal.
fn same_dir(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
}
