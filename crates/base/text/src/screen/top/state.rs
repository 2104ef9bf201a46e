//! The state of the screen: the tab, the selected row, the sorting, the filter, and the selected thread and method.

use std::collections::{HashMap, VecDeque};
use std::fmt;

use runtap_model::{Trace, TreeDirection, View, call_tree};

use super::super::input::Key;
use super::super::list::ListState;
use super::super::paint::clean;
use super::super::prompt::Prompt;
use crate::TopData;
use crate::top::{Order, methods, threads};

/// The length of the history of a method.
const HISTORY: usize = 60;
/// The maximum number of methods with a history.
const MAX_HISTORIES: usize = 2_000;

/// A tab of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tab {
    #[default]
    Methods,
    Threads,
    Tree,
}

impl Tab {
    pub(super) const ALL: [Self; 3] = [Self::Methods, Self::Threads, Self::Tree];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Methods => "1 Methods",
            Self::Threads => "2 Threads",
            Self::Tree => "3 Calls",
        }
    }
}

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// What selects the row again after an update: the method with its module, or the thread.
    pub(super) key: String,
    /// The text, without characters that act on the terminal.
    pub(super) text: String,
    /// The method without its module. Equal to `text` in other tabs.
    pub(super) short: String,
    pub(super) depth: usize,
    /// Methods and calls: the weight of the method itself. Threads: the weight in which it ran.
    pub(super) own: u64,
    pub(super) total: u64,
    /// The weight of which `own` and `total` are parts.
    pub(super) whole: u64,
}

/// Writes a profile with the samples of a view to a file. Returns a message about it.
type Save = dyn Fn(&Trace, View) -> String + Send;

/// The hottest methods and threads of a running program on a screen.
pub struct TopScreen {
    pub(super) data: Option<TopData>,
    pub(super) tab: Tab,
    pub(super) rows: Vec<Row>,
    pub(super) list: ListState,
    pub(super) prompt: Prompt,
    pub(super) view: View,
    pub(super) order: Order,
    /// Whether new samples are ignored.
    pub(super) is_paused: bool,
    /// The only thread whose samples count.
    pub(super) thread: Option<u64>,
    /// The method whose calls are shown, with its module.
    pub(super) method: Option<String>,
    pub(super) direction: TreeDirection,
    /// The shares of methods in their own time, in percent.
    pub(super) history: HashMap<String, VecDeque<f32>>,
    save: Box<Save>,
}

impl fmt::Debug for TopScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TopScreen").field("tab", &self.tab).finish_non_exhaustive()
    }
}

impl TopScreen {
    /// Creates a screen without samples. `save` writes a profile with the samples of a view to a file, and returns a message.
    pub fn new(view: View, inclusive: bool, save: impl Fn(&Trace, View) -> String + Send + 'static) -> Self {
        Self {
            data: None,
            tab: Tab::Methods,
            rows: Vec::new(),
            list: ListState::default(),
            prompt: Prompt::default(),
            view,
            order: if inclusive { Order::Total } else { Order::Own },
            is_paused: false,
            thread: None,
            method: None,
            direction: TreeDirection::Callees,
            history: HashMap::new(),
            save: Box::new(save),
        }
    }

    /// Shows samples, unless the user has paused the screen.
    pub fn update(&mut self, data: TopData) {
        if self.is_paused {
            return;
        }
        self.data = Some(data);
        self.record_history();
        self.arrange();
    }

    fn record_history(&mut self) {
        let Some(data) = &self.data else { return };
        let (rows, sum) = methods(&data.trace, self.view, None, Order::Own);
        let mut old = std::mem::take(&mut self.history);
        for row in rows.into_iter().take(MAX_HISTORIES) {
            let mut history = old.remove(&row.label).unwrap_or_default();
            if history.len() >= HISTORY {
                history.pop_front();
            }
            #[expect(clippy::cast_possible_truncation, reason = "charts have eight levels")]
            history.push_back(crate::top::percent(row.own, sum).unwrap_or(0.0) as f32);
            self.history.insert(row.label, history);
        }
    }

    /// Handles a key. Returns whether the user wants to quit.
    pub(super) fn handle(&mut self, key: Key) -> bool {
        let filter = self.prompt.filter.clone();
        if self.prompt.key(key, &mut self.list) {
            // Moving the cursor changes no row.
            if self.prompt.filter != filter {
                self.arrange();
            }
            return false;
        }
        match key {
            Key::Char('q') => return true,
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('s') => self.order = next_order(self.order),
            Key::Char('v') => {
                self.view = if self.view == View::Cpu { View::ThreadTime } else { View::Cpu };
                // The shares of another view.
                self.history.clear();
            }
            Key::Char('r') => self.direction = reversed(self.direction),
            Key::Char('w') => self.save(),
            Key::Char(digit @ '1'..='3') => self.go_to(Tab::ALL[digit as usize - '1' as usize]),
            Key::Tab => self.go_to(neighbor(self.tab, 1)),
            Key::BackTab => self.go_to(neighbor(self.tab, Tab::ALL.len() - 1)),
            Key::Enter | Key::Right => self.open(),
            Key::Left if self.tab == Tab::Tree => self.go_to(Tab::Methods),
            Key::Escape => {
                self.prompt.filter.clear();
                self.thread = None;
            }
            _ => {}
        }
        self.arrange();
        false
    }

    fn save(&mut self) {
        if let Some(data) = &self.data {
            self.prompt.show(&(self.save)(&data.trace, self.view));
        }
    }

    fn go_to(&mut self, tab: Tab) {
        if tab == Tab::Tree && self.method.is_none() {
            self.method = self.selected().map(|row| row.key.clone()).filter(|_| self.tab == Tab::Methods);
        }
        if tab != self.tab {
            (self.tab, self.rows) = (tab, Vec::new());
            self.prompt.filter.clear();
            self.list = ListState::default();
        }
    }

    /// Opens the calls of the selected method, or the methods of the selected thread.
    fn open(&mut self) {
        let Some(row) = self.selected().cloned() else { return };
        match self.tab {
            Tab::Methods | Tab::Tree => {
                self.method = Some(row.key);
                self.rows.clear();
                self.go_to(Tab::Tree);
                self.list = ListState::default();
            }
            Tab::Threads => {
                self.thread = row.key.parse().ok();
                self.go_to(Tab::Methods);
            }
        }
    }

    pub(super) fn selected(&self) -> Option<&Row> {
        self.rows.get(self.list.cursor)
    }

    /// Computes the rows again. The selected row stays selected, unless it is the first one.
    fn arrange(&mut self) {
        let Some(data) = &self.data else { return };
        let selected = self.selected().map(|row| row.key.clone()).filter(|_| self.list.cursor > 0);
        let mut rows = match self.tab {
            Tab::Methods => self.method_rows(data),
            Tab::Threads => self.thread_rows(data),
            Tab::Tree => self.tree_rows(data),
        };
        rows.retain(|row| self.prompt.admits(&row.text));
        self.rows = rows;
        self.list.set_count(self.rows.len());
        if self.tab != Tab::Tree
            && let Some(selected) = selected
            && let Some(place) = self.rows.iter().position(|row| row.key == selected)
        {
            self.list.cursor = place;
        }
    }

    fn method_rows(&self, data: &TopData) -> Vec<Row> {
        let (rows, whole) = methods(&data.trace, self.view, self.handle_of_thread(data), self.order);
        rows.into_iter()
            .map(|row| Row {
                text: clean(&row.label),
                short: clean(&row.name),
                key: row.label,
                depth: 0,
                own: row.own,
                total: row.total,
                whole,
            })
            .collect()
    }

    fn thread_rows(&self, data: &TopData) -> Vec<Row> {
        let rows = threads(&data.trace, self.view).into_iter().map(|row| {
            let name = row.name.map_or_else(String::new, |name| format!("  {name}"));
            let text = clean(&format!("{}{name}", row.tid));
            Row {
                key: row.tid.to_string(),
                short: text.clone(),
                text,
                depth: 0,
                own: row.running,
                total: row.all,
                whole: row.all,
            }
        });
        rows.collect()
    }

    fn tree_rows(&self, data: &TopData) -> Vec<Row> {
        let Some(method) = &self.method else { return Vec::new() };
        let (trace, view, thread) = (&data.trace, self.view, self.handle_of_thread(data));
        let root: Vec<bool> = trace.all_frames().map(|(_, frame)| frame.to_string() == *method).collect();
        let nodes =
            call_tree(trace, view, thread, self.direction, |frame| root.get(frame.index()) == Some(&true));
        let whole = nodes.first().map_or(0, |node| node.total);
        nodes
            .into_iter()
            .map(|node| {
                let frame = trace.frame(node.frame);
                let key = frame.to_string();
                let (text, short) = (clean(&key), clean(frame.name));
                Row { key, text, short, depth: node.depth, own: node.own, total: node.total, whole }
            })
            .collect()
    }

    fn handle_of_thread(&self, data: &TopData) -> Option<runtap_model::ThreadHandle> {
        let tid = self.thread?;
        data.trace.threads().find(|(_, thread)| thread.tid() == tid).map(|(handle, _)| handle)
    }
}

fn next_order(order: Order) -> Order {
    match order {
        Order::Own => Order::Total,
        Order::Total => Order::Name,
        Order::Name => Order::Own,
    }
}

fn reversed(direction: TreeDirection) -> TreeDirection {
    match direction {
        TreeDirection::Callees => TreeDirection::Callers,
        TreeDirection::Callers => TreeDirection::Callees,
    }
}

fn neighbor(tab: Tab, distance: usize) -> Tab {
    let place = Tab::ALL.iter().position(|other| *other == tab).unwrap_or(0);
    Tab::ALL[(place + distance) % Tab::ALL.len()]
}
