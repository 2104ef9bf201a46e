//! Keys.
//!
//! Owns: [`Keys`], which makes keys of what a terminal sends, and [`listen`], the thread that reads it.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;
use tokio::sync::mpsc;

/// How often it is looked whether the view is still there.
const LOOK: Duration = Duration::from_millis(100);

/// What was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// What has come and is no whole key yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    waiting: Vec<u8>,
}

/// The longest sequence that is waited for: what is longer is nothing that is known.
const LONGEST: usize = 16;

impl Keys {
    /// The keys in what has come. An escape at the end is the key: terminals send the bytes of a sequence together.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.waiting.extend_from_slice(bytes);
        let mut keys = Vec::new();
        let mut rest = self.waiting.as_slice();
        while !rest.is_empty() {
            let Some((key, size)) = first(rest) else { break };
            keys.extend(key);
            rest = rest.get(size..).unwrap_or_default();
        }
        self.waiting = rest.to_vec();
        keys
    }
}

/// The first key, and how many bytes it took. `None`: more has to come.
fn first(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let one = |key| Some((Some(key), 1));
    match *bytes {
        [b'\r' | b'\n', ..] => one(Key::Enter),
        [b'\t', ..] => one(Key::Tab),
        [0x7f | 0x08, ..] => one(Key::Backspace),
        [0x1b] | [0x1b, 0x1b, ..] => one(Key::Escape),
        [0x1b, b'[' | b'O', ..] => sequence(bytes),
        // With Alt: of no meaning.
        [0x1b, _, ..] => Some((None, 2)),
        [0x20..0x7f, ..] => one(Key::Char(char::from(*bytes.first()?))),
        [0x80..=0xff, ..] => letter(bytes),
        _ => Some((None, 1)),
    }
}

fn sequence(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let end = bytes.iter().skip(2).position(|byte| (0x40..0x7f).contains(byte));
    let Some(end) = end.map(|end| end + 2) else {
        return (bytes.len() >= LONGEST).then_some((None, bytes.len()));
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
        _ => return Some((None, end + 1)),
    };
    Some((Some(key), end + 1))
}

fn letter(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let bytes = bytes.get(..4).unwrap_or(bytes);
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).unwrap_or_default()
        }
        // A letter of which not all has come, or what no letter begins with.
        Err(error) => return error.error_len().map(|_| (None, 1)),
    };
    let letter = valid.chars().next()?;
    Some((Some(Key::Char(letter)), letter.len_utf8()))
}

/// The thread that reads, until this is dropped.
#[derive(Debug)]
pub(super) struct Listening {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads keys of standard input until the view is over.
///
/// # Errors
/// There is no thread to be had.
pub(super) fn listen(to: mpsc::Sender<Key>) -> io::Result<Listening> {
    let stop = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&stop);
    let thread = thread::Builder::new().name("keyboard".into()).spawn(move || {
        // An error is the end of the terminal, which a signal tells too.
        let _ = read(&ends, &to);
    })?;
    Ok(Listening { stop, thread: Some(thread) })
}

fn read(stop: &AtomicBool, to: &mpsc::Sender<Key>) -> io::Result<()> {
    let keyboard = io::stdin();
    let (mut keys, mut buffer) = (Keys::default(), [0; 256]);
    let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
    while !stop.load(Ordering::Relaxed) {
        if poll(&mut [PollFd::new(&keyboard, PollFlags::IN)], Some(&wait))? == 0 {
            continue;
        }
        // What is typed while we are in the background is meant for somebody else, and reading it would stop us.
        if tcgetpgrp(&keyboard).is_ok_and(|front| front != getpgrp()) {
            thread::sleep(LOOK);
            continue;
        }
        let size = keyboard.lock().read(&mut buffer)?;
        if size == 0 {
            return Ok(());
        }
        for key in keys.take(buffer.get(..size).unwrap_or_default()) {
            // A key too many is lost, rather than waited for.
            let _ = to.try_send(key);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_however_they_are_cut() {
        let typed = b"a\x1b[A\x1bOB\x1b[5~\x1b[1;5C\xc3\xa4\r\x7f\t\x1b[Z\x1b[99~q";
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
            Key::Char('q'),
        ];
        assert_eq!(Keys::default().take(typed), keys);
        for cut in 0..typed.len() {
            // Behind an escape alone, it is the key.
            if cut > 0 && typed[cut - 1] == 0x1b {
                continue;
            }
            let mut parts = Keys::default();
            let mut heard = parts.take(&typed[..cut]);
            heard.extend(parts.take(&typed[cut..]));
            assert_eq!(heard, keys, "{cut}");
        }
        assert_eq!(Keys::default().take(b"\x1b"), [Key::Escape]);
        assert_eq!(Keys::default().take(b"\x1bx\xff\xff\xff\xff\x01y"), [Key::Char('y')]);
        // Nothing is kept for ever.
        let mut endless = Keys::default();
        endless.take(b"\x1b[");
        endless.take(&[b'1'; 100]);
        assert!(endless.waiting.len() < LONGEST);
    }
}
