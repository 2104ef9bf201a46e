//! The prompt at the foot of a screen: which keys are commands, the text of the filter, and the latest message.

use ratatui_core::style::Style;

use super::input::Key;
use super::list::ListState;
use super::paint::{BOLD, WARNING, clean};

/// What keys do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Commands,
    /// Characters change the filter.
    Filter,
    /// The help is shown until the next key.
    Help,
}

/// The state of the prompt.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    pub(super) mode: Mode,
    /// Only rows that contain this text are shown. In lower case; empty if all rows are shown.
    pub(super) filter: String,
    /// The latest message, which is shown until the next key. Empty if there is none.
    message: String,
}

impl Prompt {
    /// Handles a key that changes the mode or the filter, or selects another row. Returns `false` for all other commands.
    pub(super) fn key(&mut self, key: Key, list: &mut ListState) -> bool {
        self.message.clear();
        match (self.mode, key) {
            (Mode::Commands, Key::Char('?')) => self.mode = Mode::Help,
            (Mode::Commands, Key::Char('/')) => self.mode = Mode::Filter,
            (Mode::Commands, key) => return list.key(key),
            (Mode::Help, _) | (Mode::Filter, Key::Enter) => self.mode = Mode::Commands,
            (Mode::Filter, Key::Escape) => {
                self.mode = Mode::Commands;
                self.filter.clear();
            }
            (Mode::Filter, Key::Backspace) => drop(self.filter.pop()),
            (Mode::Filter, Key::Char(letter)) => self.filter.extend(letter.to_lowercase()),
            (Mode::Filter, key) => drop(list.key(key)),
        }
        true
    }

    /// Shows a message that may contain untrusted text.
    pub(super) fn show(&mut self, message: &str) {
        self.message = clean(message);
    }

    /// Returns whether the filter admits a row with this text.
    pub(super) fn admits(&self, text: &str) -> bool {
        self.filter.is_empty() || text.to_lowercase().contains(&self.filter)
    }

    /// Returns the filter or the message. `rows` is the noun for rows. `None` if the line is free for other texts.
    pub(super) fn line(&self, rows: &str) -> Option<(String, Style)> {
        if self.mode == Mode::Filter {
            Some((format!("/{}▏", clean(&self.filter)), BOLD))
        } else if !self.message.is_empty() {
            Some((self.message.clone(), WARNING))
        } else if !self.filter.is_empty() {
            Some((format!("Only {rows} with '{}'", clean(&self.filter)), BOLD))
        } else {
            None
        }
    }

    /// Returns the keys that have a function now. `None` if the screen's commands have.
    pub(super) fn keys(&self) -> Option<&'static [&'static str]> {
        match self.mode {
            Mode::Commands => None,
            Mode::Filter => Some(&["Enter keeps the filter", "Esc removes it"]),
            Mode::Help => Some(&["any key goes back"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_typed_kept_and_removed() {
        let (mut prompt, mut list) = (Prompt::default(), ListState::default());
        list.set_count(2);
        assert!(prompt.admits("Any") && prompt.line("rows").is_none() && prompt.keys().is_none());
        assert!(!prompt.key(Key::Char('a'), &mut list));
        for key in [Key::Char('/'), Key::Char('Ä'), Key::Char('\u{5d0}'), Key::Char('x'), Key::Backspace] {
            assert!(prompt.key(key, &mut list));
        }
        // Keys that are no characters still select rows.
        assert!(prompt.key(Key::Down, &mut list) && list.cursor == 1);
        assert_eq!(prompt.line("rows"), Some((r"/ä\u{5d0}▏".to_owned(), BOLD)));
        assert!(prompt.key(Key::Enter, &mut list) && prompt.mode == Mode::Commands);
        assert_eq!(prompt.line("rows"), Some((r"Only rows with 'ä\u{5d0}'".to_owned(), BOLD)));
        assert!(prompt.admits("Ä\u{5d0}") && !prompt.admits("Ä"));
        prompt.key(Key::Char('/'), &mut list);
        prompt.key(Key::Escape, &mut list);
        assert!(prompt.line("rows").is_none() && prompt.admits("Ä"));
    }

    #[test]
    fn a_message_and_the_help_are_shown_until_the_next_key() {
        let (mut prompt, mut list) = (Prompt::default(), ListState::default());
        prompt.show("Wrote \u{1b}[2J");
        assert_eq!(prompt.line("rows"), Some((r"Wrote \u{1b}[2J".to_owned(), WARNING)));
        assert!(prompt.key(Key::Char('?'), &mut list) && prompt.line("rows").is_none());
        assert!(prompt.keys().is_some() && prompt.key(Key::Char('q'), &mut list));
        assert_eq!((prompt.mode, prompt.keys()), (Mode::Commands, None));
    }
}
