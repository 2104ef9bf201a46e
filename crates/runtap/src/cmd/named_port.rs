//! A port that the user names: what is to be known of it while programs are waited for there.

use runtap_diag::ports::Port;
use runtap_os::{is_root, shell};
use runtap_transport::Exposure;
use runtap_transport::naming::port_address;

use crate::output::Output;

/// What to set for a program that is to dial in, and what is to be known of the place.
pub(super) fn tell_listening(port: &Port, output: Output) {
    let variable = format!("{}={}", runtap_record::PORTS, shell::word(port_address(port.path())));
    output.note(format_args!("waiting for a program that is started with {variable}"));
    tell_exposure(port, output);
}

/// Programs dial the port as long as they live, and obey whoever listens there: what is to be known of a place that is not
/// the user's alone.
pub(super) fn tell_exposure(port: &Port, output: Output) {
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
