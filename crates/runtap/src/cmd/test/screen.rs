//! A terminal with lines that stay, and below them the state of the run, drawn anew again and again; elsewhere, a line with
//! that state from time to time.
//!
//! The cursor rests at the beginning of the state: what is [said beside](beside) it meanwhile takes its place, and the next
//! drawing goes below that.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::progress::Progress;

/// How often the state is drawn: times in it change, whatever happens.
const TICK: Duration = Duration::from_millis(200);

/// How often the state is a line of its own, where it is not drawn: who reads a log while it grows is to see that it does.
const BEAT: Duration = Duration::from_secs(30);

/// From the beginning of this line to the end of the screen, nothing: the terminal itself may have written `^C` there. In
/// two steps, this line and those below it: whoever erases a whole screen at once has tmux keep it in its history.
const ERASE: &str = "\r\x1b[K\x1b[B\x1b[J\x1b[A";

/// Whoever draws or says something has the terminal for itself meanwhile. There is one terminal.
static TERMINAL: Mutex<()> = Mutex::new(());
/// Whether a state is to be seen on standard output.
static DRAWN: AtomicBool = AtomicBool::new(false);

/// Says something by another way than a [`Screen`], in the place of the state that may be drawn.
pub(super) fn beside(say: impl FnOnce()) {
    let _terminal = lock(&TERMINAL);
    if DRAWN.load(Ordering::Relaxed) {
        let mut out = io::stdout();
        // Who draws hears of what is wrong with the terminal.
        let _ = out.write_all(ERASE.as_bytes()).and_then(|()| out.flush());
    }
    say();
}

/// Writes lines; on a terminal, with the state of the run below them.
pub(super) struct Screen<W> {
    /// Lines that wait to be written together.
    waiting: Vec<u8>,
    shared: Arc<Mutex<Shared<W>>>,
    ticking: Option<(Sender<()>, JoinHandle<()>)>,
}

struct Shared<W> {
    out: W,
    progress: Option<Progress>,
    size: fn() -> Option<(usize, usize)>,
    is_drawn: bool,
}

impl<W: Write + Send + 'static> Screen<W> {
    /// Writes lines to `out` and nothing else.
    pub(super) fn plain(out: W) -> Self {
        Self::new(out, None, || None)
    }

    /// Shows the progress below them as well, on a terminal of this size in rows and columns.
    pub(super) fn with_progress(out: W, progress: Progress, size: fn() -> Option<(usize, usize)>) -> Self {
        // Who writes lines hears of what is wrong with the terminal.
        Self::new(out, Some(progress), size).ticking(TICK, |shared| drop(shared.draw(&[])))
    }

    /// Writes lines, and from time to time one with the progress.
    pub(super) fn with_beat(out: W, progress: Progress) -> Self {
        Self::new(out, Some(progress), || None).ticking(BEAT, |shared| drop(shared.beat(Instant::now())))
    }

    fn ticking(mut self, every: Duration, tick: fn(&mut Shared<W>)) -> Self {
        let shared = Arc::clone(&self.shared);
        let (stop, stopped) = mpsc::channel();
        let ticking = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tick(&mut lock(&shared));
            }
        };
        // Without this thread the state is drawn when something is written.
        let ticking = thread::Builder::new().name("test-progress".into()).spawn(ticking);
        self.ticking = ticking.ok().map(|thread| (stop, thread));
        self
    }

    fn new(out: W, progress: Option<Progress>, size: fn() -> Option<(usize, usize)>) -> Self {
        let shared = Shared { out, progress, size, is_drawn: false };
        Self { waiting: Vec::new(), shared: Arc::new(Mutex::new(shared)), ticking: None }
    }

    /// Changes the state; it is drawn at the next tick or with the next lines.
    pub(super) fn progress(&self, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = &mut lock(&self.shared).progress {
            change(progress);
        }
    }

    /// There is no state any more: what follows stays.
    pub(super) fn end_progress(&mut self) -> io::Result<()> {
        if let Some((stop, thread)) = self.ticking.take() {
            drop(stop);
            let _ = thread.join();
        }
        let mut shared = lock(&self.shared);
        shared.progress = None;
        shared.draw(&[])
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.waiting);
        lock(&self.shared).draw(&lines)
    }
}

impl<W> Drop for Screen<W> {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticking.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl<W: Write> Shared<W> {
    /// The state as one line among the others.
    fn beat(&mut self, now: Instant) -> io::Result<()> {
        match self.progress.as_ref().map(|progress| progress.beat(now)) {
            Some(line) => self.draw(line.as_bytes()),
            None => Ok(()),
        }
    }

    /// Lines in the place of the state, and the state below them; in one piece, so that nothing flickers.
    fn draw(&mut self, lines: &[u8]) -> io::Result<()> {
        let _terminal = lock(&TERMINAL);
        let mut all = Vec::new();
        if self.is_drawn {
            all.extend(ERASE.as_bytes());
        }
        all.extend(lines);
        self.is_drawn = false;
        if let (Some(progress), Some((rows, columns))) = (&self.progress, (self.size)()) {
            let state = progress.lines(Instant::now(), rows, columns);
            for line in &state {
                // A line feed at the last column would leave an empty row.
                all.extend(line.as_bytes());
                all.extend(b"\r\n");
            }
            if !state.is_empty() {
                all.extend(format!("\x1b[{}A", state.len()).as_bytes());
                self.is_drawn = true;
            }
        }
        DRAWN.store(self.is_drawn, Ordering::Relaxed);
        self.out.write_all(&all)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<u8>>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Terminal {
        fn text(&self) -> String {
            String::from_utf8(lock(&self.0).clone()).unwrap()
        }
    }

    #[test]
    fn lines_take_the_place_of_the_state_and_the_end_leaves_none() {
        let terminal = Terminal::default();
        let mut screen = Screen::new(terminal.clone(), Some(Progress::new(1)), || Some((10, 40)));
        writeln!(screen, "one").unwrap();
        screen.flush().unwrap();
        let first = terminal.text();
        assert!(first.starts_with("one\n") && first.ends_with("\r\n\x1b[1A"), "{first:?}");
        writeln!(screen, "two").unwrap();
        screen.flush().unwrap();
        let second = terminal.text().split_off(first.len());
        assert!(second.starts_with(&format!("{ERASE}two\n")), "{second:?}");
        let so_far = terminal.text().len();
        screen.end_progress().unwrap();
        assert_eq!(terminal.text().split_off(so_far), ERASE);
        writeln!(screen, "three").unwrap();
        screen.flush().unwrap();
        assert!(terminal.text().ends_with(&format!("{ERASE}three\n")));
    }

    #[test]
    fn a_pipe_gets_lines_only() {
        let pipe = Terminal::default();
        let mut screen = Screen::plain(pipe.clone());
        writeln!(screen, "one").unwrap();
        screen.flush().unwrap();
        screen.end_progress().unwrap();
        assert_eq!(pipe.text(), "one\n");
    }

    #[test]
    fn a_pipe_gets_the_state_as_lines_until_the_end() {
        let pipe = Terminal::default();
        let mut screen = Screen::with_beat(pipe.clone(), Progress::new(1));
        writeln!(screen, "one").unwrap();
        screen.flush().unwrap();
        let now = Instant::now();
        lock(&screen.shared).beat(now).unwrap();
        writeln!(screen, "two").unwrap();
        screen.flush().unwrap();
        screen.end_progress().unwrap();
        lock(&screen.shared).beat(now).unwrap();
        let text = anstream::adapter::strip_str(&pipe.text()).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "one", "two"));
        assert!(lines[1].starts_with("running 0 of 1 application done, 0 passed"), "{text}");
    }
}
