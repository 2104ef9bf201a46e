//! The command line of dotnet-dsrouter: its short options, and the modes that runtap's router does not have.

use std::ffi::OsString;
use std::fmt;

/// Converts the arguments of dotnet-dsrouter: its short options have several letters, and its `-v` takes a level.
pub fn normalize_args(words: &mut Vec<OsString>) {
    for word in words.iter_mut() {
        let long = match word.to_str() {
            Some("-ipcs") => "--ipc-server",
            Some("-ipcc") => "--ipc-client",
            Some("-tcps") => "--tcp-server",
            Some("-tcpc") => "--tcp-client",
            Some("-rt") => "--runtime-timeout",
            Some("-fp") => "--forward-port",
            _ => continue,
        };
        *word = long.into();
    }
    let is_verbose = |word: &OsString| word == "-v" || word == "--verbose";
    let Some(at) = words.iter().position(is_verbose) else { return };
    let verbosity = match words.get(at + 1).and_then(|level| level.to_str()) {
        Some("none" | "critical" | "error" | "warning" | "info" | "information") => None,
        Some("debug" | "trace") => Some(OsString::from("-v")),
        _ => return,
    };
    words.splice(at..at + 2, verbosity);
}

/// A mode of dotnet-dsrouter that is not supported. Displays as the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported<'a> {
    /// A side that uses `WebSockets`.
    WebSocket,
    /// The preset for the iOS simulator.
    IosSimulator,
    /// The preset for the Android emulator.
    AndroidEmulator,
    /// Forwarding the ports of a device of this kind, which requires the device's own tools.
    Device(&'a str),
}

impl fmt::Display for Unsupported<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebSocket => {
                f.write_str("WebSockets are not supported; only programs in a browser use them")
            }
            Self::IosSimulator => f.write_str("there is no preset for a simulator"),
            Self::AndroidEmulator => f.write_str("there is no preset for an emulator"),
            Self::Device(device) => {
                write!(
                    f,
                    "ports of devices ({device}) are not forwarded; this requires the tools of the device"
                )
            }
        }
    }
}

impl Unsupported<'_> {
    /// Returns what serves instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::WebSocket => {
                "dotnet-dsrouter has these modes; for all other programs use server-server or server-client."
            }
            Self::IosSimulator => {
                "Its programs listen on this machine: runtap router server-client --tcp-client 127.0.0.1:9000"
            }
            Self::AndroidEmulator => {
                "Its programs connect to 10.0.2.2:9000, which is this machine: runtap router server-server --tcp-server 127.0.0.1:9000"
            }
            Self::Device(device) if device.eq_ignore_ascii_case("android") => {
                "Run 'adb reverse tcp:9000 tcp:9001', then: runtap router server-server --tcp-server 127.0.0.1:9001"
            }
            Self::Device(_) => {
                "Forward port 9000, for example with 'iproxy 9000 9000', then: runtap router server-client --tcp-client \
                 127.0.0.1:9000"
            }
        }
    }
}
