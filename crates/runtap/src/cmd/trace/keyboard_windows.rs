//! Stops a recording when the user presses Enter in the console.

use std::io::{self, BufRead};
use std::thread;

use runtap_record::Stops;

/// Starts a thread that stops the recording when a line is read from stdin.
///
/// # Errors
/// The thread cannot be started.
pub(super) fn stop_on_enter(stops: &Stops) -> io::Result<()> {
    let stops = stops.clone();
    thread::Builder::new().name("keyboard".into()).spawn(move || {
        if io::stdin().lock().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {
            stops.stop();
        }
    })?;
    Ok(())
}
