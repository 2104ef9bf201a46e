//! A screen that is drawn while its data changes.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;

use super::input::{Key, KeyReader, listen};
use super::terminal::{Screen, ScreenBackend};
use crate::held;

/// The minimum time between two drawings, apart from those that keys cause.
const DRAW_INTERVAL: Duration = Duration::from_millis(95);

/// The screen that has the terminal.
static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

/// Dropped in this order: nothing is drawn after the terminal is restored.
#[derive(Debug)]
struct Current {
    _reader: KeyReader,
    _screen: Screen,
}

/// The content of a screen, independent of the terminal.
pub trait View: Send {
    /// Draws into the entire area.
    #[doc(hidden)]
    fn draw(&mut self, area: Rect, buffer: &mut Buffer);
    /// Handles a key. Returns whether the user wants to quit.
    #[doc(hidden)]
    fn key(&mut self, key: Key) -> bool;
    /// Shows a message that was printed meanwhile.
    #[doc(hidden)]
    fn message(&mut self, message: String);
}

/// A screen on the terminal. [`close`] restores the terminal.
pub struct ShownScreen<V> {
    shared: Arc<Mutex<Shared<V>>>,
}

struct Shared<V: ?Sized> {
    /// Whether the view has changed since it was drawn.
    has_changed: bool,
    view: V,
}

impl<V> fmt::Debug for ShownScreen<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownScreen")
    }
}

impl<V: View + 'static> ShownScreen<V> {
    /// Shows a view. Calls `quit` when the user wants to quit, or if the terminal can't be drawn on; the screen stays until
    /// [`close`].
    ///
    /// # Errors
    /// Fails if the terminal can't be configured.
    pub fn show(view: V, colors: bool, quit: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let screen = Screen::take()?;
        let shared = Arc::new(Mutex::new(Shared { has_changed: true, view }));
        let drawn: Arc<Mutex<Shared<dyn View>>> = shared.clone();
        let mut drawer = Drawer {
            terminal: Terminal::new(ScreenBackend::new(colors))?,
            drawn,
            last: None,
            has_key: false,
            messages: 0,
            quit: Some(Box::new(quit)),
        };
        let reader = listen(move |key| drawer.input(key))?;
        *lock(&CURRENT) = Some(Current { _reader: reader, _screen: screen });
        Ok(Self { shared })
    }

    /// Changes the view, which is then drawn again.
    pub fn update(&self, change: impl FnOnce(&mut V)) {
        let mut shared = lock(&self.shared);
        change(&mut shared.view);
        shared.has_changed = true;
    }
}

/// Restores the terminal if a screen is shown, and prints the messages that were held back meanwhile.
pub fn close() {
    let current = lock(&CURRENT).take();
    drop(current);
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Draws the view, on the thread that reads keys.
struct Drawer {
    terminal: Terminal<ScreenBackend>,
    drawn: Arc<Mutex<Shared<dyn View>>>,
    /// The time of the latest drawing.
    last: Option<Instant>,
    /// Whether keys were pressed since then.
    has_key: bool,
    /// The number of messages that were passed to the view.
    messages: usize,
    /// Called once: a second signal would abandon the session.
    quit: Option<Box<dyn FnOnce() + Send>>,
}

impl Drawer {
    fn input(&mut self, key: Option<Key>) {
        if let Some(key) = key {
            self.has_key = true;
            if lock(&self.drawn).view.key(key) {
                self.quit();
            }
            return;
        }
        if !self.has_key && self.last.is_some_and(|last| last.elapsed() < DRAW_INTERVAL) {
            return;
        }
        let mut shared = lock(&self.drawn);
        let (count, message) = held::last();
        if count != std::mem::replace(&mut self.messages, count)
            && let Some(message) = message
        {
            shared.view.message(message);
            shared.has_changed = true;
        }
        let has_changed = std::mem::take(&mut shared.has_changed);
        let is_resized =
            self.terminal.size().is_ok_and(|size| size != self.terminal.get_frame().area().as_size());
        if !has_changed && !self.has_key && !is_resized {
            return;
        }
        let drawn = self.terminal.draw(|frame| shared.view.draw(frame.area(), frame.buffer_mut()));
        (self.has_key, self.last) = (false, Some(Instant::now()));
        let is_drawn = drawn.is_ok();
        drop(shared);
        if !is_drawn {
            self.quit();
        }
    }

    fn quit(&mut self) {
        if let Some(quit) = self.quit.take() {
            quit();
        }
    }
}
