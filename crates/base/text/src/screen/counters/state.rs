//! The state of the screen of counters: the selected row, the sorting, the filter, and the collapsed groups.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use runtap_model::counters::CounterBoard;
use runtap_model::order;

use super::super::input::Key;
use super::super::list::ListState;
use super::super::paint::clean;
use super::super::prompt::Prompt;
use super::series::{Line, SeriesTable};

/// The order of the series in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Sort {
    #[default]
    Name,
    /// The greatest value first.
    Value,
    /// The greatest rate first.
    Rate,
}

impl Sort {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Value => "value",
            Self::Rate => "rate",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Name => Self::Value,
            Self::Value => Self::Rate,
            Self::Rate => Self::Name,
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// The number of a group.
    Group(usize),
    /// The id of a series, and the number of its line.
    Line(u64, usize),
}

/// The counters of running programs on a screen.
#[derive(Debug, Default)]
pub struct CounterScreen {
    pub(super) table: SeriesTable,
    pub(super) items: Vec<Item>,
    pub(super) list: ListState,
    /// Its filter applies to the providers and names of series.
    pub(super) prompt: Prompt,
    pub(super) sort: Sort,
    pub(super) collapsed: BTreeSet<usize>,
    /// Whether new values are ignored.
    pub(super) is_paused: bool,
    /// Whether the changes since the last reading are shown.
    pub(super) deltas: bool,
    /// The names of processes.
    pub(super) names: BTreeMap<u32, String>,
}

impl CounterScreen {
    /// Creates a screen without series. `deltas` is whether it shows the changes since the last reading.
    pub fn new(deltas: bool) -> Self {
        Self { deltas, ..Self::default() }
    }

    /// Adds a process whose counters will be shown.
    pub fn start(&mut self, process: u32, name: &str) {
        self.names.insert(process, clean(name));
    }

    /// Shows the values of a board, unless the user has paused the screen.
    pub fn update(&mut self, board: &CounterBoard) {
        if self.is_paused {
            return;
        }
        self.table.update(board);
        self.arrange();
    }

    /// Handles a key. Returns whether the user wants to quit.
    pub(super) fn handle(&mut self, key: Key) -> bool {
        let filter = self.prompt.filter.clone();
        if !self.prompt.key(key, &mut self.list) {
            match key {
                Key::Char('q') => return true,
                Key::Char(' ') => self.is_paused = !self.is_paused,
                Key::Char('d') => self.deltas = !self.deltas,
                Key::Char('s') => {
                    self.sort = self.sort.next();
                    self.arrange();
                }
                Key::Char('c') => self.collapse_all(),
                Key::Enter | Key::Left | Key::Right => self.fold(key),
                Key::Escape => self.prompt.filter.clear(),
                _ => {}
            }
        }
        if self.prompt.filter != filter {
            self.arrange();
        }
        false
    }

    pub(super) fn selected(&self) -> Option<Item> {
        self.items.get(self.list.cursor).copied()
    }

    /// Collapses or expands the group of the selected row.
    fn fold(&mut self, key: Key) {
        let group = match self.selected() {
            Some(Item::Group(group)) => group,
            Some(Item::Line(id, _)) if key == Key::Left => {
                let Some(series) = self.table.get(id) else { return };
                series.group
            }
            _ => return,
        };
        let collapses = match key {
            Key::Left => true,
            Key::Right => false,
            _ => !self.collapsed.contains(&group),
        };
        if collapses {
            self.collapsed.insert(group);
        } else {
            self.collapsed.remove(&group);
        }
        self.arrange();
        let place = self.items.iter().position(|item| *item == Item::Group(group));
        self.list.cursor = place.unwrap_or(self.list.cursor);
    }

    /// Collapses all groups, or expands them if all are collapsed.
    fn collapse_all(&mut self) {
        let all: BTreeSet<usize> = (0..self.table.groups.len()).collect();
        self.collapsed = if self.collapsed == all { BTreeSet::new() } else { all };
        self.arrange();
    }

    /// Lists the rows again. The selected row stays selected.
    fn arrange(&mut self) {
        let selected = self.selected();
        let mut items = Vec::with_capacity(self.items.len());
        let mut of_group: Vec<(u64, &Line, Vec<usize>)> = Vec::new();
        let mut group = None;
        for (id, series) in self.table.all() {
            if group != Some(series.group) {
                self.add_group(group, &mut of_group, &mut items);
                group = Some(series.group);
            }
            let lines: Vec<usize> = (0..series.lines.len())
                .filter(|line| self.matches(series.group, &series.lines[*line]))
                .collect();
            if let Some(first) = series.lines.first().filter(|_| !lines.is_empty()) {
                of_group.push((id, first, lines));
            }
        }
        self.add_group(group, &mut of_group, &mut items);
        self.items = items;
        self.list.set_count(self.items.len());
        if let Some(place) = self.items.iter().position(|item| Some(*item) == selected) {
            self.list.cursor = place;
        }
    }

    fn matches(&self, group: usize, line: &Line) -> bool {
        let heading = self.table.groups.get(group).map_or("", |group| &group.heading);
        self.prompt.admits(&line.name) || self.prompt.admits(heading)
    }

    /// Moves the series of a group into the list, below the group.
    fn add_group(
        &self,
        group: Option<usize>,
        series: &mut Vec<(u64, &Line, Vec<usize>)>,
        items: &mut Vec<Item>,
    ) {
        let Some(group) = group.filter(|_| !series.is_empty()) else { return };
        items.push(Item::Group(group));
        let number = |line: &Line| if self.sort == Sort::Rate { line.rate } else { line.value };
        if self.sort != Sort::Name {
            order::sort_by(series, |(_, a, _), (_, b, _)| descending(number(a), number(b)));
        }
        for (id, _, lines) in series.drain(..) {
            if !self.collapsed.contains(&group) {
                items.extend(lines.into_iter().map(|line| Item::Line(id, line)));
            }
        }
    }
}

/// Compares numbers, the greatest first and missing ones last.
fn descending(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}
