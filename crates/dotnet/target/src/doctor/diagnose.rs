//! From an examination to findings. Pure.

use std::path::Path;

use runtap_discover::{
    CAP_SYS_PTRACE, Code, Createdump, Facts, Fix, Holder, ProcessState, Reason, Runtime, Startup, TempDir,
    Wait, in_its_files,
};
use runtap_os::shell;
use runtap_transport::{Socket, SocketState};

use super::{Answer, Diagnosis, Examination, Finding, Severity};

impl Examination {
    /// What is wrong, and what to do about it.
    pub fn diagnose(&self) -> Diagnosis {
        let mut findings: Vec<Finding> = Reason::all(&self.facts).iter().map(obstacle).collect();
        if self.facts.runtime == (Runtime::Hidden { likely: false })
            && let Some(first) = findings.first_mut()
        {
            first.detail.push_str("; whether it is a .NET program can't be seen");
        }
        if self.facts.runtime == (Runtime::Unread { likely: false })
            && let Some(first) = findings.first_mut()
        {
            first
                .detail
                .push_str("; whether it is a .NET program is not known, it has mapped more than is read");
        }
        if findings.is_empty() {
            findings.extend(self.unanswered());
        }
        let reachable = findings.is_empty() && matches!(self.answer, Answer::Answered(_));
        let lives = !matches!(
            self.facts.state,
            ProcessState::Gone | ProcessState::Hidden | ProcessState::Thread { .. } | ProcessState::Ended
        );
        if lives && !findings.iter().any(|finding| matches!(finding.code, Code::NotDotnet | Code::TooOld)) {
            findings.extend(self.suspended().or_else(|| self.ports()));
            findings.extend(self.dumps());
            if reachable {
                findings.extend(self.oddities());
            }
        }
        findings.sort_by_key(|finding| finding.severity);
        Diagnosis { reachable, findings }
    }

    /// There is a socket that can be dialled, and this is what came of it.
    fn unanswered(&self) -> Option<Finding> {
        let Facts { uid, viewer, label, .. } = &self.facts;
        let sockets = || self.facts.usable_sockets().map(|socket| socket.path.clone()).collect();
        let reason = match &self.answer {
            Answer::Answered(_) => return None,
            Answer::Silent => return Some(self.busy()),
            Answer::NotPermitted if viewer.uid != 0 && *uid != viewer.uid => {
                Reason::OtherUser { uid: *uid, user: self.facts.user.clone() }
            }
            Answer::NotPermitted => {
                Reason::Denied { label: label.clone(), capable: viewer.capabilities.has(CAP_SYS_PTRACE) }
            }
            Answer::NobodyListens => Reason::StaleSocket { sockets: sockets() },
            Answer::NotThere | Answer::NotAsked => Reason::SocketDeleted { sockets: sockets() },
            Answer::Foreign(_) if self.facts.runtime == Runtime::None => Reason::NotDotnet,
            Answer::Foreign(_) if self.facts.runtime == Runtime::Jvm => Reason::Jvm { pid: self.facts.pid },
            // Of truncated names several are alike.
            Answer::Foreign(_) if self.facts.usable_sockets().any(is_truncated) => {
                Reason::long_tmpdir(&self.facts)
                    .unwrap_or_else(|| Reason::SocketDeleted { sockets: sockets() })
            }
            Answer::Foreign(who) => {
                let detail = format!("is not the one who listens on the socket with its name: {who}");
                let fix =
                    "nothing was sent to it; look who that is and end it, it stands in for this process";
                return Some(Finding::new(Code::ForeignSocket, Severity::Error, detail, fix));
            }
            Answer::Failed(error) => {
                let detail = format!("does not answer as a .NET runtime does: {error}");
                return Some(Finding::new(
                    Code::NotDotnet,
                    Severity::Error,
                    detail,
                    "look what listens there: ss -xlp",
                ));
            }
        };
        Some(obstacle(&reason))
    }

    /// It did not answer in time: who keeps it from that.
    pub(super) fn busy(&self) -> Finding {
        let pid = self.facts.pid;
        // The helper stops the process that it writes.
        let tracer =
            self.tracer.as_ref().filter(|tracer| tracer.comm == "createdump").map(|tracer| tracer.pid);
        let (why, fix) = match (self.facts.state, &self.tracer, tracer.or(self.clients.createdump)) {
            (ProcessState::Traced { .. } | ProcessState::Running, _, Some(createdump)) => (
                format!("it writes a dump of itself (createdump, process {createdump})"),
                "wait until the dump is written".into(),
            ),
            (ProcessState::Stopped, ..) => {
                ("it was stopped by a signal".to_owned(), format!("kill -CONT {pid}").into())
            }
            (ProcessState::Traced { by }, tracer, _) => (
                format!(
                    "a debugger holds it: {}",
                    tracer.as_ref().map_or_else(|| format!("process {by}"), name)
                ),
                "let the debugger go on, or detach it".into(),
            ),
            _ => self.held_up(),
        };
        Finding::new(Code::Busy, Severity::Error, format!("does not answer: {why}"), fix)
    }

    fn held_up(&self) -> (String, Fix) {
        let again = "end that process, or wait for it and try again";
        let Some(connections) = &self.clients.connections else {
            let (why, fix) = self.unseen();
            return (
                format!("its server serves one client at a time, and another one holds it; which one {why}"),
                fix,
            );
        };
        if let Some(blocking) = self.clients.blocking() {
            let what = match blocking.wait {
                Wait::Reading => "which holds a connection and says nothing",
                Wait::Writing => "which does not take what it asked for",
                _ => "which holds a connection",
            };
            let Some(first) = blocking.holders.first() else {
                let (why, fix) = self.unseen();
                return (
                    format!("another client holds a connection to it; which process that is {why}"),
                    fix,
                );
            };
            let who: Vec<String> = blocking.holders.iter().map(name).collect();
            let why = format!("its server waits for {}, {what}", who.join(" and "));
            return (why, format!("end that process (kill {}), or wait for it", first.pid).into());
        }
        let holders: Vec<String> =
            connections.iter().flat_map(|connection| &connection.holders).map(name).collect();
        if holders.is_empty() {
            (
                "nobody is connected to it, so it carries out a command that takes long (a startup hook, a profiler), or \
                 gets no CPU"
                    .to_owned(),
                "wait and try again".into(),
            )
        } else {
            (format!("one of these holds it up: {}", holders.join(", ")), again.into())
        }
    }

    /// Why it is not known who holds a connection, and how to find out.
    fn unseen(&self) -> (String, Fix) {
        let pid = self.facts.pid;
        match self.clients.not_looked_at {
            0 => ("can't be seen from here".to_owned(), Fix::ExamineAsRoot { pid: Some(pid) }),
            n => (
                format!("is not known: {n} processes have more descriptors open than are looked at"),
                format!("lsof looks at all of them: sudo lsof -aU +E -p {pid}").into(),
            ),
        }
    }

    /// It waits at its start, and for whom.
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
                waits.push(format!("the port {address}, whose path is too long: it can never be reached"));
                fixes.push("start it again with a shorter path in DOTNET_DiagnosticPorts".into());
            } else if port.listeners.is_empty() && !port.dead {
                waits.push(format!(
                    "the port {address}; whether somebody listens there can't be seen from here"
                ));
                fixes.push(Fix::ExamineAsRoot { pid: Some(pid) });
            } else if port.listeners.is_empty() {
                waits.push(format!(
                    "the port {address}, on which nobody listens: the tool that started it has ended, or has not begun"
                ));
                fixes.push(Fix::Resume { pid, port: Some(port.host.clone()) });
            } else {
                let who: Vec<String> = port.listeners.iter().map(name).collect();
                waits.push(format!("the port {address}, on which {} listens", who.join(" and ")));
                fixes.push("have that tool resume it, or end the tool and look again".into());
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
        let mut detail = format!("waits at its start for {}", waits.join(", and for "));
        for warning in &self.warnings {
            detail.push_str("; in DOTNET_DiagnosticPorts ");
            detail.push_str(&warning.to_string());
        }
        Some(Finding { code: Code::Suspended, severity: Severity::Warning, detail, fixes })
    }

    /// It runs, and the ports that it was told to use are not what they look like.
    fn ports(&self) -> Option<Finding> {
        let effects: Vec<_> =
            self.warnings.iter().map(|warning| format!("{warning}: {}", warning.effect())).collect();
        let fixes: Vec<_> = self.warnings.iter().map(|warning| Fix::from(warning.fix())).collect();
        let (code, severity) = (Code::DiagnosticPorts, Severity::Warning);
        let detail = format!("was started with DOTNET_DiagnosticPorts, in which {}", effects.join("; "));
        (!fixes.is_empty()).then_some(Finding { code, severity, detail, fixes })
    }

    /// Whether it can write dumps of itself.
    pub(super) fn dumps(&self) -> Vec<Finding> {
        let facts = &self.facts;
        let warning = |code, detail: String, fix: Fix| Finding::new(code, Severity::Warning, detail, fix);
        let mut findings = Vec::new();
        match &facts.createdump {
            Createdump::Missing(path) => findings.push(warning(
                Code::NoCreatedump,
                format!(
                    "can't write dumps: {} is missing, and an attempt would delete its diagnostics socket",
                    path.display()
                ),
                "put the createdump of the same runtime version there, or use gcore".into(),
            )),
            Createdump::NotExecutable(path) => findings.push(warning(
                Code::NoCreatedump,
                format!(
                    "can't write dumps: {} can't be executed by it, and an attempt would delete its diagnostics socket",
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
                Code::NoCreatedump,
                "can't write dumps: it was compiled ahead of time (NativeAOT), without createdump".to_owned(),
                format!("gcore {}", facts.pid).into(),
            )),
            Createdump::Ready(_) | Createdump::Unknown | _ => {}
        }
        let capable = facts.capabilities.has(CAP_SYS_PTRACE);
        match facts.policy.ptrace_scope {
            Some(3..) => findings.push(warning(
                Code::PtraceScope,
                "can't write dumps: kernel.yama.ptrace_scope is 3, nobody may trace a process".to_owned(),
                "boot with kernel.yama.ptrace_scope=1 (it can't be lowered on a running kernel)".into(),
            )),
            Some(2) if !capable => findings.push(warning(
                Code::PtraceScope,
                "can't write dumps: kernel.yama.ptrace_scope is 2, and it lacks CAP_SYS_PTRACE".to_owned(),
                "sudo sysctl kernel.yama.ptrace_scope=1, or start it with the capability (--cap-add SYS_PTRACE)"
                    .into(),
            )),
            _ => {}
        }
        findings
    }

    /// It answers; but others may not find it, or may be led astray.
    fn oddities(&self) -> Vec<Finding> {
        let facts = &self.facts;
        let info = |code, detail: String, fix: Fix| Finding::new(code, Severity::Info, detail, fix);
        let mut findings = Vec::new();
        if facts.other_mount_namespace || facts.other_pid_namespace {
            let container =
                facts.container.as_ref().map(|id| format!(" (container {})", id.get(..12).unwrap_or(id)));
            findings.push(info(
                Code::OtherNamespace,
                format!(
                    "lives in other namespaces{}, where its number is {}: it opens the files of commands (dumps, hooks) \
                     there",
                    container.unwrap_or_default(),
                    facts.ns_pid
                ),
                format!("paths of it are below /proc/{}/root for us", facts.pid).into(),
            ));
        }
        match &facts.temp {
            Some(TempDir { path, .. })
                if !facts.other_mount_namespace
                    && !facts.other_root
                    && !same_dir(path, &facts.viewer.temp) =>
            {
                findings.push(info(
                    Code::OtherTmpdir,
                    format!(
                        "has the temporary directory {}; ours is {}",
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
                Code::OtherTmpdir,
                format!(
                    "has a socket with a truncated name, which other tools do not find, because TMPDIR has {} bytes: {}",
                    directory.as_os_str().len(),
                    socket.path.display()
                ),
                format!("start it again with a TMPDIR of at most {longest} bytes; runtap reaches it as it is").into(),
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
            findings.push(info(Code::StaleSocket, detail, reason.fix()));
        }
        findings
    }
}

/// Whether its path was too long for its whole name.
fn is_truncated(socket: &Socket) -> bool {
    socket.path.file_name().is_none_or(|name| *name != *socket.name.to_string())
}

fn obstacle(reason: &Reason) -> Finding {
    Finding::new(reason.code(), Severity::Error, reason.to_string(), reason.fix())
}

/// `process 42 (python3 x.py)`
fn name(holder: &Holder) -> String {
    let command =
        if holder.command_line.is_empty() { holder.comm.clone() } else { holder.command_line.join(" ") };
    let mut short: String = command.chars().take(80).collect();
    if short.len() < command.len() {
        short.push('…');
    }
    format!("process {} ({short})", holder.pid)
}

/// `/tmp` and `/tmp/` are one directory.
fn same_dir(a: &Path, b: &Path) -> bool {
    a.components().eq(b.components())
}
