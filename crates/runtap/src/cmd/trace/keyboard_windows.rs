//! The Enter key as a way to ask for the end, in a console.

use std::io::{self, BufRead};
use std::thread;

use runtap_record::Stops;

/// Asks for the end when a line comes on standard input, on a thread that ends with the program.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn stop_on_enter(stops: &Stops) -> io::Result<()> {
    let stops = stops.clone();
    thread::Builder::new().name("keyboard".into()).spawn(move || {
        if io::stdin().lock().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {
            stops.stop();
        }
    })?;
    Ok(())
}
