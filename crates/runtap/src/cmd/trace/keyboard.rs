//! The Enter key as a way to ask for the end, for who has the terminal for himself.

use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use runtap_record::Stops;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// How often it is looked whether we are in front again.
const LOOK: Duration = Duration::from_secs(1);

/// Asks for the end when a line comes on standard input, on a thread that ends with the program.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn stop_on_enter(stops: &Stops) -> io::Result<()> {
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
