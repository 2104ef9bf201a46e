//! Messages about ports and addresses to which runtimes and tools connect.

use std::path::Path;

use runtap_model::Message;
use runtap_transport::Exposure;

/// The next step if an address is not a loopback address.
pub const NOT_LOOPBACK: &str = "Use 127.0.0.1, connect from elsewhere through a tunnel such as 'ssh -L', or pass --insecure on a trusted network.";

/// Formats the warning that other machines can connect to an address, with or without a token.
pub fn reachable(address: &str, has_token: bool) -> String {
    let danger = if has_token {
        "can be read or modified"
    } else {
        "anyone who can connect gains control of the process"
    };
    format!("{address} is reachable from other machines. Traffic is not encrypted and {danger}.")
}

/// Returns the message about other users who can take over a port; `None` if only the current user and root can. Programs
/// reconnect to the port for their whole lifetime and trust any listener.
pub fn exposure(path: &Path, exposure: Exposure, is_root: bool) -> Option<Message> {
    let path = path.display();
    let place = if is_root { "/run/NAME" } else { "$XDG_RUNTIME_DIR" };
    let danger = "a listener there controls the programs that connect to it, with their rights";
    let advice = format!("Put the port into a directory that only you can write to, such as {place}.");
    Some(match exposure {
        Exposure::Private => return None,
        Exposure::Shared if is_root => Message::Warning(format!(
            "other users could have taken the name {path} before, and {danger}. To prevent that later, the socket remains \
             after runtap exits. {advice}"
        )),
        Exposure::Shared => Message::Note(format!(
            "The socket {path} remains after runtap exits, because other users could take the name: {danger}. {advice}"
        )),
        Exposure::Open => Message::Warning(format!(
            "other users can take the name {path} at any time, and {danger}. {advice}"
        )),
    })
}
