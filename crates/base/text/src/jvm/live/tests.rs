//! Tests of the state without a terminal, and of the view on a buffer of cells.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use runtap_bytefrog::hq::{AgentId, AgentStatus, Event};
use runtap_bytefrog::{Limits, Model};
use runtap_bytefrog_proto::{
    AgentState as Where, Command, Dialect, Exit, JavaStr, Message, Mode, ModeByte, Stamp,
};
use runtap_jvm::agents::AgentWatch;

use super::gather::{Snapshot, SnapshotRequest, ViewedAgent};
use super::state::{Action, AgentCommand, Tab, ViewState};
use crate::screen::Key;

/// `main` calls `fast` 3 times and `slow` once, which calls `fast` and throws; a second thread calls `fast`.
fn model() -> Model {
    let mut model = Model::new(Dialect::V1, &Limits::default(), 100_000_000);
    for (method, signature) in [
        (1, "app/Main.main;9;()V"),
        (2, "app/Work.fast;1;(I)V"),
        (3, "app/Work.slow;1;(Ljava/lang/String;)V"),
    ] {
        model.take(&Message::MapMethod { method, signature: JavaStr::from_bytes(signature.as_bytes()) });
    }
    model.take(&Message::MapException { exception: 1, name: JavaStr::from_bytes(b"app.Broken") });
    let mut sequence = 0;
    let mut at = |time, thread| {
        sequence += 1;
        Stamp { time, sequence: sequence - 1, thread }
    };
    let mut messages = vec![Message::Entry { at: at(0, 0), method: 1 }];
    for call in 0..3 {
        messages.push(Message::Entry { at: at(10 * call, 0), method: 2 });
        messages.push(Message::Exit { at: at(10 * call + 5, 0), method: 2, exit: Exit::Line(1) });
    }
    messages.push(Message::Entry { at: at(100, 0), method: 3 });
    messages.push(Message::Entry { at: at(100, 0), method: 2 });
    messages.push(Message::Exit { at: at(250, 0), method: 2, exit: Exit::Line(1) });
    messages.push(Message::Exception { at: at(260, 0), method: 3, exception: 1, line: 7 });
    messages.push(Message::Bubble { at: at(300, 0), method: 3, exception: 1 });
    let (key, value) = (JavaStr::from_bytes(b"phase"), JavaStr::from_bytes(b"two\x1b[2J"));
    let marker = at(310, 0);
    messages.push(Message::Marker { time: marker.time, sequence: marker.sequence, thread: None, key, value });
    messages.push(Message::Entry { at: at(320, 1), method: 2 });
    messages.push(Message::Exit { at: at(330, 1), method: 2, exit: Exit::Line(1) });
    for message in &messages {
        model.take(message);
    }
    model
}

fn agent_summary(watch: &AgentWatch, model: &Model, number: u32) -> ViewedAgent {
    let mode = Mode::Tracing;
    let id = AgentId(number);
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
    watch.handle_event(Some(id), Event::Connected { peer, dialect: Dialect::V1, project: None, run: 7 });
    watch.handle_event(Some(id), Event::Heartbeat { mode: mode.byte(), queue: 0 });
    let status = AgentStatus {
        id,
        run: 7,
        dialect: Dialect::V1,
        state: Where { mode, started: true },
        reported_mode: Some(ModeByte(b'T')),
        ended: false,
        data: 1,
        is_own: true,
    };
    ViewedAgent {
        status,
        facts: watch.facts(id).unwrap(),
        counters: model.counters(),
        waiting: 0,
        rate: 1234,
    }
}

/// Returns the snapshot that the gatherer would create for this request.
fn snapshot(model: &Model, request: SnapshotRequest) -> Snapshot {
    let watch = AgentWatch::new(false);
    let agents = [0, 1].map(|number| agent_summary(&watch, model, number)).to_vec();
    let agent = request.agent.or(Some(AgentId(0)));
    let tree = request.tree.then(|| Arc::new(model.call_tree(request.thread)));
    Snapshot {
        request: SnapshotRequest { agent, ..request },
        agents,
        report: Some(Arc::new(model.report())),
        tree,
    }
}

struct Live {
    model: Model,
    state: ViewState,
}

impl Live {
    fn new() -> Self {
        let mut live = Self { model: model(), state: ViewState::default() };
        live.refresh();
        live
    }

    fn refresh(&mut self) {
        self.state.update(snapshot(&self.model, self.state.request()));
    }

    fn press(&mut self, keys: &str) -> Option<Action> {
        let mut action = None;
        for key in keys.chars() {
            let key = match key {
                '→' => Key::Right,
                '←' => Key::Left,
                '↓' => Key::Down,
                '↑' => Key::Up,
                '⏎' => Key::Enter,
                '⇥' => Key::Tab,
                '⎋' => Key::Escape,
                key => Key::Char(key),
            };
            action = self.state.key(key);
            self.refresh();
        }
        action
    }

    /// Draws a screen of this size and returns its lines.
    fn lines(&mut self, columns: u16, rows: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        super::draw(&mut terminal, &mut self.state).unwrap();
        let buffer = terminal.backend().buffer();
        (0..rows)
            .map(|y| {
                let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
                line.trim_end().to_owned()
            })
            .collect()
    }
}

#[test]
fn tree_rows_open_and_close() {
    let mut live = Live::new();
    let lines = live.lines(80, 12);
    assert_eq!(lines[0], " 1 Calls  2 Methods  3 Exceptions  4 Segments  5 Slow calls  6 Agents");
    assert_eq!(lines[1], "agent 0 of 2: 127.0.0.1:4000, tracing; 7 calls, 1,234/s, 1 exception");
    assert_eq!(lines[2], "     self     total       calls exc exits  call");
    // `main` is a root, so it is initially open.
    assert_eq!(lines[3], " 115.0 ms  330.0 ms           1         0  ▾ app.Main.main() [1 open]");
    assert_eq!(lines[4], "  50.0 ms  200.0 ms           1         1    ▸ app.Work.slow(String)");
    assert_eq!(lines[5], "  15.0 ms   15.0 ms           3         0      app.Work.fast(int)");
    assert_eq!(lines[6], "  10.0 ms   10.0 ms           1         0    app.Work.fast(int)");
    assert!(lines[11].starts_with("? help"), "{lines:?}");
    live.press("↓→↓");
    let opened = live.lines(80, 12);
    assert_eq!(opened[4], "  50.0 ms  200.0 ms           1         1    ▾ app.Work.slow(String)");
    assert_eq!(opened[5], " 150.0 ms  150.0 ms           1         0        app.Work.fast(int)");
    // On a leaf, Left selects the caller; on an open row, Left closes it.
    live.press("←←");
    assert_eq!(live.lines(80, 12), lines);
    live.press("↑←");
    assert_eq!(live.state.items.len(), 2);
    live.press("ee");
    assert_eq!(live.state.items.len(), 5);
    live.press("c");
    assert_eq!(live.state.items.len(), 4);
}

#[test]
fn the_selected_row_stays_selected_after_an_update() {
    let mut live = Live::new();
    live.press("↓↓");
    let selected = live.state.selected().copied().unwrap();
    // The order of the roots changes.
    let more = (17..200).flat_map(|sequence| {
        let at = Stamp { time: 340 + 10 * sequence, sequence, thread: 1 };
        let is_entry = sequence % 2 == 1;
        [if is_entry {
            Message::Entry { at, method: 2 }
        } else {
            Message::Exit { at, method: 2, exit: Exit::Line(1) }
        }]
    });
    for message in more.collect::<Vec<_>>() {
        live.model.take(&message);
    }
    live.refresh();
    let now = live.state.selected().copied().unwrap();
    assert_eq!(now.key, selected.key);
}

#[test]
fn methods_can_be_sorted_and_counts_reset() {
    let mut live = Live::new();
    live.press("2");
    assert_eq!(live.state.tab, Tab::Methods);
    let lines = live.lines(80, 12);
    assert_eq!(lines[2], "    self▾     total       calls exc exits  method");
    assert_eq!(lines[3], " 175.0 ms  175.0 ms           5         0  app.Work.fast(int)");
    assert_eq!(lines[4], " 115.0 ms  330.0 ms           1         0  app.Main.main()");
    live.press("s");
    assert_eq!(live.lines(80, 12)[3], lines[4]);
    live.press("sss");
    assert_eq!(live.lines(80, 12)[3], " 115.0 ms  330.0 ms           1         0  app.Main.main()");
    live.press("sr");
    let reset = live.lines(80, 12);
    assert!(reset[1].contains(", since reset: "), "{reset:?}");
    assert!(reset.iter().any(|line| line == "     0 ms      0 ms           0         0  app.Work.fast(int)"));
    live.press("⎋");
    assert_eq!(live.lines(80, 12)[3], lines[3]);
}

/// Text that does not fit is left out entirely, and the selected thread stays visible.
#[test]
fn narrow_terminals_show_no_partial_words() {
    let mut live = Live::new();
    live.press("tt");
    for columns in [60, 80] {
        let lines = live.lines(columns, 12);
        assert!(lines[1].starts_with("agent 0 of 2, thread 1"), "{lines:?}");
        assert!(lines[11].starts_with("? help  q quit  ←→ open  / find  t thread"), "{lines:?}");
        assert!(["r reset", "e all below"].iter().any(|last| lines[11].ends_with(last)), "{lines:?}");
    }
    assert_eq!(live.lines(60, 12)[0], " 1 Calls  2  3  4  5  6");
    live.state.over = true;
    assert!(live.lines(60, 12)[11].starts_with("all agents have ended: q quits"), "{:?}", live.lines(60, 12));
}

#[test]
fn search_finds_text_in_every_tab() {
    let mut live = Live::new();
    live.press("/FAST");
    assert!(live.lines(80, 12)[10].starts_with("/FAST"), "{:?}", live.lines(80, 12));
    live.press("⏎");
    assert_eq!(live.state.selected().map(|item| (item.index, item.depth)), Some((2, 2)));
    live.press("n");
    assert_eq!(live.state.selected().map(|item| (item.index, item.depth)), Some((3, 1)));
    live.press("nn");
    assert_eq!(live.state.selected().map(|item| item.index), Some(2));
    live.press("N");
    assert_eq!(live.state.selected().map(|item| item.index), Some(4));
    live.press("/nowhere⏎");
    assert!(live.lines(80, 12)[10].contains("'nowhere' is nowhere here"));
    // Both slow calls are below `main`, so the next one is selected.
    live.press("5/main⏎/q⎋");
    assert_eq!(live.state.selected().map(|item| item.index), Some(1));
}

#[test]
fn keys_send_commands_to_the_displayed_agent() {
    let mut live = Live::new();
    let first = AgentId(0);
    assert_eq!(live.press("p"), Some(Action::Send(first, AgentCommand::Pause)));
    assert_eq!(live.press("u"), Some(Action::Send(first, AgentCommand::Suspend)));
    assert_eq!(live.press("b"), Some(Action::Send(first, AgentCommand::Start)));
    for (order, mode, command) in [
        (AgentCommand::Pause, Mode::Tracing, Command::Pause),
        (AgentCommand::Pause, Mode::Paused, Command::Unpause),
        (AgentCommand::Suspend, Mode::Tracing, Command::Suspend),
        (AgentCommand::Suspend, Mode::Suspended, Command::Unsuspend),
        (AgentCommand::Stop, Mode::Paused, Command::Stop),
        (AgentCommand::Start, Mode::Initializing, Command::Start),
    ] {
        assert_eq!(order.command(mode), command);
    }
    // Stopping needs confirmation.
    assert_eq!(live.press("x"), None);
    assert_eq!(live.press("↓x"), None);
    assert_eq!(live.press("x"), Some(Action::Send(first, AgentCommand::Stop)));
    live.press("a");
    assert_eq!(live.press("p"), Some(Action::Send(AgentId(1), AgentCommand::Pause)));
    assert_eq!(live.press("q"), Some(Action::Quit));
    let mut alone = ViewState::default();
    assert_eq!(alone.key(Key::Char('p')), None);
    assert_eq!(alone.message, "no agent has connected");
}

#[test]
fn each_thread_has_its_own_tree() {
    let mut live = Live::new();
    live.press("t");
    assert_eq!(live.state.items.len(), 3);
    live.press("t");
    let lines = live.lines(80, 12);
    assert!(lines[1].starts_with("agent 0 of 2, thread 1: "), "{lines:?}");
    assert_eq!(live.state.items.len(), 1);
    live.press("t");
    assert_eq!((live.state.thread(), live.state.items.len()), (None, 4));
    live.press("T");
    assert_eq!(live.state.thread(), Some(1));
}

#[test]
fn tabs_are_drawn_in_any_size_without_control_characters() {
    let mut live = Live::new();
    for _ in Tab::ALL {
        for (columns, rows) in [(1, 1), (5, 3), (20, 6), (80, 24), (300, 80)] {
            for line in live.lines(columns, rows) {
                assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
            }
        }
        live.press("⇥");
    }
    assert_eq!(live.state.tab, Tab::Tree);
    live.press("3");
    let exceptions = live.lines(80, 12);
    assert!(exceptions[3].contains("thrown     app.Broken, app.Work.slow(String):7"), "{exceptions:?}");
    live.press("4");
    assert!(live.lines(80, 12)[3].contains("open"), "{:?}", live.lines(80, 12));
    live.press("5");
    assert_eq!(live.lines(80, 12)[3], " 200.0 ms    0.100000 s       0      2  app.Work.slow(String)");
    live.press("6");
    assert_eq!(live.lines(80, 12)[3], "* Agent 0: version 1, run 7, 127.0.0.1:4000 (tracing), 7 calls");
    live.press("?");
    for line in &live.lines(60, 24)[3..22] {
        assert!(line.chars().count() < 60 || line.ends_with("untraced"), "{line:?} may be cut off");
    }
    assert!(live.lines(80, 30).iter().any(|line| line.starts_with("q, Ctrl-C")));
    live.press("q");
    assert!(!live.lines(80, 30).iter().any(|line| line.starts_with("q, Ctrl-C")));
}
