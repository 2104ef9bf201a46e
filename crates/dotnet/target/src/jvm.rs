//! A selected Java program, and the facts about its virtual machine. They come from its performance counters; only a machine without
//! counters is asked, over its attach protocol, because that starts a thread in it.

use std::fmt;
use std::io;

use runtap_discover::{Java, Process, System, Usage};
use runtap_model::thread_dump::ThreadDump;
use runtap_os::in_a_thread;

use crate::error::Error;
use crate::resolved::local_name;

#[cfg_attr(target_os = "linux", path = "jvm/attached.rs")]
#[cfg_attr(not(target_os = "linux"), path = "jvm/not_attached.rs")]
mod attached;

pub(crate) use self::attached::instead_of_attaching;

/// A selected Java program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JvmTarget {
    /// What discovery knows about the process.
    pub process: Box<Process>,
}

/// The origin of the facts about a Java virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactSource {
    /// The performance counters of the machine.
    Counters,
    /// Its answers over the attach protocol.
    Attach,
    /// Its command line and its installation, which do not tell everything.
    Process,
}

impl FactSource {
    /// Returns `counters`, `attach` or `process`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Attach => "attach",
            Self::Process => "process",
        }
    }
}

/// The facts about a Java program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JvmFacts {
    /// The description of the machine. Missing values are empty.
    pub java: Java,
    /// The origin of the description.
    pub source: FactSource,
    /// Why a machine without counters could not be asked.
    pub not_attached: Option<String>,
    /// The processor that the program was compiled for. `None` if unknown.
    pub arch: Option<&'static str>,
    /// What the process uses. `None` if unknown.
    pub usage: Option<Usage>,
}

/// The requested content of a thread dump.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRequest {
    /// Whether to determine the owners of `java.util.concurrent` locks outside of deadlocks, for which the machine stops all threads
    /// while it searches its heap.
    pub lock_owners: bool,
    /// Whether to include virtual threads.
    pub virtual_threads: bool,
}

/// The threads of a Java program.
#[derive(Debug, Clone)]
pub struct ThreadDumpReply {
    /// The threads.
    pub dump: ThreadDump,
    /// Whether virtual threads are included. `None` if the machine has none.
    pub has_virtual_threads: Option<bool>,
    /// Why requested virtual threads are missing.
    pub why_not: Option<String>,
}

impl JvmTarget {
    pub(crate) fn new(process: Process) -> Self {
        Self { process: Box::new(process) }
    }

    /// Returns the process id in this process's PID namespace.
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Returns the main class, the file name of the archive, or else the kernel's name.
    pub fn name(&self) -> String {
        local_name(&self.process)
    }

    /// Gathers the facts about the program. A machine without counters is asked, if it allows that.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub async fn facts(&self) -> Result<JvmFacts, Error> {
        let (pid, start_time) = (self.pid(), self.process.start_time);
        let look = move || (System::current().arch(pid), System::current().usage(pid, start_time));
        let (arch, usage) = in_a_thread(look).await?;
        let mut java = self.process.java.clone().unwrap_or_default();
        let (mut source, mut not_attached) = (FactSource::Counters, None);
        if !java.has_counters {
            source = FactSource::Process;
            match attached::describe(pid, start_time, &mut java).await {
                Ok(()) => source = FactSource::Attach,
                Err(why) => not_attached = Some(why),
            }
        }
        Ok(JvmFacts { java, source, not_attached, arch, usage })
    }

    /// Returns the threads of the program, with their stacks.
    ///
    /// # Errors
    /// Returns an error if the machine can't be attached to.
    pub async fn thread_dump(&self, request: ThreadRequest) -> Result<ThreadDumpReply, Error> {
        attached::thread_dump(self.pid(), self.process.start_time, request).await
    }

    /// Returns the environment with which the program was started, as `NAME=VALUE`. A Java program can't change its own.
    ///
    /// # Errors
    /// Returns an error if the process has exited or access is denied.
    pub async fn environment(&self) -> Result<Vec<String>, Error> {
        let (pid, start_time) = (self.pid(), self.process.start_time);
        let read = move || {
            let system = System::current();
            let variables = system.variables(pid)?;
            // Otherwise the variables may be those of a later process with this id.
            let is_same = system.start_time(pid) == Some(start_time);
            is_same.then_some(variables).ok_or_else(|| io::Error::other("the process has exited"))
        };
        in_a_thread(read).await?.map_err(|source| Error::Environment { pid, source })
    }
}

/// `process 42 (shop.Main)`
impl fmt::Display for JvmTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid(), self.name())
    }
}
