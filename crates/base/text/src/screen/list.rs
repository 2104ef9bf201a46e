//! The visible part of a list, and the selected row in it.

use std::ops::Range;

use super::input::Key;

/// The number of rows that the wheel of the mouse moves.
pub(crate) const WHEEL_STEP: usize = 3;

/// The selected row and the visible rows of a list.
#[derive(Debug, Default)]
pub(super) struct ListState {
    /// The index of the selected row.
    pub(super) cursor: usize,
    /// The number of rows.
    count: usize,
    /// The index of the first visible row; drawing keeps the cursor visible.
    top: usize,
    /// The number of visible rows.
    page: usize,
    /// The row of the screen of the first visible row.
    first_line: u16,
}

impl ListState {
    /// Sets the number of rows.
    pub(super) fn set_count(&mut self, count: usize) {
        self.count = count;
        self.cursor = self.cursor.min(count.saturating_sub(1));
    }

    /// Handles a key that selects another row. Returns whether the key does so.
    pub(super) fn key(&mut self, key: Key) -> bool {
        let page = self.page.max(1);
        let cursor = match key {
            Key::Up | Key::Char('k') => self.cursor.saturating_sub(1),
            Key::Down | Key::Char('j') => self.cursor + 1,
            Key::PageUp => self.cursor.saturating_sub(page),
            Key::PageDown => self.cursor + page,
            Key::WheelUp => self.cursor.saturating_sub(WHEEL_STEP),
            Key::WheelDown => self.cursor + WHEEL_STEP,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => self.count,
            Key::Click(row) => match row.checked_sub(self.first_line).map(usize::from) {
                Some(row) if row < self.page && self.top + row < self.count => self.top + row,
                _ => return true,
            },
            _ => return false,
        };
        self.cursor = cursor.min(self.count.saturating_sub(1));
        true
    }

    /// Returns the rows to draw in `page` lines of the screen from `first_line` on.
    pub(super) fn visible(&mut self, first_line: u16, page: u16) -> Range<usize> {
        (self.first_line, self.page) = (first_line, usize::from(page));
        let last_top = self.count.saturating_sub(self.page);
        self.top = self.top.min(self.cursor).max((self.cursor + 1).saturating_sub(self.page)).min(last_top);
        self.top..(self.top + self.page).min(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_row_is_visible() {
        let mut list = ListState::default();
        assert_eq!(list.visible(2, 10), 0..0);
        assert!(list.key(Key::Down) && list.key(Key::End));
        assert_eq!(list.cursor, 0);
        list.set_count(100);
        assert_eq!(list.visible(2, 10), 0..10);
        list.key(Key::End);
        assert_eq!((list.cursor, list.visible(2, 10)), (99, 90..100));
        list.key(Key::WheelUp);
        assert_eq!((list.cursor, list.visible(2, 10)), (96, 90..100));
        list.key(Key::PageUp);
        assert_eq!((list.cursor, list.visible(2, 10)), (86, 86..96));
        // The screen is larger, then the list shorter.
        assert_eq!(list.visible(2, 50), 50..100);
        list.set_count(3);
        assert_eq!((list.cursor, list.visible(2, 50)), (2, 0..3));
        list.key(Key::Click(3));
        assert_eq!(list.cursor, 1);
        for nothing in [0, 1, 5, 60] {
            assert!(list.key(Key::Click(nothing)));
            assert_eq!(list.cursor, 1);
        }
        assert!(!list.key(Key::Char('x')));
    }
}
