//! Information that a runtime reports about itself: `runtap.info/1` with its text, and `runtap.env/1`.

use std::io;

use serde::Serialize;

use crate::{Clean, Print, TextOptions};

/// The document `runtap.info/1`.
#[derive(Debug, Serialize)]
pub struct InfoDocument<'a> {
    schema: &'static str,
    /// Process id in the pid namespace of this process.
    pub pid: u64,
    /// Unique identifier of the runtime instance.
    pub runtime_cookie: String,
    /// Command line as reported by the runtime.
    pub command_line: &'a str,
    /// Operating system of the target.
    pub os: &'a str,
    /// Processor architecture of the target.
    pub arch: &'a str,
    /// Name of the entry assembly; `None` if unknown.
    pub entry_assembly: Option<&'a str>,
    /// Version of the runtime; `None` if unknown.
    pub runtime_version: Option<&'a str>,
    /// Runtime identifier (RID) of the platform; `None` if unknown.
    pub portable_rid: Option<&'a str>,
    /// Whether the process is suspended at startup; `None` if unknown.
    pub suspended: Option<bool>,
}

impl<'a> InfoDocument<'a> {
    /// Creates the document with the values that all runtimes report.
    pub fn new(pid: u64, runtime_cookie: String, command_line: &'a str, [os, arch]: [&'a str; 2]) -> Self {
        let (entry_assembly, runtime_version, portable_rid, suspended) = (None, None, None, None);
        Self {
            schema: "runtap.info/1",
            pid,
            runtime_cookie,
            command_line,
            os,
            arch,
            entry_assembly,
            runtime_version,
            portable_rid,
            suspended,
        }
    }
}

impl Print for InfoDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let dim = options.dim();
        let unknown = format!("{dim}unknown{dim:#}");
        let or_unknown = |value: Option<&str>| {
            let value = value.filter(|value| !value.is_empty());
            value.map_or_else(|| unknown.clone(), |value| Clean(value).to_string())
        };
        let suspended = match self.suspended {
            Some(true) => "yes, at startup",
            Some(false) => "no",
            None => &unknown,
        };
        let rows = [
            ("process id", self.pid.to_string()),
            ("entry assembly", or_unknown(self.entry_assembly)),
            ("command line", Clean(self.command_line).to_string()),
            ("runtime", or_unknown(self.runtime_version)),
            ("platform", or_unknown(self.portable_rid)),
            ("system", format!("{} {}", Clean(self.os), Clean(self.arch))),
            ("runtime cookie", self.runtime_cookie.clone()),
            ("suspended", suspended.to_owned()),
        ];
        rows.iter().try_for_each(|(name, value)| writeln!(out, "{name:<16}{value}"))
    }
}

/// The document `runtap.env/1`.
#[derive(Debug, Serialize)]
pub struct EnvironmentDocument {
    schema: &'static str,
    /// `None` if the target is a port without a known process.
    pid: Option<u32>,
    /// Sorted by name.
    pub variables: Vec<Variable>,
}

/// An environment variable.
#[derive(Debug, Serialize)]
pub struct Variable {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: String,
}

impl EnvironmentDocument {
    /// Creates the document for a process, sorting the variables.
    pub fn new(pid: Option<u32>, mut variables: Vec<Variable>) -> Self {
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        Self { schema: "runtap.env/1", pid, variables }
    }

    /// Returns a line per variable with the original text, which is not [cleaned](Clean).
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.variables.iter().map(|Variable { name, value }| format!("{name}={value}"))
    }
}
