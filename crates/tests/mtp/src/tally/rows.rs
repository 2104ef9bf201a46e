//! The rows of one test, and the matching of later results to rows.

use crate::event::TestOutcome;

/// The last result of a row.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(super) struct Row {
    pub(super) index: usize,
    /// A hash of the display name.
    pub(super) name: u32,
    /// The hash of the name of the row that this row is [about](subject).
    pub(super) about: Option<u32>,
    pub(super) state: TestOutcome,
    pub(super) quarantined: bool,
    /// Whether this is a failure that counts and will not change.
    pub(super) is_settled: bool,
    /// The last process of the test that reported the row, counted from 0.
    pub(super) process: u32,
    /// The attempt within that process.
    pub(super) attempt: u32,
    /// Whether a later attempt in the same process replaced the row.
    pub(super) superseded: bool,
    /// Whether an earlier attempt failed.
    pub(super) has_failed: bool,
}

impl Row {
    /// Returns whether any result may replace this row: the test's last process has not reported the row, or the row's
    /// process marked it as superseded.
    pub(super) fn is_pending(&self, process: u32) -> bool {
        self.superseded || self.process < process
    }

    pub(super) fn is_flaky(&self) -> bool {
        self.has_failed && self.state == TestOutcome::Passed
    }
}

/// The state of a test after its last process.
#[derive(Debug, Default)]
pub(super) struct Test {
    /// The runner's attempt, starting at 1.
    pub(super) attempt: u32,
    /// The application's attempt in the test's last process.
    pub(super) host_attempt: u32,
    /// The number of previous processes.
    pub(super) process: u32,
    pub(super) row: Option<Row>,
    /// Further rows. Most tests have one row, so that this allocates no memory.
    pub(super) more: Vec<Row>,
    /// No row before this index is pending.
    pub(super) first_pending: usize,
}

/// The maximum number of rows of a test whose names are compared.
const MAX_COMPARED: usize = 4096;

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
        (start..start + MAX_COMPARED).map_while(|place| Some((place, self.get(place)?)))
    }

    /// Returns the position of the row that a new row replaces: the row with the same name, or else the first row that
    /// may be matched by order. A row that is about another row never replaces that row.
    ///
    /// Within a process, rows count attempts separately: only a later attempt with the same name replaces a row, and
    /// only a superseded row can be replaced under another name. `outdated` is whether the new row belongs to an
    /// earlier process than the last one.
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
        // There may be a row with this name after the window: do not guess.
        by_order.filter(|_| self.get(start + MAX_COMPARED).is_none())
    }
}

/// Returns the name of the row that a further row is about: xunit.v3 reports `[Test Cleanup Failure (NAME)]`, possibly
/// before the result of the test itself.
pub(crate) fn subject(name: &str) -> Option<&str> {
    let (_, subject) = name.strip_prefix('[')?.strip_suffix(")]")?.split_once(" (")?;
    Some(subject)
}
