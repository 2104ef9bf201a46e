//! The verbs that need a .NET runtime, and their answer to a Java program: what the verb does, and what serves instead.

use runtap_discover::Fix;
use runtap_target::JvmTarget;

use crate::cmd::fix;
use crate::exit::{self, expected};

/// A verb that needs a .NET runtime.
#[derive(Debug, Clone, Copy)]
pub(in crate::cmd) struct DotnetVerb {
    name: &'static str,
    /// What the verb does, as the predicate of a sentence.
    purpose: &'static str,
    /// What serves for Java programs, and the arguments of `jcmd` for it after the process id.
    jcmd: Option<(&'static str, &'static str)>,
}

impl DotnetVerb {
    pub(in crate::cmd) const TRACE: Self = Self::new("trace", "records .NET programs");
    pub(in crate::cmd) const TAIL: Self = Self::new("tail", "shows the events of .NET programs");
    pub(in crate::cmd) const DUMP: Self = Self {
        jcmd: Some(("to dump its heap", "GC.heap_dump FILE.hprof")),
        ..Self::new("dump", "writes dumps of .NET programs")
    };
    pub(in crate::cmd) const RESUME: Self =
        Self::new("resume", "resumes .NET programs that are suspended at startup");
    pub(in crate::cmd) const SET_ENV: Self = Self::new("set-env", "sets variables in .NET programs");
    pub(in crate::cmd) const PROFILER: Self =
        Self::new("profiler", "loads profilers for .NET into .NET programs");
    pub(in crate::cmd) const STARTUP_HOOK: Self =
        Self::new("startup-hook", "loads .NET assemblies into .NET programs");
    #[cfg(unix)]
    pub(in crate::cmd) const PERF_MAP: Self = Self {
        jcmd: Some(("to write its perf map (JDK 17 and later)", "Compiler.perfmap")),
        ..Self::new("perfmap", "controls the perf maps of .NET programs")
    };
    pub(in crate::cmd) const ROUTER: Self = Self::new("router", "connects tools to .NET programs");
    pub(in crate::cmd) const RECORD: Self = Self::new("record", "records the messages of .NET runtimes");
    pub(in crate::cmd) const REPLAY: Self = Self::new("replay", "sends recorded requests to .NET runtimes");

    const fn new(name: &'static str, purpose: &'static str) -> Self {
        Self { name, purpose, jcmd: None }
    }

    /// Creates the error for a Java program.
    pub(super) async fn error_on_java(self, java: &JvmTarget) -> anyhow::Error {
        let Self { name, purpose, jcmd } = self;
        let mut hint = fix::text_after_checking_jvm(&[Fix::TraceJvm { pid: java.pid() }]).await;
        if let Some((what, arguments)) = jcmd {
            hint = format!("{what}: jcmd {} {arguments}; {hint}", java.process.ns_pid);
        }
        let message = format!("{java} is a Java program; 'runtap {name}' {purpose}");
        expected(exit::NO_TARGET, message, hint)
    }
}
