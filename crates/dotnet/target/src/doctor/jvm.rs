//! Why the agent can or can't be loaded into a running Java program. Nothing is sent to a virtual machine that does not listen for
//! tools already: making it listen takes a signal.

use std::time::Duration;

use runtap_discover::{Facts, Fix, Java, ProcessState, Reason, ReasonCode, TempState};
use runtap_jvm_attach::codec::Request;
use runtap_jvm_attach::{AttachError, CLibrary, Client, Jvm, Timeouts, switch_in};
use runtap_model::order;
use runtap_os::in_a_thread;
use tokio::task::JoinSet;

use super::diagnose::{obstacle, other_namespace};
use super::{Diagnosis, Examination, Finding, Severity};

/// Time-out of a query of a machine that listens.
const DEADLINE: Duration = Duration::from_secs(1);
/// The beginning of the name of the agent's library.
const AGENT: &str = "libruntap_jvm_agent";

/// Whether a virtual machine listens for tools, and answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Listener {
    /// The machine does not listen yet: the first tool makes it listen.
    #[default]
    None,
    /// The machine answers.
    Answers,
    /// The machine listens, and does not answer for this reason.
    Fails(String),
}

/// What attaching to a virtual machine depends on, besides the facts about its process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct JvmExamination {
    /// Whether it is `OpenJ9`, which has another protocol.
    pub is_openj9: bool,
    /// Whether it can't be examined.
    pub is_hidden: bool,
    /// Whether the agent can't be loaded with its C library.
    pub has_musl: bool,
    /// Whether it has another network namespace.
    pub has_other_network: bool,
    /// Whether it handles the signal that makes it listen.
    pub handles_signal: bool,
    /// Whether attaching is disabled by `-XX:+DisableAttachMechanism`.
    pub attach_disabled: bool,
    /// Whether agents are rejected because of `-XX:-EnableDynamicAgentLoading`.
    pub agents_disabled: bool,
    /// Whether counters are disabled by `-XX:-UsePerfData`.
    pub counters_disabled: bool,
    /// Whether the agent has been loaded.
    pub agent_loaded: bool,
    /// Whether it listens.
    pub listener: Listener,
}

impl JvmExamination {
    /// Examines the machine of a process, without sending it anything.
    pub(super) fn of(facts: &Facts) -> Self {
        let jvm = match Jvm::examine(facts.pid) {
            Ok(jvm) => jvm,
            Err(AttachError::OpenJ9 { .. }) => return Self { is_openj9: true, ..Self::default() },
            Err(AttachError::NotPermitted { .. } | AttachError::Protected { .. }) => {
                return Self { is_hidden: true, ..Self::default() };
            }
            Err(_) => return Self::default(),
        };
        // The counters have the arguments of all sources, without those of the program.
        let arguments = facts.java.as_ref().map_or("", |java| &java.arguments);
        let switch = |name| {
            let words = arguments.split(' ').map(str::as_bytes);
            if arguments.is_empty() { jvm.has_option(name) } else { switch_in(words, name) }
        };
        Self {
            is_openj9: false,
            is_hidden: false,
            has_musl: jvm.c_library() == CLibrary::Musl,
            has_other_network: jvm.has_other_network(),
            handles_signal: jvm.handles_quit().unwrap_or(true),
            attach_disabled: switch("DisableAttachMechanism") == Some(true),
            agents_disabled: switch("EnableDynamicAgentLoading") == Some(false),
            counters_disabled: switch("UsePerfData") == Some(false),
            agent_loaded: jvm.libraries(AGENT).is_ok_and(|libraries| !libraries.is_empty()),
            listener: Listener::None,
        }
    }
}

/// Finds out whether the Java programs among these listen and answer. All are queried at the same time.
pub async fn query_jvms(examinations: &mut [Examination]) {
    let mut asking = JoinSet::new();
    for (index, examination) in examinations.iter().enumerate() {
        let is_stopped =
            matches!(examination.facts.state, ProcessState::Stopped | ProcessState::Traced { .. });
        if examination.jvm.is_some() && !is_stopped {
            let pid = examination.facts.pid;
            asking.spawn(async move { (index, listener(pid).await) });
        }
    }
    for (index, listener) in asking.join_all().await {
        if let Some(jvm) = examinations.get_mut(index).and_then(|examination| examination.jvm.as_mut()) {
            jvm.listener = listener;
        }
    }
}

async fn listener(pid: u32) -> Listener {
    let Ok(Ok(jvm)) = in_a_thread(move || Jvm::examine(pid)).await else { return Listener::None };
    let answer = match Client::attach_if_listening(jvm, Timeouts::all(DEADLINE)).await {
        Ok(None) => return Listener::None,
        Ok(Some(client)) => client.request(&Request::version()).await.map(|_any_reply| ()),
        Err(error) => Err(error),
    };
    answer.map_or_else(|error| Listener::Fails(error.to_string()), |()| Listener::Answers)
}

impl Examination {
    /// Returns the problems of a Java program.
    pub(super) fn diagnose_jvm(&self, jvm: &JvmExamination) -> Diagnosis {
        let mut findings = Vec::new();
        match self.facts.state {
            ProcessState::Stopped | ProcessState::Traced { .. } => findings.push(self.busy()),
            _ if jvm.is_hidden => findings.push(obstacle(&Reason::hidden(&self.facts))),
            _ => {}
        }
        findings.extend(self.attach_obstacles(jvm));
        let reachable = findings.is_empty();
        findings.extend(self.jvm_warnings(jvm));
        order::sort_by_key(&mut findings, |finding| finding.severity);
        Diagnosis { reachable, findings }
    }

    fn attach_obstacles(&self, jvm: &JvmExamination) -> Vec<Finding> {
        let error = |code, detail: String, fix: Fix| Finding::new(code, Severity::Error, detail, fix);
        let mut findings = Vec::new();
        if jvm.is_openj9 {
            let detail =
                "runs OpenJ9, which has a different attach protocol; only HotSpot JVMs are supported";
            findings.push(error(ReasonCode::OpenJ9, detail.to_owned(), Fix::OriginalAgent));
        }
        if jvm.has_musl {
            let detail = "runs on musl (Alpine Linux), where a JVM can't load the agent, because it is built for glibc";
            findings.push(error(ReasonCode::Musl, detail.to_owned(), Fix::OriginalAgent));
        }
        if jvm.agents_disabled {
            let detail =
                "was started with -XX:-EnableDynamicAgentLoading: it rejects agents while it is running";
            findings.push(error(ReasonCode::AgentsDisabled, detail.to_owned(), Fix::TraceJvmFromStart));
        }
        if let Listener::Fails(why) = &jvm.listener {
            findings.push(error(
                ReasonCode::Busy,
                format!("is not responding: {why}"),
                "wait and try again; a JVM that can't stop its threads does not answer any tool".into(),
            ));
        }
        if jvm.listener != Listener::None || jvm.is_openj9 || jvm.is_hidden {
            return findings;
        }
        if jvm.attach_disabled {
            let detail = "was started with -XX:+DisableAttachMechanism: it does not listen for tools";
            findings.push(error(ReasonCode::AttachDisabled, detail.to_owned(), Fix::TraceJvmFromStart));
        } else if !jvm.handles_signal {
            findings.push(error(
                ReasonCode::SignalNotHandled,
                "does not handle SIGQUIT, which makes a JVM listen for tools and terminates other programs: its JVM is \
                 not ready yet, or is exiting"
                    .to_owned(),
                "wait and try again".into(),
            ));
        }
        let temp = match self.facts.temp.as_ref().map(|temp| temp.state) {
            Some(TempState::Missing) => "has no /tmp",
            Some(TempState::ReadOnly) => "has a read-only /tmp",
            Some(TempState::NotWritable) => "is not permitted to write to its /tmp",
            _ => return findings,
        };
        let detail =
            format!("{temp}, where a JVM creates the socket for tools (no option changes that directory)");
        findings.push(error(ReasonCode::TmpReadOnly, detail, Fix::TraceJvmFromStart));
        findings
    }

    fn jvm_warnings(&self, jvm: &JvmExamination) -> Vec<Finding> {
        let Facts { pid, ns_pid, java, .. } = &self.facts;
        let java = java.as_ref();
        let mut findings = Vec::new();
        if jvm.has_other_network {
            let detail = "is in a separate network namespace, from which its agent can't connect to a \
                          loopback address of this one";
            let fix = Fix::CollectElsewhere { pid: *pid };
            findings.push(Finding::new(ReasonCode::OtherNetwork, Severity::Warning, detail, fix));
        }
        if java.is_some_and(is_interpreted) {
            findings.push(Finding::new(
                ReasonCode::Interpreted,
                Severity::Warning,
                "interprets all code (-Xint): it runs many times slower than with the JIT compiler",
                "restart it without -Xint",
            ));
        }
        if jvm.agent_loaded {
            let detail = "has loaded the agent: a trace may be running";
            let fix = Fix::DetachJvm { pid: *pid };
            findings.push(Finding::new(ReasonCode::AgentLoaded, Severity::Info, detail, fix));
        }
        if java.is_some_and(|java| !java.has_counters) && !jvm.is_hidden {
            let detail = if jvm.counters_disabled {
                "was started with -XX:-UsePerfData: jps and jcmd do not list it"
            } else {
                "publishes no performance counters in /tmp/hsperfdata_USER: jps and jcmd do not list it"
            };
            let fix = format!("use its process id there with other tools: jcmd {ns_pid} VM.version");
            findings.push(Finding::new(ReasonCode::NoPerfData, Severity::Info, detail, fix));
        }
        findings.extend(other_namespace(
            &self.facts,
            &format!("its socket for tools is /tmp/.java_pid{ns_pid} there"),
        ));
        findings
    }
}

fn is_interpreted(java: &Java) -> bool {
    java.vm_info.starts_with("interpreted mode") || java.arguments.split(' ').any(|word| word == "-Xint")
}
