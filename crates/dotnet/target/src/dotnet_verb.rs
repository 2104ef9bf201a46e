//! The verbs that need a .NET runtime, and their answer to a Java program: what the verb does, and what serves instead.

use runtap_discover::Fix;

use crate::messages::ErrorMessage;
use crate::{JvmTarget, fixes};

/// A verb that needs a .NET runtime.
#[derive(Debug, Clone, Copy)]
pub struct DotnetVerb {
    name: &'static str,
    /// What the verb does, as the predicate of a sentence.
    purpose: &'static str,
    /// What serves for Java programs, and the arguments of `jcmd` for it after the process id.
    jcmd: Option<(&'static str, &'static str)>,
}

impl DotnetVerb {
    /// `trace`
    pub const TRACE: Self = Self::new("trace", "records .NET programs");
    /// `tail`
    pub const TAIL: Self = Self::new("tail", "shows the events of .NET programs");
    /// `top`
    pub const TOP: Self = Self::new("top", "samples the methods of .NET programs");
    /// `dump`
    pub const DUMP: Self = Self {
        jcmd: Some(("To dump its heap", "GC.heap_dump FILE.hprof")),
        ..Self::new("dump", "writes dumps of .NET programs")
    };
    /// `resume`
    pub const RESUME: Self = Self::new("resume", "resumes .NET programs that are suspended at startup");
    /// `set-env`
    pub const SET_ENV: Self = Self::new("set-env", "sets variables in .NET programs");
    /// `profiler`
    pub const PROFILER: Self = Self::new("profiler", "loads profilers for .NET into .NET programs");
    /// `startup-hook`
    pub const STARTUP_HOOK: Self = Self::new("startup-hook", "loads .NET assemblies into .NET programs");
    /// `perfmap`
    pub const PERF_MAP: Self = Self {
        jcmd: Some(("To write its perf map (JDK 17 and later)", "Compiler.perfmap")),
        ..Self::new("perfmap", "controls the perf maps of .NET programs")
    };
    /// `router`
    pub const ROUTER: Self = Self::new("router", "connects tools to .NET programs");
    /// `record`
    pub const RECORD: Self = Self::new("record", "records the messages of .NET runtimes");
    /// `replay`
    pub const REPLAY: Self = Self::new("replay", "sends recorded requests to .NET runtimes");

    const fn new(name: &'static str, purpose: &'static str) -> Self {
        Self { name, purpose, jcmd: None }
    }

    /// Returns the message for a Java program.
    pub async fn message_for_java(self, java: &JvmTarget) -> ErrorMessage {
        let Self { name, purpose, jcmd } = self;
        let mut hint = fixes::text_after_checking_jvm(&[Fix::TraceJvm { pid: java.pid() }]).await;
        if let Some((what, arguments)) = jcmd {
            hint = format!("{what}: jcmd {} {arguments}; {hint}", java.process.ns_pid);
        }
        ErrorMessage::new(format!("{java} is a Java program; 'runtap {name}' {purpose}"), hint)
    }
}
