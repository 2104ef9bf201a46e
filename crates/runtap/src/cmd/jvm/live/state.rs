//! What the live view is at: which tab, which row, what is open, what is being typed.
//!
//! Owns: [`State`]: keys change it, and snapshots. Refuses to know a terminal, and to do anything: what is to be done is an
//! [`Action`].

use std::collections::{HashSet, VecDeque};

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::{Command, Mode};

use super::super::hq::watch::{Line, Weight};
use super::gather::{Glance, Snapshot, Wants};
use super::input::Key;
use super::items::{self, Baseline, Fold, Item, Sort};

/// Lines of the log that are kept.
const LOG: usize = 1000;

/// What is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tab {
    #[default]
    Tree,
    Methods,
    Exceptions,
    Segments,
    Slow,
    Agents,
}

impl Tab {
    pub(super) const ALL: [Self; 6] =
        [Self::Tree, Self::Methods, Self::Exceptions, Self::Segments, Self::Slow, Self::Agents];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Tree => "Calls",
            Self::Methods => "Methods",
            Self::Exceptions => "Exceptions",
            Self::Segments => "Segments",
            Self::Slow => "Slow calls",
            Self::Agents => "Agents",
        }
    }

    fn place(self) -> usize {
        Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }
}

/// What keys mean.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Typing {
    #[default]
    Keys,
    /// Letters are what is looked for.
    Search(String),
    Help,
}

/// What an agent is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Start,
    Stop,
    /// Or let it go on.
    Pause,
    /// Or record again.
    Suspend,
}

impl Order {
    /// The command for it, in the mode that the agent is in when it is told.
    pub(super) fn command(self, mode: Mode) -> Command {
        match (self, mode) {
            (Self::Start, _) => Command::Start,
            (Self::Stop, _) => Command::Stop,
            (Self::Pause, Mode::Paused) => Command::Unpause,
            (Self::Pause, _) => Command::Pause,
            (Self::Suspend, Mode::Suspended) => Command::Unsuspend,
            (Self::Suspend, _) => Command::Suspend,
        }
    }
}

/// Something to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Send(AgentId, Order),
    /// Stop the agents and end with the report.
    Quit,
}

/// What the view is at.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) tab: Tab,
    pub(super) sort: Sort,
    pub(super) typing: Typing,
    pub(super) snapshot: Snapshot,
    pub(super) items: Vec<Item>,
    pub(super) cursor: usize,
    /// The first row that is seen; the view keeps the cursor in sight.
    pub(super) top: usize,
    /// How many rows are seen.
    pub(super) page: usize,
    pub(super) log: VecDeque<Line>,
    pub(super) message: String,
    /// Numbers are those since then.
    pub(super) since: Option<Baseline>,
    /// As soon as there is a tree, too.
    resets: bool,
    wants: Wants,
    /// Rows of the tree that are not open or closed as they were.
    pub(super) toggled: HashSet<u64>,
    /// All agents have ended.
    pub(super) over: bool,
    /// What is looked for.
    pub(super) found: String,
    /// Stop was pressed once.
    stopping: Option<AgentId>,
    /// The row that was left in each tab.
    kept: [Option<u64>; Tab::ALL.len()],
}

impl State {
    /// What has to be in the next snapshot.
    pub(super) fn wants(&self) -> Wants {
        Wants { tree: self.tab == Tab::Tree || self.resets, ..self.wants }
    }

    /// The agent that is shown.
    pub(super) fn agent(&self) -> Option<&Glance> {
        let id = self.snapshot.wants.agent?;
        self.snapshot.agents.iter().find(|agent| agent.state.id == id)
    }

    /// The thread whose tree is shown, where it is one: its place in the report.
    pub(super) fn thread(&self) -> Option<usize> {
        self.wants.thread
    }

    /// Takes what there is to see now.
    pub(super) fn update(&mut self, snapshot: Snapshot) {
        let selected = self.selected().map(|item| item.key);
        // The tree of before stays until there is another one: it may take long.
        let same = snapshot.wants.agent == self.snapshot.wants.agent
            && snapshot.wants.thread == self.snapshot.wants.thread;
        let tree = snapshot.tree.clone().or_else(|| self.snapshot.tree.clone().filter(|_| same));
        self.snapshot = Snapshot { tree, ..snapshot };
        if self.resets
            && self.snapshot.wants.tree
            && let Some(report) = &self.snapshot.report
        {
            self.resets = false;
            self.since = Some(Baseline::of(report, self.snapshot.tree.as_deref()));
        }
        self.list(selected);
    }

    /// Takes lines for the log.
    pub(super) fn hear(&mut self, lines: Vec<Line>) {
        for line in lines {
            if line.weight == Weight::Warning {
                self.message.clone_from(&line.text);
            }
            self.log.push_back(line);
        }
        self.log.drain(..self.log.len().saturating_sub(LOG));
        if self.tab == Tab::Agents {
            let selected = self.selected().map(|item| item.key);
            self.list(selected);
        }
    }

    pub(super) fn selected(&self) -> Option<&Item> {
        self.items.get(self.cursor)
    }

    /// Makes the rows anew, and stays at the one with this key, or at the same place.
    pub(super) fn list(&mut self, selected: Option<u64>) {
        let report = self.snapshot.report.as_deref();
        self.items = match self.tab {
            Tab::Tree => {
                self.snapshot.tree.as_deref().map(|tree| items::tree(tree, &self.toggled)).unwrap_or_default()
            }
            Tab::Methods => report
                .map(|report| items::methods(report, self.sort, self.since.as_ref()))
                .unwrap_or_default(),
            Tab::Exceptions => report.map(items::exceptions).unwrap_or_default(),
            Tab::Segments => items::numbered(report.map_or(0, |report| report.segments.len())),
            Tab::Slow => items::numbered(report.map_or(0, |report| report.slow_calls.len())),
            Tab::Agents => items::numbered(self.snapshot.agents.len() + self.log.len()),
        };
        let again = selected.and_then(|key| self.items.iter().position(|item| item.key == key));
        self.cursor = again.unwrap_or(self.cursor).min(self.items.len().saturating_sub(1));
    }

    fn go_to(&mut self, tab: Tab) {
        let selected = self.selected().map(|item| item.key);
        if let Some(kept) = self.kept.get_mut(self.tab.place()) {
            *kept = selected;
        }
        self.tab = tab;
        (self.cursor, self.top) = (0, 0);
        self.list(self.kept.get(tab.place()).copied().flatten());
    }

    /// Takes a key.
    pub(super) fn key(&mut self, key: Key) -> Option<Action> {
        match std::mem::take(&mut self.typing) {
            Typing::Search(text) => {
                self.search_key(text, key);
                return None;
            }
            // Any key ends it.
            Typing::Help => return None,
            Typing::Keys => {}
        }
        self.message.clear();
        let stopping = self.stopping.take();
        match key {
            Key::Char('q') => return Some(Action::Quit),
            Key::Char('?') => self.typing = Typing::Help,
            Key::Char('/') => self.typing = Typing::Search(String::new()),
            Key::Char('n') => self.find(false),
            Key::Char('N') => self.find(true),
            Key::Tab => self.go_to(self.beside(1)),
            Key::BackTab => self.go_to(self.beside(Tab::ALL.len() - 1)),
            Key::Char(digit @ '1'..='6') => {
                let at = digit.to_digit(10).and_then(|digit| usize::try_from(digit - 1).ok());
                if let Some(tab) = at.and_then(|at| Tab::ALL.get(at)) {
                    self.go_to(*tab);
                }
            }
            Key::Char('s') => {
                self.sort = self.sort.next();
                let selected = self.selected().map(|item| item.key);
                self.list(selected);
            }
            Key::Char('a') => self.choose_agent(false),
            Key::Char('A') => self.choose_agent(true),
            Key::Char('t') => self.choose_thread(false),
            Key::Char('T') => self.choose_thread(true),
            Key::Char('r') => self.reset(),
            Key::Char('b' | 'p' | 'u' | 'x') => return self.command(key, stopping),
            _ => self.walk(key),
        }
        None
    }

    fn beside(&self, steps: usize) -> Tab {
        Tab::ALL.get((self.tab.place() + steps) % Tab::ALL.len()).copied().unwrap_or_default()
    }

    fn walk(&mut self, key: Key) {
        let last = self.items.len().saturating_sub(1);
        let page = self.page.max(1);
        let to = match key {
            Key::Up | Key::Char('k') => self.cursor.saturating_sub(1),
            Key::Down | Key::Char('j') => self.cursor + 1,
            Key::PageUp => self.cursor.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => self.cursor + page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            Key::Right | Key::Char('l') => return self.fold(Some(true)),
            Key::Left | Key::Char('h') => return self.fold(Some(false)),
            Key::Enter => return self.fold(None),
            Key::Char('e') => return self.open_all(),
            Key::Char('c') => {
                self.toggled.clear();
                return self.list(None);
            }
            Key::Escape if self.since.take().is_some() => {
                "numbers are those since the beginning".clone_into(&mut self.message);
                let selected = self.selected().map(|item| item.key);
                return self.list(selected);
            }
            _ => return,
        };
        self.cursor = to.min(last);
    }

    /// Opens the row, closes it, or either. One that is closed already leads to its caller.
    fn fold(&mut self, open: Option<bool>) {
        let Some(item) = self.selected().copied().filter(|_| self.tab == Tab::Tree) else { return };
        match (open, item.fold) {
            (Some(true) | None, Fold::Closed) | (Some(false) | None, Fold::Open) => {
                if !self.toggled.remove(&item.key) {
                    self.toggled.insert(item.key);
                }
                self.list(Some(item.key));
            }
            (Some(false), Fold::Closed | Fold::Leaf) => {
                let above = self.items.get(..self.cursor).unwrap_or_default();
                self.cursor = above.iter().rposition(|row| row.depth < item.depth).unwrap_or(self.cursor);
            }
            _ => {}
        }
    }

    /// Opens everything below the row, one level with each press.
    fn open_all(&mut self) {
        let Some(item) = self.selected().copied().filter(|_| self.tab == Tab::Tree) else { return };
        let below = self.items.iter().skip(self.cursor + 1).take_while(|row| row.depth > item.depth);
        let closed: Vec<u64> = std::iter::once(&item)
            .chain(below)
            .filter(|row| row.fold == Fold::Closed)
            .map(|row| row.key)
            .collect();
        for key in closed {
            if !self.toggled.remove(&key) {
                self.toggled.insert(key);
            }
        }
        self.list(Some(item.key));
    }

    fn choose_agent(&mut self, back: bool) {
        let ids: Vec<AgentId> = self.snapshot.agents.iter().map(|agent| agent.state.id).collect();
        let now = ids.iter().position(|id| Some(*id) == self.snapshot.wants.agent);
        let Some(next) = items::around(ids.len(), now, back).next().and_then(|at| ids.get(at)) else {
            return;
        };
        self.wants = Wants { agent: Some(*next), ..Wants::default() };
        self.forget();
    }

    /// All, the first, the second …
    fn choose_thread(&mut self, back: bool) {
        let count = self.snapshot.report.as_ref().map_or(0, |report| report.threads.len());
        let now = self.wants.thread.map_or(0, |thread| thread + 1);
        let next = if back { (now + count) % (count + 1) } else { (now + 1) % (count + 1) };
        self.wants.thread = next.checked_sub(1);
        self.forget();
    }

    /// What belongs to another tree is gone.
    fn forget(&mut self) {
        self.snapshot.tree = None;
        self.since = None;
        (self.cursor, self.top) = (0, 0);
        self.list(None);
    }

    fn reset(&mut self) {
        self.resets = true;
        "numbers are those from now on; Esc: since the beginning".clone_into(&mut self.message);
    }

    /// What a key tells the agent that is shown.
    fn command(&mut self, key: Key, stopping: Option<AgentId>) -> Option<Action> {
        let Some(agent) = self.agent().map(|agent| agent.state.id) else {
            "no agent has connected".clone_into(&mut self.message);
            return None;
        };
        let order = match key {
            Key::Char('b') => Order::Start,
            Key::Char('p') => Order::Pause,
            Key::Char('u') => Order::Suspend,
            _ if stopping == Some(agent) => Order::Stop,
            _ => {
                self.stopping = Some(agent);
                self.message = format!("x again stops agent {}: its program goes on untraced", agent.0);
                return None;
            }
        };
        Some(Action::Send(agent, order))
    }
}
