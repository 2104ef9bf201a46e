//! Information about a .NET process or a Java program: `runtap.info/1` with its text, and `runtap.env/1`.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::Duration;

use runtap_model::order;
use serde::Serialize;

use crate::units::Span;
use crate::{Clean, Print, TextOptions};

/// The document `runtap.info/1`.
#[derive(Debug, Serialize)]
pub struct InfoDocument<'a> {
    schema: &'static str,
    /// Process id in the pid namespace of this process.
    pub pid: u64,
    /// Unique identifier of the .NET runtime instance; `None` for Java programs.
    pub runtime_cookie: Option<String>,
    /// Command line as reported by the runtime.
    pub command_line: &'a str,
    /// Operating system of the target; `None` if unknown.
    pub os: Option<&'a str>,
    /// Processor architecture of the target; `None` if unknown.
    pub arch: Option<&'a str>,
    /// Name of the entry assembly; `None` if unknown.
    pub entry_assembly: Option<&'a str>,
    /// Version of the runtime; `None` if unknown.
    pub runtime_version: Option<&'a str>,
    /// Runtime identifier (RID) of the platform; `None` if unknown.
    pub portable_rid: Option<&'a str>,
    /// Whether the process is suspended at startup; `None` if unknown.
    pub suspended: Option<bool>,
    /// `dotnet` or `jvm`.
    pub kind: &'static str,
    /// Entry assembly, or main class or archive; `None` if unknown.
    pub entry: Option<&'a str>,
    /// Name of the user; `None` if unknown.
    pub user: Option<&'a str>,
    /// Time since the process started; `None` if unknown.
    pub uptime_ns: Option<u64>,
    /// Java virtual machine; `None` for .NET.
    pub jvm: Option<JvmInfo<'a>>,
}

/// A Java virtual machine.
#[derive(Debug, Default, Serialize)]
pub struct JvmInfo<'a> {
    /// Name of the virtual machine; `None` if unknown.
    pub vm_name: Option<&'a str>,
    /// Version of the virtual machine; `None` if unknown.
    pub vm_version: Option<&'a str>,
    /// Modes in which it runs, such as `mixed mode, sharing`; `None` if unknown.
    pub vm_info: Option<&'a str>,
    /// Vendor of the virtual machine; `None` if unknown.
    pub vendor: Option<&'a str>,
    /// Directory of the Java installation, as seen by the process; `None` if unknown.
    pub java_home: Option<&'a str>,
    /// Arguments of the virtual machine from all sources, without the class path; `None` if unknown.
    pub jvm_args: Option<&'a str>,
    /// Options in the file `.hotspotrc`; `None` if there are none, or unknown.
    pub jvm_flags: Option<&'a str>,
    /// Origin of these values: `counters`, `attach` or `process`.
    pub source: &'static str,
}

impl<'a> InfoDocument<'a> {
    /// Creates the document of a .NET process or a Java program, with all other values unknown.
    pub fn new(pid: u64, kind: &'static str, command_line: &'a str) -> Self {
        Self {
            schema: "runtap.info/1",
            pid,
            runtime_cookie: None,
            command_line,
            os: None,
            arch: None,
            entry_assembly: None,
            runtime_version: None,
            portable_rid: None,
            suspended: None,
            kind,
            entry: None,
            user: None,
            uptime_ns: None,
            jvm: None,
        }
    }

    /// Prints names and values of a Java program.
    fn print_jvm(&self, jvm: &JvmInfo<'_>, out: &mut dyn io::Write, unknown: &str) -> io::Result<()> {
        let shown =
            |value: Option<&str>| value.map_or_else(|| unknown.to_owned(), |value| Clean(value).to_string());
        let file = self.entry.map(Path::new).and_then(Path::extension);
        let entry = match file.and_then(OsStr::to_str) {
            Some("jar") => "main archive",
            Some("java") => "source file",
            _ => "main class",
        };
        let machine = match (jvm.vm_name, jvm.vm_version, jvm.vm_info) {
            (None, ..) => unknown.to_owned(),
            (Some(name), version, info) => {
                let version = version.map(|version| format!(" {}", Clean(version))).unwrap_or_default();
                let info = info.map(|info| format!(" ({})", Clean(info))).unwrap_or_default();
                format!("{}{version}{info}", Clean(name))
            }
        };
        let java = self.runtime_version.map(|version| format!("Java {version}"));
        let uptime = self.uptime_ns.map(|ns| Span(Duration::from_nanos(ns)).to_string());
        let system = self.os.map(|os| format!("{os} {}", self.arch.unwrap_or_default()));
        let rows = [
            ("process id", self.pid.to_string()),
            (entry, shown(self.entry)),
            ("command line", shown(Some(self.command_line))),
            ("runtime", shown(java.as_deref())),
            ("virtual machine", machine),
            ("vendor", shown(jvm.vendor)),
            ("java home", shown(jvm.java_home)),
            ("JVM arguments", shown(jvm.jvm_args)),
            ("system", shown(system.as_deref().map(str::trim_end))),
            ("user", shown(self.user)),
            ("uptime", shown(uptime.as_deref())),
        ];
        rows.iter().try_for_each(|(name, value)| writeln!(out, "{}", format!("{name:<16}{value}").trim_end()))
    }
}

impl Print for InfoDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let dim = options.dim();
        let unknown = format!("{dim}unknown{dim:#}");
        if let Some(jvm) = &self.jvm {
            return self.print_jvm(jvm, out, &unknown);
        }
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
            (
                "system",
                format!("{} {}", Clean(self.os.unwrap_or_default()), Clean(self.arch.unwrap_or_default())),
            ),
            ("runtime cookie", self.runtime_cookie.clone().unwrap_or_default()),
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
    /// Whether these are the variables at the start of the program, not the current ones.
    at_startup: bool,
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
        order::sort_by(&mut variables, |a, b| a.name.cmp(&b.name));
        Self { schema: "runtap.env/1", pid, variables, at_startup: false }
    }

    /// States that these are the variables at the start of the program.
    #[must_use]
    pub fn at_startup(self) -> Self {
        Self { at_startup: true, ..self }
    }

    /// Returns a line per variable with the original text, which is not [cleaned](Clean).
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.variables.iter().map(|Variable { name, value }| format!("{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_java_program_is_described_and_unknown_values_are_named() {
        let shown = |document: &InfoDocument<'_>| {
            let mut text = Vec::new();
            document.print(&mut text, &TextOptions::default()).unwrap();
            String::from_utf8(text).unwrap()
        };
        let mut document = InfoDocument::new(42, "jvm", "java -Xmx1g -jar app.jar");
        document.jvm = Some(JvmInfo { source: "process", ..JvmInfo::default() });
        insta::assert_snapshot!(shown(&document), @r"
        process id      42
        main class      unknown
        command line    java -Xmx1g -jar app.jar
        runtime         unknown
        virtual machine unknown
        vendor          unknown
        java home       unknown
        JVM arguments   unknown
        system          unknown
        user            unknown
        uptime          unknown
        ");
        (document.entry, document.runtime_version) = (Some("app.jar"), Some("17.0.15"));
        (document.os, document.arch, document.user) = (Some("Linux"), Some("x64"), Some("ann"));
        document.uptime_ns = Some(90_000_000_000);
        document.jvm = Some(JvmInfo {
            vm_name: Some("OpenJDK 64-Bit Server VM"),
            vm_version: Some("17.0.15+6"),
            vm_info: Some("mixed mode, sharing"),
            vendor: Some("Eclipse Adoptium"),
            java_home: Some("/opt/jdk\u{1b}"),
            jvm_args: Some("-Xmx1g"),
            jvm_flags: None,
            source: "counters",
        });
        insta::assert_snapshot!(shown(&document), @r"
        process id      42
        main archive    app.jar
        command line    java -Xmx1g -jar app.jar
        runtime         Java 17.0.15
        virtual machine OpenJDK 64-Bit Server VM 17.0.15+6 (mixed mode, sharing)
        vendor          Eclipse Adoptium
        java home       /opt/jdk\u{1b}
        JVM arguments   -Xmx1g
        system          Linux x64
        user            ann
        uptime          00:01:30
        ");
    }
}
