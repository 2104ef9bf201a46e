//! The environment variables that determine where a runtime creates its socket, whether it creates one, and whether it suspends at
//! startup. Pure. Source: the runtime's configuration knobs, and measurements of .NET 8, 9 and 10.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The diagnostics settings in the environment of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// `TMPDIR`, unchanged.
    pub tmpdir: Option<OsString>,
    /// The variable that disables the diagnostics server, with its value.
    pub disabled: Option<(String, String)>,
    /// `DOTNET_DiagnosticPorts`: the ports to which it connects, in the runtime's grammar.
    pub ports: Option<OsString>,
    /// `DOTNET_DefaultDiagnosticPortSuspend`: whether it waits at startup for a command on its own port.
    pub default_port_suspend: bool,
    /// Whether the environment was too long to be read completely.
    pub is_truncated: bool,
}

/// The number of bytes that are kept of an entry. A runtime ignores longer values.
const LONGEST_ENTRY: usize = MAX_PORTS + 256;
/// The longest path that system calls accept.
const LONGEST_PATH: usize = 4096;
/// Room for hundreds of ports.
const MAX_PORTS: usize = 64 << 10;

/// In order of precedence.
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
            [] => f.write_str("no diagnostics variables set")?,
            told => f.write_str(&told.join(" "))?,
        }
        f.write_str(if self.is_truncated { " (too long: only the first part was read)" } else { "" })
    }
}

/// Collects the variables of interest while the text is read in pieces. Other variables are dropped.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// The values, in the order of [`VARIABLES`].
    values: [Option<Vec<u8>>; VARIABLES.len()],
    /// The first part of an entry that continues in the next piece.
    begun: Vec<u8>,
}

const VARIABLES: [&str; 9] = [
    "TMPDIR",
    "DOTNET_EnableDiagnostics",
    "COMPlus_EnableDiagnostics",
    "DOTNET_EnableDiagnostics_IPC",
    "COMPlus_EnableDiagnostics_IPC",
    "DOTNET_DiagnosticPorts",
    "COMPlus_DiagnosticPorts",
    "DOTNET_DefaultDiagnosticPortSuspend",
    "COMPlus_DefaultDiagnosticPortSuspend",
];

impl Entries {
    /// Adds the next bytes of `/proc/PID/environ`.
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|b| *b == 0) {
            let (entry, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.begun.is_empty() {
                self.entry(entry);
            } else {
                self.begin(entry);
                let whole = std::mem::take(&mut self.begun);
                self.entry(&whole);
            }
        }
        self.begin(bytes);
    }

    fn begin(&mut self, bytes: &[u8]) {
        let room = LONGEST_ENTRY.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn entry(&mut self, entry: &[u8]) {
        // A cheap check rejects most entries.
        if !matches!(entry.first(), Some(b'T' | b'D' | b'C')) {
            return;
        }
        let Some(equals) = entry.iter().position(|b| *b == b'=') else { return };
        let (name, value) = entry.split_at(equals);
        let known = VARIABLES.iter().zip(&mut self.values).find(|(known, _)| known.as_bytes() == name);
        if let Some((_, kept)) = known {
            // `getenv` returns the first of several entries.
            kept.get_or_insert_with(|| value.get(1..).unwrap_or_default().to_vec());
        }
    }

    /// Returns the environment after the end of the text, or of the part that was read.
    pub(super) fn finish(mut self, is_truncated: bool) -> Environment {
        let last = std::mem::take(&mut self.begun);
        if !is_truncated {
            self.entry(&last);
        }
        let get = |name: &str| {
            let mut known = VARIABLES.iter().zip(&self.values);
            known.find(|(known, _)| **known == name)?.1.as_deref()
        };
        let knob = |name: &str| {
            PREFIXES.iter().find_map(|prefix| {
                let name = format!("{prefix}{name}");
                // An empty value counts as not set.
                get(&name).filter(|value| !value.is_empty()).map(|value| (name, value))
            })
        };
        let off = |name: &str| knob(name).filter(|(_, value)| number(value) == Some(0));
        Environment {
            tmpdir: get("TMPDIR")
                .filter(|value| value.len() < LONGEST_PATH)
                .map(|value| OsString::from_vec(value.to_vec())),
            disabled: off("EnableDiagnostics").or_else(|| off("EnableDiagnostics_IPC")).map(
                |(name, value)| {
                    (name, String::from_utf8_lossy(value.get(..100).unwrap_or(value)).into_owned())
                },
            ),
            ports: knob("DiagnosticPorts")
                .filter(|(_, value)| value.len() < MAX_PORTS)
                .map(|(_, value)| OsStr::from_bytes(value).to_owned()),
            default_port_suspend: knob("DefaultDiagnosticPortSuspend")
                .is_some_and(|(_, value)| number(value).is_some_and(|number| number != 0)),
            is_truncated,
        }
    }
}

impl Environment {
    /// Parses the text of `/proc/PID/environ`.
    #[cfg(any(test, fuzzing))]
    pub(super) fn parse(environ: &[u8]) -> Self {
        let mut entries = Entries::default();
        entries.add(environ);
        entries.finish(false)
    }
}

/// Parses a switch: the runtime reads the leading hexadecimal digits. `None` if there are none.
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

    /// Independent of the sizes of the pieces.
    #[test]
    fn in_pieces() {
        let long = "x".repeat(LONGEST_ENTRY);
        let text = format!(
            "A=1\0TMPDIR=/x\0T=2\0TMPDIR=/y\0DOTNET_DiagnosticPorts=/p;q\0B={long}\0C\0\0COMPlus_EnableDiagnostics=0"
        );
        let whole = Environment::parse(text.as_bytes());
        assert_eq!(
            (whole.tmpdir.as_deref(), whole.ports.as_deref()),
            (Some("/x".as_ref()), Some("/p;q".as_ref()))
        );
        assert_eq!(whole.disabled.as_ref().map(|(_, value)| value.as_str()), Some("0"));
        for size in [1, 2, 3, 5, 7, 11, 13, 4096] {
            let mut entries = Entries::default();
            text.as_bytes().chunks(size).for_each(|piece| entries.add(piece));
            assert!(entries.begun.len() <= LONGEST_ENTRY);
            assert_eq!(entries.finish(false), whole, "{size}");
        }
        // An incomplete value is ignored.
        let mut entries = Entries::default();
        entries.add(b"DOTNET_DiagnosticPorts=/p\0TMPDIR=/ha");
        let cut = Environment { ports: Some("/p".into()), is_truncated: true, ..Environment::default() };
        assert_eq!(entries.finish(true), cut);
        // A value that is too long is ignored, but still hides a later one.
        let mut entries = Entries::default();
        for piece in ["TMPDIR=", &long, &long, "\0TMPDIR=/z\0DOTNET_DiagnosticPorts=", &long, &long] {
            entries.add(piece.as_bytes());
            assert!(entries.begun.len() <= LONGEST_ENTRY);
        }
        assert_eq!(entries.finish(false), Environment::default());
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
