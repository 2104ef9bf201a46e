//! The server's identity in the handshake.

use std::path::Path;

use runtap_mtp_proto::server::{Mode, Settings};
use runtap_mtp_proto::{Handshake, HandshakeKey};
use runtap_transport::naming::port_address;

/// Returns settings of a server that requests started tests, and has a control pipe at this path.
pub fn server_settings(mode: Mode, control: Option<&Path>) -> Settings {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "X64",
        "aarch64" => "Arm64",
        other => other,
    };
    let identity = Handshake::new()
        .with(HandshakeKey::PID, std::process::id().to_string())
        .with(HandshakeKey::ARCHITECTURE, architecture)
        .with(HandshakeKey::FRAMEWORK, concat!("runtap ", env!("CARGO_PKG_VERSION")))
        .with(HandshakeKey::OS, std::env::consts::OS);
    let control_pipe = control.map(port_address).and_then(Path::to_str).map(str::to_owned);
    Settings { is_ide: true, control_pipe, identity, ..Settings::new(mode) }
}
