//! What a runtime says of itself: `runtap.info/1` with its text, and `runtap.env/1`.

use std::io;

use serde::Serialize;

use crate::{Clean, Print, TextOptions};

/// `runtap.info/1`
#[derive(Debug, Serialize)]
pub struct InfoDocument<'a> {
    schema: &'static str,
    /// Of which process, as we number it.
    pub pid: u64,
    /// The same for as long as the process lives, and of no other.
    pub runtime_cookie: String,
    /// As the runtime says.
    pub command_line: &'a str,
    /// Its system.
    pub os: &'a str,
    /// What its processor is.
    pub arch: &'a str,
    /// Name of the entry assembly.
    pub entry_assembly: Option<&'a str>,
    /// Which release it is.
    pub runtime_version: Option<&'a str>,
    /// The runtime identifier of its platform.
    pub portable_rid: Option<&'a str>,
    /// Whether it waits at its start, if that is known.
    pub suspended: Option<bool>,
}

impl<'a> InfoDocument<'a> {
    /// With what every runtime knows.
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
            Some(true) => "yes, at its start",
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

/// `runtap.env/1`
#[derive(Debug, Serialize)]
pub struct EnvironmentDocument {
    schema: &'static str,
    /// `None` for a bare port.
    pid: Option<u32>,
    /// By their names.
    pub variables: Vec<Variable>,
}

/// A variable of an environment.
#[derive(Debug, Serialize)]
pub struct Variable {
    /// What it is called.
    pub name: String,
    /// What it says.
    pub value: String,
}

impl EnvironmentDocument {
    /// Of a process, whose variables are sorted here.
    pub fn new(pid: Option<u32>, mut variables: Vec<Variable>) -> Self {
        variables.sort_by(|a, b| a.name.cmp(&b.name));
        Self { schema: "runtap.env/1", pid, variables }
    }

    /// A line for each variable, as its process has it: not [cleaned](Clean).
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.variables.iter().map(|Variable { name, value }| format!("{name}={value}"))
    }
}
