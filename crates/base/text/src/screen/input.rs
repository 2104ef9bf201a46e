//! Input of the keyboard and the mouse.
//!
//! Owns: [`Keys`], which decodes the bytes of a terminal, and [`listen`], which starts the thread that reads them. crossterm's own
//! reader blocks in the middle of an unknown sequence, and never returns if the terminal is gone.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

/// The interval at which the thread checks whether it should stop.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A pressed key, or what the mouse did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Tab with Shift.
    BackTab,
    /// Backspace.
    Backspace,
    /// An arrow.
    Up,
    /// An arrow.
    Down,
    /// An arrow.
    Left,
    /// An arrow.
    Right,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first row.
    Home,
    /// The last row.
    End,
    /// The wheel of the mouse.
    WheelUp,
    /// The wheel of the mouse.
    WheelDown,
    /// A click into a row of the screen, starting at 0.
    Click(u16),
}

/// The decoder of keys, with the bytes of an incomplete key.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    incomplete: Vec<u8>,
}

/// The maximum length of an incomplete sequence. Longer sequences are unknown and discarded.
const MAX_SEQUENCE: usize = 32;

impl Keys {
    /// Decodes the keys in these bytes. A trailing escape byte is the Escape key, because terminals send a sequence at once.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.incomplete.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut rest = self.incomplete.as_slice();
        while !rest.is_empty() {
            let Some((key, size)) = first(rest) else { break };
            keys.extend(key);
            rest = rest.get(size..).unwrap_or_default();
        }
        self.incomplete = rest.to_vec();
        keys
    }
}

/// Returns the first key and its length in bytes; `None` if the sequence is incomplete.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let one = |key| Some((Some(key), 1));
    match *bytes {
        [b'\r' | b'\n', ..] => one(Key::Enter),
        [b'\t', ..] => one(Key::Tab),
        [0x7f | 0x08, ..] => one(Key::Backspace),
        [0x1b] | [0x1b, 0x1b, ..] => one(Key::Escape),
        [0x1b, b'[' | b'O', ..] => sequence(bytes),
        // A key with Alt, which has no function.
        [0x1b, _, ..] => Some((None, 2)),
        [0x20..0x7f, ..] => one(Key::Char(char::from(*bytes.first()?))),
        [0x80..=0xff, ..] => letter(bytes),
        _ => Some((None, 1)),
    }
}

fn sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let end = bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte));
    let Some(end) = end.map(|end| end + 2) else {
        return (bytes.len() >= MAX_SEQUENCE).then_some((None, bytes.len()));
    };
    let parameters = bytes.get(2..end).unwrap_or_default();
    let key = match (bytes.get(end)?, parameters) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'Z', _) => Key::BackTab,
        (b'M', report) => return Some((mouse(report), end + 1)),
        _ => return Some((None, end + 1)),
    };
    Some((Some(key), end + 1))
}

/// Decodes `<BUTTON;COLUMN;ROW`, which is sent when a button is pressed.
fn mouse(report: &[u8]) -> Option<Key> {
    let report = std::str::from_utf8(report.strip_prefix(b"<")?).ok()?;
    let mut numbers = report.split(';').map(str::parse::<u16>);
    let [Ok(button), Ok(_), Ok(row)] = [numbers.next()?, numbers.next()?, numbers.next()?] else {
        return None;
    };
    match button {
        0 => Some(Key::Click(row.checked_sub(1)?)),
        64 => Some(Key::WheelUp),
        65 => Some(Key::WheelDown),
        _ => None,
    }
}

fn letter(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let bytes = bytes.get(..4).unwrap_or(bytes);
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).unwrap_or_default()
        }
        // An incomplete or an invalid character.
        Err(error) => return error.error_len().map(|_| (None, 1)),
    };
    let letter = valid.chars().next()?;
    Some((Some(Key::Char(letter)), letter.len_utf8()))
}

/// A handle to the thread that reads keys; the thread stops when the handle is dropped.
#[derive(Debug)]
pub(crate) struct KeyReader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the thread that reads standard input. It passes keys to `handle`, and `None` after those that were pressed together, at
/// least once per [`POLL_INTERVAL`].
///
/// # Errors
/// Fails if the thread cannot be created.
pub(crate) fn listen(mut handle: impl FnMut(Option<Key>) + Send + 'static) -> io::Result<KeyReader> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::Builder::new().name("keyboard".into()).spawn(move || {
        // The terminal is gone, which a signal reports as well.
        let _ = read(&stopped, &mut handle);
    })?;
    Ok(KeyReader { stop, thread: Some(thread) })
}

fn read(stop: &AtomicBool, handle: &mut dyn FnMut(Option<Key>)) -> io::Result<()> {
    let keyboard = io::stdin();
    let (mut keys, mut buffer) = (Keys::default(), [0; 256]);
    let wait = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
    while !stop.load(Ordering::Relaxed) {
        if poll(&mut [PollFd::new(&keyboard, PollFlags::IN)], Some(&wait))? == 0 {
            handle(None);
            continue;
        }
        // Input belongs to the foreground process; a background process that reads it would be stopped.
        if tcgetpgrp(&keyboard).is_ok_and(|front| front != getpgrp()) {
            thread::sleep(POLL_INTERVAL);
            continue;
        }
        let size = keyboard.lock().read(&mut buffer)?;
        if size == 0 {
            return Ok(());
        }
        keys.take(buffer.get(..size).unwrap_or_default()).into_iter().for_each(|key| handle(Some(key)));
        handle(None);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_wherever_the_input_is_split() {
        let typed = b"a\x1b[A\x1bOB\x1b[5~\x1b[1;5C\xc3\xa4\r\x7f\t\x1b[Z\x1b[<65;10;5M\x1b[<0;1;7M\x1b[<0;1;7m\x1b[99~q";
        let keys = [
            Key::Char('a'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::Right,
            Key::Char('ä'),
            Key::Enter,
            Key::Backspace,
            Key::Tab,
            Key::BackTab,
            Key::WheelDown,
            Key::Click(6),
            Key::Char('q'),
        ];
        assert_eq!(Keys::default().take(typed), keys);
        for split in 0..typed.len() {
            // An escape byte at the end of a part is the Escape key.
            if split > 0 && typed[split - 1] == 0x1b {
                continue;
            }
            let mut parts = Keys::default();
            let mut decoded = parts.take(&typed[..split]);
            decoded.extend(parts.take(&typed[split..]));
            assert_eq!(decoded, keys, "{split}");
        }
        assert_eq!(Keys::default().take(b"\x1b"), [Key::Escape]);
        assert_eq!(Keys::default().take(b"\x1bx\xff\xff\xff\xff\x01y"), [Key::Char('y')]);
        // The buffer is bounded.
        let mut endless = Keys::default();
        endless.take(b"\x1b[");
        endless.take(&[b'1'; 100]);
        assert!(endless.incomplete.len() < MAX_SEQUENCE);
    }
}
