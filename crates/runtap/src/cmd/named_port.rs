//! Notes and warnings about a diagnostic port named by the user, printed while runtap waits there for programs.

use runtap_diag::ports::Port;
use runtap_os::{is_root, shell};
use runtap_transport::Exposure;
use runtap_transport::naming::port_address;

use crate::output::Output;

/// Prints the variable that makes a program connect to the port, and who else can use the port.
pub(super) fn note_listening(port: &Port, output: Output) {
    let variable = format!("{}={}", runtap_record::PORTS, shell::word(port_address(port.path())));
    output.note(format_args!("waiting for a program that is started with {variable}"));
    warn_of_exposure(port, output);
}

/// Warns if other users can take over the port: programs reconnect to it for their whole lifetime and trust any listener.
pub(super) fn warn_of_exposure(port: &Port, output: Output) {
    let path = port.path().display();
    let root = is_root();
    let place = if root { "/run/NAME" } else { "$XDG_RUNTIME_DIR" };
    let danger = "whoever listens there commands the programs that dial it, with their rights";
    let advice = format!("put the port into a directory that only you can write to, such as {place}");
    match port.exposure() {
        Exposure::Private => {}
        Exposure::Shared if root => output.warning(format_args!(
            "other users could have taken the name {path} before, and {danger}. So that they do not take it later, the \
             socket stays there when this ends; {advice}"
        )),
        Exposure::Shared => output.note(format_args!(
            "the socket stays at {path} when this ends, or other users could take the name: {danger}; {advice}"
        )),
        Exposure::Open => output.warning(format_args!(
            "other users can take the name {path} at any time, and {danger}: {advice}"
        )),
    }
}
