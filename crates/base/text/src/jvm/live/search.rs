//! Search in the live view.

use super::super::agents::agent_title;
use super::items::{self, Fold, TabRow};
use super::state::{Tab, Typing, ViewState};
use crate::screen::Key;

impl ViewState {
    pub(super) fn search_key(&mut self, mut text: String, key: Key) {
        match key {
            Key::Escape => return,
            Key::Enter => {
                self.found = text;
                return self.find(false);
            }
            Key::Backspace => {
                text.pop();
            }
            Key::Char(letter) => text.push(letter),
            _ => {}
        }
        self.typing = Typing::Search(text);
    }

    /// Moves to the next row that contains the search text.
    pub(super) fn find(&mut self, back: bool) {
        if self.found.is_empty() {
            return;
        }
        let tree = self.snapshot.tree.clone().filter(|_| self.tab == Tab::Tree);
        let found = if let Some(tree) = tree {
            let from = self.selected().map(|item| item.index);
            let path = items::find_in_tree(&tree, from, &self.found, back);
            path.map(|path| self.open_path(&path))
        } else {
            let from = Some(self.cursor).filter(|_| !self.items.is_empty());
            items::around(self.items.len(), from, back).find(|index| self.has(*index))
        };
        match found {
            Some(index) => self.cursor = index,
            None => self.message = format!("'{}' is nowhere here", self.found),
        }
    }

    /// Expands the rows on a path, and returns the index of the last one.
    fn open_path(&mut self, path: &[u64]) -> usize {
        for key in path {
            let closed = |item: &&TabRow| item.key == *key && item.fold == Fold::Closed;
            if Some(key) != path.last() && self.items.iter().find(closed).is_some() {
                if !self.toggled.remove(key) {
                    self.toggled.insert(*key);
                }
                self.list(None);
            }
        }
        let last = path.last();
        self.items.iter().position(|item| Some(&item.key) == last).unwrap_or(self.cursor)
    }

    /// Returns whether a row outside of the call tree contains the search text.
    fn has(&self, index: usize) -> bool {
        let Some(index) = self.items.get(index).map(|item| item.index) else { return false };
        let has = |text: &str| items::has(text, &self.found);
        if self.tab == Tab::Agents {
            let line = index.checked_sub(self.snapshot.agents.len());
            return match line {
                Some(line) => self.log.iter().rev().nth(line).is_some_and(|line| has(line.text())),
                None => self
                    .snapshot
                    .agents
                    .get(index)
                    .is_some_and(|agent| has(&agent_title(agent.status.id, &agent.facts))),
            };
        }
        let Some(report) = &self.snapshot.report else { return false };
        match self.tab {
            Tab::Methods => report.methods.get(index).is_some_and(|method| has(&method.signature)),
            Tab::Exceptions => report
                .exceptions
                .get(index)
                .is_some_and(|place| has(&place.exception) || has(&place.signature)),
            Tab::Segments => report.segments.get(index).is_some_and(|segment| {
                has(&segment.segment.key.to_string()) || has(&segment.segment.value.to_string())
            }),
            Tab::Slow => {
                report.slow_calls.get(index).is_some_and(|call| call.path.iter().any(|name| has(name)))
            }
            Tab::Tree | Tab::Agents => false,
        }
    }
}
