//! Any text as the value of DOTNET_DiagnosticPorts and as a tool's port: no panic, and every address is a part of the
//! text.
#![no_main]

use runtap_diag_proto::{
    diagnostic_ports,
    tool_port::{ToolPort, Transport},
};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    for port in diagnostic_ports::parse(input) {
        assert!(input.windows(port.address.len()).any(|part| part == port.address));
    }
    for warning in diagnostic_ports::lint(input) {
        assert!(!warning.to_string().is_empty() && !warning.fix().is_empty());
    }
    if let Ok(text) = str::from_utf8(input)
        && let Ok(port) = ToolPort::parse(text, Transport::Socket)
    {
        assert!(!port.address.is_empty() && text.contains(port.address));
    }
});
