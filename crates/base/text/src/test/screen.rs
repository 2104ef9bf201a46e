//! Output of lines with the progress of the run below them, which is redrawn in place; without a terminal, a status line from
//! time to time.
//!
//! The cursor rests at the start of the progress. Text printed [beside](with_progress_erased) it overwrites the progress, which is then
//! drawn below.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::progress::Progress;

/// The redraw interval; elapsed times change even without events.
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);

/// The interval of status lines when the progress is not drawn, so that readers of a log see that the run continues.
const STATUS_INTERVAL: Duration = Duration::from_secs(30);

/// Erases from the start of this line to the end of the screen, where the terminal may have echoed `^C`. Done in two steps,
/// because tmux saves a screen that is erased at once to its history.
const ERASE: &str = "\r\x1b[K\x1b[B\x1b[J\x1b[A";

/// Serializes all output to the terminal.
static TERMINAL: Mutex<()> = Mutex::new(());
/// Whether progress is currently drawn on standard output.
static DRAWN: AtomicBool = AtomicBool::new(false);

/// Prints by other means than a [`Screen`], after erasing the progress.
pub fn with_progress_erased(print: impl FnOnce()) {
    let _terminal = lock(&TERMINAL);
    if DRAWN.load(Ordering::Relaxed) {
        let mut out = io::stdout();
        // The next drawing reports an error of the terminal.
        let _ = out.write_all(ERASE.as_bytes()).and_then(|()| out.flush());
    }
    print();
}

/// Writes lines; on a terminal, with the progress of the run below them.
#[derive(Debug)]
pub struct Screen<W> {
    /// Lines that are written at the next flush.
    pending: Vec<u8>,
    shared: Arc<Mutex<ScreenState<W>>>,
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct ScreenState<W> {
    out: W,
    progress: Option<Progress>,
    size: fn() -> Option<(usize, usize)>,
    is_drawn: bool,
}

impl<W: Write + Send + 'static> Screen<W> {
    /// Creates a screen that writes only lines to `out`.
    pub fn plain(out: W) -> Self {
        Self::new(out, None, || None)
    }

    /// Creates a screen that draws the progress below the lines. `size` returns the rows and columns of the terminal.
    pub fn with_progress(out: W, progress: Progress, size: fn() -> Option<(usize, usize)>) -> Self {
        // Writing lines reports an error of the terminal.
        Self::new(out, Some(progress), size).with_ticker(REDRAW_INTERVAL, |shared| drop(shared.draw(&[])))
    }

    /// Creates a screen that writes lines, and the progress as a line from time to time.
    pub fn with_status_lines(out: W, progress: Progress) -> Self {
        Self::new(out, Some(progress), || None)
            .with_ticker(STATUS_INTERVAL, |shared| drop(shared.write_status(Instant::now())))
    }

    fn with_ticker(mut self, every: Duration, tick: fn(&mut ScreenState<W>)) -> Self {
        let shared = Arc::clone(&self.shared);
        let (stop, stopped) = mpsc::channel();
        let tick_loop = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tick(&mut lock(&shared));
            }
        };
        // Without this thread, the progress is drawn only with new lines.
        let ticker = thread::Builder::new().name("test-progress".into()).spawn(tick_loop);
        self.ticker = ticker.ok().map(|thread| (stop, thread));
        self
    }

    fn new(out: W, progress: Option<Progress>, size: fn() -> Option<(usize, usize)>) -> Self {
        let shared = ScreenState { out, progress, size, is_drawn: false };
        Self { pending: Vec::new(), shared: Arc::new(Mutex::new(shared)), ticker: None }
    }

    /// Changes the progress, which is redrawn at the next tick or with the next lines.
    pub(super) fn progress(&self, change: impl FnOnce(&mut Progress)) {
        if let Some(progress) = &mut lock(&self.shared).progress {
            change(progress);
        }
    }

    /// Removes the progress; later lines are permanent.
    pub(super) fn end_progress(&mut self) -> io::Result<()> {
        if let Some((stop, thread)) = self.ticker.take() {
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
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.pending);
        lock(&self.shared).draw(&lines)
    }
}

impl<W> Drop for Screen<W> {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.ticker.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl<W: Write> ScreenState<W> {
    /// Writes the progress as a line.
    fn write_status(&mut self, now: Instant) -> io::Result<()> {
        match self.progress.as_ref().map(|progress| progress.status_line(now)) {
            Some(line) => self.draw(line.as_bytes()),
            None => Ok(()),
        }
    }

    /// Overwrites the progress with lines and draws it below them, in a single write to avoid flicker.
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
                // A line feed after the last column would leave an empty row.
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
    fn lines_overwrite_the_progress_and_the_end_erases_it() {
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
    fn a_plain_screen_writes_only_lines() {
        let pipe = Terminal::default();
        let mut screen = Screen::plain(pipe.clone());
        writeln!(screen, "one").unwrap();
        screen.flush().unwrap();
        screen.end_progress().unwrap();
        assert_eq!(pipe.text(), "one\n");
    }

    #[test]
    fn a_screen_with_status_lines_writes_them_until_the_end() {
        let pipe = Terminal::default();
        let mut screen = Screen::with_status_lines(pipe.clone(), Progress::new(1));
        writeln!(screen, "one").unwrap();
        screen.flush().unwrap();
        let now = Instant::now();
        lock(&screen.shared).write_status(now).unwrap();
        writeln!(screen, "two").unwrap();
        screen.flush().unwrap();
        screen.end_progress().unwrap();
        lock(&screen.shared).write_status(now).unwrap();
        let text = anstream::adapter::strip_str(&pipe.text()).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "one", "two"));
        assert!(lines[1].starts_with("running 0 of 1 application done, 0 passed"), "{text}");
    }
}
