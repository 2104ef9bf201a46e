//! Messages that are held back while a full-screen interface has the terminal.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(all(unix, feature = "tui"))]
use anstream::eprintln;

/// The maximum number of messages. The last ones are kept.
const MAX_MESSAGES: usize = 200;

/// The messages, while they are held back.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts holding back messages.
#[cfg(all(unix, feature = "tui"))]
pub(crate) fn begin() {
    lock().get_or_insert_default();
}

/// Adds a line if messages are held back. Returns whether they are.
pub(crate) fn add(line: &dyn std::fmt::Display) -> bool {
    let mut held = lock();
    let Some(lines) = held.as_mut() else { return false };
    if lines.len() >= MAX_MESSAGES {
        lines.remove(0);
    }
    lines.push(line.to_string());
    true
}

/// Returns the number of messages so far, and the last one without styles.
#[cfg(all(unix, feature = "tui"))]
pub(crate) fn last() -> (usize, Option<String>) {
    let held = lock();
    let lines = held.as_deref().unwrap_or_default();
    (lines.len(), lines.last().map(|line| anstream::adapter::strip_str(line).to_string()))
}

/// Prints the messages, and the following ones when they occur.
#[cfg(all(unix, feature = "tui"))]
pub(crate) fn end() {
    for line in lock().take().unwrap_or_default() {
        eprintln!("{line}");
    }
}
