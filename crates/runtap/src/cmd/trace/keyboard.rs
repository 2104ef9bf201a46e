//! Stops a recording when the user presses Enter, if runtap is in the foreground of the terminal.

use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use runtap_record::Stops;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// The interval at which runtap checks whether it is in the foreground again.
const FOREGROUND_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Starts a thread that stops the recording when a line is read from stdin.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn stop_on_enter(stops: &Stops) -> io::Result<()> {
    let stops = stops.clone();
    thread::Builder::new().name("keyboard".into()).spawn(move || {
        if wait_for_line().unwrap_or(false) {
            stops.stop();
        }
    })?;
    Ok(())
}

/// Waits for a line. In the background, input belongs to another program, and reading it would stop runtap with SIGTTIN.
fn wait_for_line() -> io::Result<bool> {
    let keyboard = io::stdin();
    loop {
        poll(&mut [PollFd::new(&keyboard, PollFlags::IN)], None)?;
        // If stdin is not the controlling terminal, the call fails, and reading cannot stop runtap.
        if tcgetpgrp(&keyboard).is_ok_and(|front| front != getpgrp()) {
            thread::sleep(FOREGROUND_POLL_INTERVAL);
            continue;
        }
        return Ok(keyboard.lock().read_line(&mut String::new())? > 0);
    }
}
