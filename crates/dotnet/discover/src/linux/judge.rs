//! Derives the reasons why a process can't be reached from the facts about it. Pure.

use std::path::PathBuf;

use runtap_transport::linux::CAP_SYS_PTRACE;
use runtap_transport::naming::{LONGEST_SOCKET_PATH, SocketName};

use super::facts::{Facts, ProcessState, TempState};
use super::runtime::Runtime;
use crate::{Reason, Startup};

impl Reason {
    /// Returns all reasons why a process can't be reached, most certain first. Empty if it has a socket that can be connected to.
    pub fn all(facts: &Facts) -> Vec<Self> {
        match facts.state {
            ProcessState::Gone => return vec![Self::NoSuchProcess],
            ProcessState::Hidden => return vec![Self::Concealed],
            ProcessState::Thread { tgid } => return vec![Self::Thread { tgid }],
            ProcessState::Ended => return vec![Self::Ended],
            _ => {}
        }
        if facts.usable_sockets().next().is_some() {
            return Vec::new();
        }
        let mut reasons = Vec::new();
        if facts.runtime.is_too_old() {
            let runtime =
                facts.runtime.version().map_or_else(|| "Mono".to_owned(), |it| format!(".NET Core {it}"));
            return vec![Self::TooOld { runtime }];
        }
        let shows_none = matches!(facts.runtime, Runtime::None | Runtime::Unread { likely: false });
        if shows_none && facts.deleted.is_empty() {
            return vec![Self::NotDotnet];
        }
        if facts.is_jvm() {
            return vec![Self::Jvm { pid: facts.pid }];
        }
        if facts.hidden {
            reasons.push(Self::hidden(facts));
        }
        if let Some((variable, value)) = facts.environment.as_ref().and_then(|it| it.disabled.clone()) {
            reasons.push(Self::DiagnosticsDisabled { variable, value });
        }
        if !facts.deleted.is_empty() {
            reasons.push(Self::SocketDeleted { sockets: facts.deleted.clone() });
        }
        if let Some(temp) = facts.temp.as_ref() {
            let directory = temp.path.clone();
            match temp.state {
                TempState::Missing => {
                    reasons.push(Self::NoTmpdir { directory, elsewhere: facts.other_root });
                }
                TempState::ReadOnly => reasons.push(Self::TmpReadOnly { directory, mounted: true }),
                TempState::NotWritable => reasons.push(Self::TmpReadOnly { directory, mounted: false }),
                TempState::Fine | TempState::Unknown => {}
            }
        }
        if reasons.is_empty() {
            reasons.push(Self::unexplained(facts));
        }
        reasons
    }

    /// Returns why a process that is hidden ([`Facts::hidden`]) can't be inspected.
    pub fn hidden(facts: &Facts) -> Self {
        let Facts { viewer, uid, .. } = facts;
        let mut namespaces = Vec::new();
        namespaces.extend(facts.other_mount_namespace.then_some("mount"));
        namespaces.extend(facts.other_pid_namespace.then_some("pid"));
        if viewer.uid != 0 && *uid != viewer.uid {
            Self::OtherUser { uid: *uid, user: facts.user.clone() }
        } else if namespaces.is_empty() || viewer.capabilities.has(CAP_SYS_PTRACE) {
            Self::Denied { label: facts.label.clone(), capable: viewer.capabilities.has(CAP_SYS_PTRACE) }
        } else {
            Self::OtherNamespace { namespaces }
        }
    }

    /// Returns the reason if its temporary directory's path is so long that the runtime truncates the name of its socket or creates
    /// none.
    pub fn long_tmpdir(facts: &Facts) -> Option<Self> {
        let directory = facts.environment.as_ref()?.tmpdir.as_deref().filter(|dir| !dir.is_empty())?;
        let name = SocketName::runtime(facts.ns_pid, facts.start_time).to_string();
        let longest = LONGEST_SOCKET_PATH.saturating_sub(name.len() + 1);
        let length = directory.as_encoded_bytes().strip_suffix(b"/").map_or(directory.len(), <[u8]>::len);
        (length > longest).then(|| Self::LongTmpdir { directory: directory.into(), longest })
    }

    /// The runtime could be examined, and no obstacle to a socket was found.
    fn unexplained(facts: &Facts) -> Self {
        /// Three seconds, in clock ticks. A runtime needs hundredths of a second.
        const YOUNG: u64 = 300;
        let young = facts.age.is_some_and(|age| age < YOUNG);
        let stale: Vec<PathBuf> = facts.sockets.iter().map(|socket| socket.path.clone()).collect();
        let is_starting = young && facts.startup != Startup::Done;
        if let Some(reason) = Self::long_tmpdir(facts).filter(|_| !is_starting) {
            reason
        } else if facts.serves == Some(true) && facts.crowded {
            Self::Crowded { directory: facts.temp.as_ref().map(|temp| temp.host.clone()).unwrap_or_default() }
        } else if facts.serves == Some(true) {
            // The socket's path is unknown because the table of its network namespace could not be read.
            let directory = facts.temp.as_ref().map(|temp| temp.host.join("dotnet-diagnostic-*"));
            Self::SocketDeleted { sockets: directory.into_iter().collect() }
        } else if is_starting {
            Self::Starting
        } else if !stale.is_empty() {
            Self::StaleSocket { sockets: stale }
        } else {
            Self::NoServer { aot: facts.runtime == Runtime::NativeAot }
        }
    }
}
