//! Enter ends a recording, as it does with dotnet-trace; not with a launched command, which has the keyboard for itself.

use std::io::{self, BufRead, IsTerminal};
use std::thread;
use std::time::Duration;

use runtap_record::Stops;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::output::Output;

/// How often it is looked whether we are in front again.
const LOOK: Duration = Duration::from_secs(1);

/// Whether somebody looks on who could type it.
pub(super) fn is_heard(output: Output) -> bool {
    output.progress() && io::stdin().is_terminal()
}

/// Listens. The thread ends with the program.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn listen(stops: &Stops) -> io::Result<()> {
    let stops = stops.clone();
    thread::Builder::new().name("keyboard".into()).spawn(move || {
        if is_typed().unwrap_or(false) {
            stops.stop();
        }
    })?;
    Ok(())
}

/// Waits for a line. What is typed while we are in the background is meant for somebody else, and reading it would stop us.
fn is_typed() -> io::Result<bool> {
    let keyboard = io::stdin();
    loop {
        poll(&mut [PollFd::new(&keyboard, PollFlags::IN)], None)?;
        // A terminal that does not control us stops nobody, and does not tell who is in front.
        if tcgetpgrp(&keyboard).is_ok_and(|front| front != getpgrp()) {
            thread::sleep(LOOK);
            continue;
        }
        return Ok(keyboard.lock().read_line(&mut String::new())? > 0);
    }
}
