//! What tests of screens share: drawing without a terminal, and pressing keys.

use std::fmt::Write as _;

use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Cell;
use ratatui_core::terminal::Terminal;

use super::input::Key;
use super::shown::View;

/// Draws a view on a screen of this size.
pub(super) fn drawn(view: &mut dyn View, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame.area(), frame.buffer_mut())).unwrap();
    terminal
}

/// Returns the text of the screen.
pub(super) fn text(view: &mut dyn View, width: u16, height: u16) -> String {
    let terminal = drawn(view, width, height);
    let lines = terminal.backend().buffer().content.chunks(usize::from(width));
    lines.fold(String::new(), |mut text, line| {
        let line: String = line.iter().map(Cell::symbol).collect();
        let _ = writeln!(text, "{}", line.trim_end());
        text
    })
}

/// Presses keys that do not quit: `↑` and the like, `⏎`, `⎋`, `⌫`, `⇥`; others are characters.
pub(super) fn press(view: &mut dyn View, keys: &str) {
    for key in keys.chars() {
        let key = match key {
            '↓' => Key::Down,
            '↑' => Key::Up,
            '←' => Key::Left,
            '→' => Key::Right,
            '⏎' => Key::Enter,
            '⎋' => Key::Escape,
            '⌫' => Key::Backspace,
            '⇥' => Key::Tab,
            key => Key::Char(key),
        };
        assert!(!view.key(key), "{key:?} quits");
    }
}
