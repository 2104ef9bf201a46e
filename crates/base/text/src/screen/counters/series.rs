//! The series of a board with the history of their values.

use std::collections::{BTreeMap, HashMap, VecDeque};

use runtap_model::counters::{CounterBoard, CounterRow};

use super::super::paint::clean;
use crate::counters::{SeriesRow, heading, rows};

/// The maximum and the minimum length of a history.
const LONGEST_HISTORY: usize = 120;
const SHORTEST_HISTORY: usize = 16;
/// The number of values that all histories together have, if none is shorter than the minimum.
const MAX_HISTORY_VALUES: usize = 2_000_000;

/// All series, and the groups in which they are shown.
#[derive(Debug, Default)]
pub(super) struct SeriesTable {
    /// By the id in the board.
    series: HashMap<u64, Series>,
    /// The ids in the order of the board, in which the series of a group are adjacent.
    order: Vec<u64>,
    /// The providers, by the number of the group.
    pub(super) groups: Vec<Group>,
    by_heading: BTreeMap<(u32, String), usize>,
    update: u64,
}

/// The series of a provider.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) process: u32,
    pub(super) heading: String,
    /// The number of its series.
    pub(super) count: usize,
}

/// A series with its numbers.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) group: usize,
    pub(super) lines: Vec<Line>,
    readings: u64,
    /// The latest update that had the series.
    update: u64,
}

/// A number of a series.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) value: Option<f64>,
    pub(super) delta: Option<f64>,
    pub(super) rate: Option<f64>,
    /// The rates of what has one, the values of the others. NaN if missing.
    pub(super) history: VecDeque<f32>,
}

impl Line {
    fn new(row: SeriesRow) -> Self {
        let SeriesRow { value, delta, rate, name, unit } = row;
        let (name, unit) = (clean(&name), clean(&unit));
        Self { name, unit, value, delta, rate, history: VecDeque::new() }
    }

    fn record(&mut self, length: usize) {
        while self.history.len() >= length {
            self.history.pop_front();
        }
        let number = self.rate.or(self.value).unwrap_or(f64::NAN);
        #[expect(clippy::cast_possible_truncation, reason = "charts have eight levels")]
        self.history.push_back(number as f32);
    }
}

impl SeriesTable {
    /// Takes over the numbers of a board.
    pub(super) fn update(&mut self, board: &CounterBoard) {
        self.update += 1;
        let length =
            (MAX_HISTORY_VALUES / board.rows().len().max(1)).clamp(SHORTEST_HISTORY, LONGEST_HISTORY);
        self.order.clear();
        for row in board.rows() {
            self.order.push(row.id);
            let (update, group) = (self.update, self.series.get(&row.id).map(|series| series.group));
            let group = group.unwrap_or_else(|| self.group(row));
            let new = || Series { group, lines: Vec::new(), readings: 0, update };
            let series = self.series.entry(row.id).or_insert_with(new);
            series.update = update;
            if series.readings != row.readings {
                series.readings = row.readings;
                series.set(row, length);
            }
        }
        let update = self.update;
        self.series.retain(|_, series| series.update == update);
        self.groups.iter_mut().for_each(|group| group.count = 0);
        for id in &self.order {
            if let Some(series) = self.series.get(id)
                && let Some(group) = self.groups.get_mut(series.group)
            {
                group.count += 1;
            }
        }
    }

    fn group(&mut self, row: &CounterRow) -> usize {
        let heading = clean(&heading(row, false));
        let groups = &mut self.groups;
        *self.by_heading.entry((row.process, heading)).or_insert_with_key(|(process, heading)| {
            groups.push(Group { process: *process, heading: heading.clone(), count: 0 });
            groups.len() - 1
        })
    }

    /// Returns all series with their ids, in the order of the board.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, &Series)> {
        self.order.iter().filter_map(|id| Some((*id, self.series.get(id)?)))
    }

    pub(super) fn get(&self, id: u64) -> Option<&Series> {
        self.series.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether several processes have series.
    pub(super) fn has_several_processes(&self) -> bool {
        let mut shown = self.groups.iter().filter(|group| group.count > 0).map(|group| group.process);
        let first = shown.next();
        shown.any(|process| Some(process) != first)
    }
}

impl Series {
    fn set(&mut self, row: &CounterRow, length: usize) {
        let tags = [&row.counter.counter_tags, &row.counter.tags];
        let mut new: Vec<Line> = rows(row, "", &tags).into_iter().map(Line::new).collect();
        for line in &mut new {
            if let Some(known) = self.lines.iter_mut().find(|known| known.name == line.name) {
                line.history = std::mem::take(&mut known.history);
            }
        }
        // An interval without values has no quantiles.
        for known in &mut self.lines {
            if new.iter().all(|line| line.name != known.name) {
                let known = std::mem::take(known);
                new.push(Line { value: None, delta: None, rate: None, ..known });
            }
        }
        for line in &mut new {
            line.record(length);
        }
        self.lines = new;
    }
}
