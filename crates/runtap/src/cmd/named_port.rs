//! Notes and warnings about a diagnostic port named by the user, printed while runtap waits there for programs.

use runtap_diag::ports::Port;
use runtap_os::{is_root, shell};
use runtap_route::messages;
use runtap_text::Output;
use runtap_transport::naming::{PORTS, port_address};

/// Prints the variable that makes a program connect to the port, and who else can use the port.
pub(super) fn note_listening(port: &Port, output: Output) {
    let variable = format!("{}={}", PORTS, shell::word(port_address(port.path())));
    output.note(format_args!("Waiting for a program that is started with {variable}"));
    warn_of_exposure(port, output);
}

/// Warns if other users can take over the port: programs reconnect to it for their whole lifetime and trust any listener.
pub(super) fn warn_of_exposure(port: &Port, output: Output) {
    output.messages(messages::exposure(port.path(), port.exposure(), is_root()));
}
