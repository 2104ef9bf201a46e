//! The state of the live view: the tab, the row, the expanded rows and the text being typed.
//!
//! Owns: [`ViewState`], which keys and snapshots change. Independent of the terminal and without side effects: an effect is
//! returned as an [`Action`].

use std::collections::{HashSet, VecDeque};

use runtap_bytefrog::hq::AgentId;
use runtap_bytefrog_proto::{Command, Mode};
use runtap_model::Message;

use crate::screen::{Key, WHEEL_STEP};

use super::gather::{Snapshot, SnapshotRequest, ViewedAgent};
use super::items::{self, Baseline, Fold, Sort, TabRow};

/// The maximum number of lines in the log.
const MAX_LOG_LINES: usize = 1000;

/// A tab of the view.
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

/// The input mode.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Typing {
    #[default]
    Keys,
    /// Characters are added to the search text.
    Search(String),
    Help,
}

/// A command for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentCommand {
    Start,
    Stop,
    /// Pauses the program, or resumes a paused one.
    Pause,
    /// Suspends recording, or resumes it.
    Suspend,
}

impl AgentCommand {
    /// Returns the protocol command for an agent that is in this mode.
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

/// An effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Send(AgentId, AgentCommand),
    /// Stop the agents and end the collection with the report.
    Quit,
}

/// The state of the view.
#[derive(Debug, Default)]
pub(super) struct ViewState {
    pub(super) tab: Tab,
    pub(super) sort: Sort,
    pub(super) typing: Typing,
    pub(super) snapshot: Snapshot,
    pub(super) items: Vec<TabRow>,
    pub(super) cursor: usize,
    /// The index of the first visible row; drawing keeps the cursor visible.
    pub(super) top: usize,
    /// The number of visible rows.
    pub(super) page: usize,
    pub(super) log: VecDeque<Message>,
    pub(super) message: String,
    /// The baseline that is subtracted from numbers, after a reset.
    pub(super) since: Option<Baseline>,
    /// Whether a reset waits for the next snapshot with a tree.
    resets: bool,
    request: SnapshotRequest,
    /// Keys of the rows that are not in their initial state.
    pub(super) toggled: HashSet<u64>,
    /// Whether all agents have ended.
    pub(super) over: bool,
    /// The search text.
    pub(super) found: String,
    /// The agent to stop if the stop key is pressed again.
    stopping: Option<AgentId>,
    /// The key of the selected row of each tab.
    kept: [Option<u64>; Tab::ALL.len()],
}

impl ViewState {
    /// Returns the request for the next snapshot.
    pub(super) fn request(&self) -> SnapshotRequest {
        SnapshotRequest { tree: self.tab == Tab::Tree || self.resets, ..self.request }
    }

    /// Returns the displayed agent.
    pub(super) fn agent(&self) -> Option<&ViewedAgent> {
        let id = self.snapshot.request.agent?;
        self.snapshot.agents.iter().find(|agent| agent.status.id == id)
    }

    /// Returns the index in the report of the thread whose tree is shown; `None` for all threads.
    pub(super) fn thread(&self) -> Option<usize> {
        self.request.thread
    }

    /// Replaces the snapshot.
    pub(super) fn update(&mut self, snapshot: Snapshot) {
        let selected = self.selected().map(|item| item.key);
        // Keep the previous tree until a new one arrives, which may take long.
        let same = snapshot.request.agent == self.snapshot.request.agent
            && snapshot.request.thread == self.snapshot.request.thread;
        let tree = snapshot.tree.clone().or_else(|| self.snapshot.tree.clone().filter(|_| same));
        self.snapshot = Snapshot { tree, ..snapshot };
        if self.resets
            && self.snapshot.request.tree
            && let Some(report) = &self.snapshot.report
        {
            self.resets = false;
            self.since = Some(Baseline::of(report, self.snapshot.tree.as_deref()));
        }
        self.list(selected);
    }

    /// Appends messages to the log.
    pub(super) fn add_messages(&mut self, messages: Vec<Message>) {
        for message in messages {
            if let Message::Warning(text) = &message {
                self.message.clone_from(text);
            }
            self.log.push_back(message);
        }
        self.log.drain(..self.log.len().saturating_sub(MAX_LOG_LINES));
        if self.tab == Tab::Agents {
            let selected = self.selected().map(|item| item.key);
            self.list(selected);
        }
    }

    pub(super) fn selected(&self) -> Option<&TabRow> {
        self.items.get(self.cursor)
    }

    /// Rebuilds the rows and selects the row with this key, or else the row at the same index.
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
        let position = selected.and_then(|key| self.items.iter().position(|item| item.key == key));
        self.cursor = position.unwrap_or(self.cursor).min(self.items.len().saturating_sub(1));
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

    /// Handles a key.
    pub(super) fn key(&mut self, key: Key) -> Option<Action> {
        match std::mem::take(&mut self.typing) {
            Typing::Search(text) => {
                self.search_key(text, key);
                return None;
            }
            // Any key closes the help.
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
            Key::Tab => self.go_to(self.neighbor(1)),
            Key::BackTab => self.go_to(self.neighbor(Tab::ALL.len() - 1)),
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
            _ => self.move_cursor(key),
        }
        None
    }

    fn neighbor(&self, steps: usize) -> Tab {
        Tab::ALL.get((self.tab.place() + steps) % Tab::ALL.len()).copied().unwrap_or_default()
    }

    fn move_cursor(&mut self, key: Key) {
        let last = self.items.len().saturating_sub(1);
        let page = self.page.max(1);
        let to = match key {
            Key::Up | Key::Char('k') => self.cursor.saturating_sub(1),
            Key::Down | Key::Char('j') => self.cursor + 1,
            Key::PageUp => self.cursor.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => self.cursor + page,
            Key::WheelUp => self.cursor.saturating_sub(WHEEL_STEP),
            Key::WheelDown => self.cursor + WHEEL_STEP,
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

    /// Expands or collapses the row; `None` toggles it. Collapsing a collapsed row or a leaf selects its caller.
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

    /// Expands all rows below the selected one by one level.
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
        let ids: Vec<AgentId> = self.snapshot.agents.iter().map(|agent| agent.status.id).collect();
        let now = ids.iter().position(|id| Some(*id) == self.snapshot.request.agent);
        let Some(next) = items::around(ids.len(), now, back).next().and_then(|at| ids.get(at)) else {
            return;
        };
        self.request = SnapshotRequest { agent: Some(*next), ..SnapshotRequest::default() };
        self.discard_tree();
    }

    /// Cycles through all threads together, the first thread, the second thread and so on.
    fn choose_thread(&mut self, back: bool) {
        let count = self.snapshot.report.as_ref().map_or(0, |report| report.threads.len());
        let now = self.request.thread.map_or(0, |thread| thread + 1);
        let next = if back { (now + count) % (count + 1) } else { (now + 1) % (count + 1) };
        self.request.thread = next.checked_sub(1);
        self.discard_tree();
    }

    /// Discards the data of the previous tree.
    fn discard_tree(&mut self) {
        self.snapshot.tree = None;
        self.since = None;
        (self.cursor, self.top) = (0, 0);
        self.list(None);
    }

    fn reset(&mut self) {
        self.resets = true;
        "numbers are those from now on; Esc: since the beginning".clone_into(&mut self.message);
    }

    /// Returns the command of a key for the displayed agent.
    fn command(&mut self, key: Key, stopping: Option<AgentId>) -> Option<Action> {
        let Some(agent) = self.agent().map(|agent| agent.status.id) else {
            "no agent has connected".clone_into(&mut self.message);
            return None;
        };
        let order = match key {
            Key::Char('b') => AgentCommand::Start,
            Key::Char('p') => AgentCommand::Pause,
            Key::Char('u') => AgentCommand::Suspend,
            _ if stopping == Some(agent) => AgentCommand::Stop,
            _ => {
                self.stopping = Some(agent);
                self.message = format!("x again stops agent {}: its program continues untraced", agent.0);
                return None;
            }
        };
        Some(Action::Send(agent, order))
    }
}
