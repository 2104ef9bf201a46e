//! The rows of one test, and which of them a later result replaces.

use crate::event::State;

/// The last result of a row.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(super) struct Row {
    pub(super) index: usize,
    /// A hash of the display name.
    pub(super) name: u32,
    /// That of the row that this one is [about](subject).
    pub(super) about: Option<u32>,
    pub(super) state: State,
    pub(super) quarantined: bool,
    /// It is a failure that counts, and nothing will change that.
    pub(super) is_settled: bool,
    /// In which of the test's processes it was last, counted from 0 on.
    pub(super) process: u32,
    /// Which attempt in its process that was.
    pub(super) attempt: u32,
    /// A later attempt in the same process has replaced it.
    pub(super) superseded: bool,
    /// An attempt before has failed.
    pub(super) has_failed: bool,
}

impl Row {
    /// Whether the next result may replace it, whatever that is: the test's last process has not done so, or its own calls it
    /// superseded.
    pub(super) fn is_pending(&self, process: u32) -> bool {
        self.superseded || self.process < process
    }

    pub(super) fn is_flaky(&self) -> bool {
        self.has_failed && self.state == State::Passed
    }
}

/// A test, as its last process has it.
#[derive(Debug, Default)]
pub(super) struct Test {
    /// The runner's attempt, from 1 on.
    pub(super) attempt: u32,
    /// The application's own, as its last process has it.
    pub(super) host_attempt: u32,
    /// How many processes there were before.
    pub(super) process: u32,
    pub(super) row: Option<Row>,
    /// Further ones. Most tests have one row, so that this needs no memory of its own.
    pub(super) more: Vec<Row>,
    /// No row before this one waits to be replaced.
    pub(super) first_pending: usize,
}

/// So many rows of a test are compared by their names.
const MOST_COMPARED: usize = 4096;

impl Test {
    pub(super) fn rows(&mut self) -> impl Iterator<Item = &mut Row> {
        self.row.iter_mut().chain(&mut self.more)
    }

    pub(super) fn get(&self, place: usize) -> Option<&Row> {
        if place == 0 { self.row.as_ref() } else { self.more.get(place - 1) }
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Row> {
        if place == 0 { self.row.as_mut() } else { self.more.get_mut(place - 1) }
    }

    fn window(&self, start: usize) -> impl Iterator<Item = (usize, &Row)> {
        (start..start + MOST_COMPARED).map_while(|place| Some((place, self.get(place)?)))
    }

    /// The place of the row that a new one replaces: one of its name, or else the first one that may go by its order. A row that is
    /// about another one never takes that one's place.
    ///
    /// Within a process, rows have attempts of their own: only a later attempt of the same name replaces one, and only one that is
    /// superseded can have another name then. `outdated`: it is of an earlier process than the last one.
    pub(super) fn replaced(&mut self, new: &Row, outdated: bool) -> Option<usize> {
        while self.get(self.first_pending).is_some_and(|row| !row.is_pending(self.process)) {
            self.first_pending += 1;
        }
        let start = if outdated { 0 } else { self.first_pending };
        let mut by_order = None;
        for (place, row) in self.window(start) {
            let is_of_another = outdated || row.process < self.process;
            let is_later = row.attempt < new.attempt;
            if row.name == new.name && (is_of_another || row.superseded || is_later) {
                return Some(place);
            }
            let may_go = is_of_another || row.superseded && is_later;
            if by_order.is_none() && may_go && new.about != Some(row.name) {
                by_order = Some(place);
            }
        }
        if !outdated && new.attempt > 1 {
            let mut before = self.window(0).take_while(|(place, _)| *place < start);
            if let Some((place, _)) =
                before.find(|(_, row)| row.name == new.name && row.attempt < new.attempt)
            {
                return Some(place);
            }
        }
        // Behind the window there may be one of its name: none is mended by guess.
        by_order.filter(|_| self.get(start + MOST_COMPARED).is_none())
    }
}

/// The name of the row that a further row of its test is about: xunit.v3 has `[Test Cleanup Failure (NAME)]`, which may come
/// before the result of the test itself.
pub(crate) fn subject(name: &str) -> Option<&str> {
    let (_, subject) = name.strip_prefix('[')?.strip_suffix(")]")?.split_once(" (")?;
    Some(subject)
}
