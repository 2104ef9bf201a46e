//! The variables in a process's environment by which its runtime decides where its sockets are, whether there are any,
//! and whether it waits at its start. Pure. Source: the runtime's configuration knobs, and .NET 8, 9 and 10 as measured.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What a runtime was told by its environment, as far as diagnostics go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// `TMPDIR`, as it stands there.
    pub tmpdir: Option<OsString>,
    /// A variable that switches the diagnostics server off, with its value.
    pub disabled: Option<(String, String)>,
    /// `DOTNET_DiagnosticPorts`: ports that it shall dial, in the runtime's grammar.
    pub ports: Option<OsString>,
    /// `DOTNET_DefaultDiagnosticPortSuspend`: it waits at its start for a command on its own port.
    pub default_port_suspend: bool,
}

/// No system call takes a longer path.
const LONGEST_PATH: usize = 4096;
/// Hundreds of ports.
const MOST_PORTS: usize = 64 << 10;

/// The newer prefix wins where both are set.
const PREFIXES: [&str; 2] = ["DOTNET_", "COMPlus_"];

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &OsString| value.to_string_lossy().into_owned();
        let mut told: Vec<String> = Vec::new();
        told.extend(self.tmpdir.as_ref().map(|folder| format!("TMPDIR={}", text(folder))));
        told.extend(self.disabled.as_ref().map(|(name, value)| format!("{name}={value}")));
        told.extend(self.ports.as_ref().map(|ports| format!("DOTNET_DiagnosticPorts={}", text(ports))));
        told.extend(self.default_port_suspend.then(|| "DOTNET_DefaultDiagnosticPortSuspend=1".to_owned()));
        match &told[..] {
            [] => f.write_str("says nothing of diagnostics"),
            told => f.write_str(&told.join(" ")),
        }
    }
}

impl Environment {
    /// Takes the text of `/proc/PID/environ`.
    pub(super) fn parse(environ: &[u8]) -> Self {
        let entries = || {
            environ.split(|b| *b == 0).filter_map(|entry| {
                let equals = entry.iter().position(|b| *b == b'=')?;
                Some((entry.get(..equals)?, entry.get(equals + 1..)?))
            })
        };
        // `getenv` takes the first of several.
        let get = |name: &str| entries().find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value);
        let knob = |name: &str| {
            PREFIXES.iter().find_map(|prefix| {
                let name = format!("{prefix}{name}");
                // An empty one counts as not set.
                get(&name).filter(|value| !value.is_empty()).map(|value| (name, value))
            })
        };
        let off = |name: &str| knob(name).filter(|(_, value)| number(value) == Some(0));
        Self {
            tmpdir: get("TMPDIR")
                .filter(|value| value.len() < LONGEST_PATH)
                .map(|value| OsString::from_vec(value.to_vec())),
            disabled: off("EnableDiagnostics").or_else(|| off("EnableDiagnostics_IPC")).map(
                |(name, value)| {
                    (name, String::from_utf8_lossy(value.get(..100).unwrap_or(value)).into_owned())
                },
            ),
            ports: knob("DiagnosticPorts")
                .filter(|(_, value)| value.len() < MOST_PORTS)
                .map(|(_, value)| OsStr::from_bytes(value).to_owned()),
            default_port_suspend: knob("DefaultDiagnosticPortSuspend")
                .is_some_and(|(_, value)| number(value).is_some_and(|number| number != 0)),
        }
    }
}

/// The runtime reads its switches as hexadecimal numbers; what does not begin with one counts as not set.
fn number(value: &[u8]) -> Option<u64> {
    let digits = value.strip_prefix(b"0x").unwrap_or(value);
    let end = digits.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(digits.len());
    u64::from_str_radix(str::from_utf8(digits.get(..end)?).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disabled(text: &[u8]) -> Option<String> {
        Environment::parse(text).disabled.map(|(name, value)| format!("{name}={value}"))
    }

    #[test]
    fn switches() {
        let found = Environment::parse(b"A=1\0TMPDIR=/x\0TMPDIR=/y\0DOTNET_EnableDiagnostics_IPC=0\0");
        assert_eq!(found.tmpdir, Some("/x".into()));
        assert_eq!(found.disabled, Some(("DOTNET_EnableDiagnostics_IPC".to_owned(), "0".to_owned())));
        assert_eq!(
            disabled(b"COMPlus_EnableDiagnostics=0x00").as_deref(),
            Some("COMPlus_EnableDiagnostics=0x00")
        );
        for on in [
            &b"DOTNET_EnableDiagnostics=1\0DOTNET_EnableDiagnostics_Debugger=0"[..],
            b"DOTNET_EnableDiagnostics=",
            b"DOTNET_EnableDiagnostics=no",
            b"DOTNET_EnableDiagnostics=10",
            b"dotnet_EnableDiagnostics=0",
            // The newer prefix wins.
            b"COMPlus_EnableDiagnostics=0\0DOTNET_EnableDiagnostics=1",
            b"",
        ] {
            assert_eq!(disabled(on), None, "{}", String::from_utf8_lossy(on));
        }
    }

    #[test]
    fn ports_and_suspension() {
        let found =
            Environment::parse(b"COMPlus_DiagnosticPorts=/old\0DOTNET_DiagnosticPorts=/p;q,nosuspend\0");
        assert_eq!(found.ports, Some("/p;q,nosuspend".into()));
        assert!(!found.default_port_suspend);
        assert!(Environment::parse(b"DOTNET_DefaultDiagnosticPortSuspend=1").default_port_suspend);
        assert!(!Environment::parse(b"DOTNET_DefaultDiagnosticPortSuspend=0").default_port_suspend);
        assert_eq!(Environment::parse(b"DOTNET_DiagnosticPorts=").ports, None);
    }
}
