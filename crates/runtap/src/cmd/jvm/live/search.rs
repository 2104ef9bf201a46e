//! What is looked for in the live view, and where it is.

use super::input::Key;
use super::items::{self, Fold, Item};
use super::state::{State, Tab, Typing};

impl State {
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

    /// Goes to the next row with the text that is looked for.
    pub(super) fn find(&mut self, back: bool) {
        if self.found.is_empty() {
            return;
        }
        let tree = self.snapshot.tree.clone().filter(|_| self.tab == Tab::Tree);
        let found = if let Some(tree) = tree {
            let from = self.selected().map(|item| item.index);
            let way = items::find_in_tree(&tree, from, &self.found, back);
            way.map(|way| self.open_way(&way))
        } else {
            let from = Some(self.cursor).filter(|_| !self.items.is_empty());
            items::around(self.items.len(), from, back).find(|place| self.has(*place))
        };
        match found {
            Some(place) => self.cursor = place,
            None => self.message = format!("'{}' is nowhere here", self.found),
        }
    }

    /// Opens the rows on a way, and gives the place of the last one.
    fn open_way(&mut self, way: &[u64]) -> usize {
        for key in way {
            let closed = |item: &&Item| item.key == *key && item.fold == Fold::Closed;
            if Some(key) != way.last() && self.items.iter().find(closed).is_some() {
                if !self.toggled.remove(key) {
                    self.toggled.insert(*key);
                }
                self.list(None);
            }
        }
        let last = way.last();
        self.items.iter().position(|item| Some(&item.key) == last).unwrap_or(self.cursor)
    }

    /// Whether a row that is no call has the text that is looked for.
    fn has(&self, place: usize) -> bool {
        let Some(index) = self.items.get(place).map(|item| item.index) else { return false };
        let has = |text: &str| items::has(text, &self.found);
        if self.tab == Tab::Agents {
            let line = index.checked_sub(self.snapshot.agents.len());
            return match line {
                Some(line) => self.log.iter().rev().nth(line).is_some_and(|line| has(&line.text)),
                None => self
                    .snapshot
                    .agents
                    .get(index)
                    .is_some_and(|agent| has(&agent.facts.title(agent.state.id))),
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
