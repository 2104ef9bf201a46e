//! Tests of whole screens: what is seen after keys were pressed.

use std::sync::mpsc;
use std::time::Duration;

use ratatui_core::style::Modifier;
use runtap_model::{Process, SampleKind, Trace, TraceBuilder, UtcNs, View};

use super::super::input::Key;
use super::super::testing::{drawn, press, text};
use super::TopScreen;
use super::state::Tab;
use crate::{Print as _, TextOptions, TopData, TopLine, TopTable};

/// A stack of modules and methods from the root, the thread, whether it ran, and the number of samples.
type SampleRow<'a> = (&'a [(&'a str, &'a str)], u64, bool, u64);

/// Samples of an application: stacks from the root, thread, whether it ran, and the number of samples.
fn trace() -> Trace {
    let mut builder = TraceBuilder::new();
    builder.set_process(Process { pid: Some(1234), name: Some("spin".to_owned()), command_line: None });
    let main = ("spin", "Shop.Program.Main(class System.String[])");
    let handle = ("spin", "Shop.Orders.Handle(int32,class Shop.Order)");
    let hash = ("System.Private.CoreLib", "System.HashCode.Combine(!!0,!!1)");
    let parse = ("spin", "Shop.Parser.Parse(string)\u{1b}[31m\u{202e}");
    let wait = ("System.Private.CoreLib", "System.Threading.Monitor.Wait(class System.Object)");
    let rows: [SampleRow<'_>; 6] = [
        (&[main, handle, hash], 11, true, 2_600),
        (&[main, handle], 11, true, 1_000),
        (&[main, handle, parse], 11, true, 900),
        (&[main, parse], 12, true, 450),
        (&[main, wait], 12, false, 4_500),
        (&[main, ("", "0x7f0000001234")], 13, true, 50),
    ];
    for (stack, tid, is_managed, count) in rows {
        let frames: Vec<_> = stack
            .iter()
            .map(|(module, name)| {
                let module = Some(*module).filter(|module| !module.is_empty());
                let frame = runtap_model::Frame::new(module, name);
                builder.add_frame(&if name.starts_with("0x") { frame.address() } else { frame })
            })
            .collect();
        let stack = builder.stack_of(frames);
        let thread = builder.thread(tid);
        let kind = if is_managed { SampleKind::MANAGED } else { SampleKind::EXTERNAL };
        builder.add_weighted(thread, 0, count * 1_000_000, kind, stack);
    }
    builder.set_known_thread_name(11, ".NET TP Worker");
    builder.set_known_thread_name(12, "evil\u{1b}[2Jשם");
    builder.finish()
}

fn data() -> TopData {
    TopData {
        trace: trace(),
        time: UtcNs(1_793_266_957_123_456_789),
        covers: Duration::from_secs(5),
        lost: 0,
        left_out: 0,
        is_naming: false,
        has_exact_states: true,
    }
}

fn screen() -> TopScreen {
    let mut screen = TopScreen::new(View::Cpu, false, |_, _| "Wrote spin_1234.svg".to_owned());
    screen.update(data());
    screen
}

#[test]
fn methods_in_60_100_and_200_columns() {
    let mut screen = screen();
    insta::assert_snapshot!("methods_60", text(&mut screen, 60, 12));
    press(&mut screen, "↓↓");
    insta::assert_snapshot!("methods_100", text(&mut screen, 100, 12));
    for _ in 0..30 {
        screen.update(data());
    }
    press(&mut screen, "s");
    insta::assert_snapshot!("methods_200", text(&mut screen, 200, 12));
}

#[test]
fn threads_and_the_methods_of_one() {
    let mut screen = screen();
    press(&mut screen, "2");
    insta::assert_snapshot!(text(&mut screen, 60, 10));
    press(&mut screen, "↓⏎");
    assert_eq!((screen.tab, screen.thread, screen.rows.len()), (Tab::Methods, Some(12), 2));
    insta::assert_snapshot!(text(&mut screen, 60, 10));
    press(&mut screen, "⎋");
    assert_eq!((screen.thread, screen.rows.len()), (None, 5));
}

#[test]
fn calls_of_a_method_and_its_callers() {
    let mut screen = screen();
    press(&mut screen, "s/handle⏎⏎");
    insta::assert_snapshot!("callees", text(&mut screen, 80, 10));
    press(&mut screen, "r");
    insta::assert_snapshot!("callers", text(&mut screen, 80, 10));
    press(&mut screen, "←");
    assert_eq!(screen.tab, Tab::Methods);
}

#[test]
fn the_help_fits_60_columns() {
    let mut screen = screen();
    press(&mut screen, "?");
    insta::assert_snapshot!(text(&mut screen, 60, 24));
}

#[test]
fn views_pause_filter_and_save() {
    let mut screen = screen();
    press(&mut screen, "v");
    assert!(text(&mut screen, 100, 12).contains("System.Threading.Monitor.Wait"));
    press(&mut screen, "w");
    assert!(text(&mut screen, 60, 12).contains("Wrote spin_1234.svg"));
    press(&mut screen, "/PARSE");
    let filtered = text(&mut screen, 100, 12);
    assert!(filtered.contains("/parse▏") && !filtered.contains("Monitor"), "{filtered}");
    press(&mut screen, "⎋ ");
    let paused = text(&mut screen, 60, 12);
    assert!(paused.contains("PAUSED") && paused.contains("space continue"), "{paused}");
    let mut other = data();
    other.trace = TraceBuilder::new().finish();
    screen.update(other.clone());
    assert_eq!(screen.rows.len(), 6);
    press(&mut screen, " ");
    screen.update(other);
    assert!(screen.rows.is_empty());
    press(&mut screen, "↓⏎3⏎⇥⏎w");
    assert!(screen.handle(Key::Char('q')));
}

#[test]
fn a_runtime_without_exact_states_is_remarked() {
    let mut screen = screen();
    let mut inexact = data();
    inexact.has_exact_states = false;
    let mut builder = TraceBuilder::new();
    let thread = builder.thread(1);
    for (kind, weight) in [(SampleKind::MANAGED, 1), (SampleKind::EXTERNAL, 9)] {
        let frame = builder.frame(Some("m"), "Work()");
        let stack = builder.stack_of([frame]);
        builder.add_weighted(thread, 0, weight * 1_000_000, kind, stack);
    }
    inexact.trace = builder.finish();
    screen.update(inexact);
    assert!(text(&mut screen, 60, 12).contains("This runtime marks running threads as waiting"));
    press(&mut screen, "v");
    assert!(!text(&mut screen, 60, 12).contains("This runtime"));
}

#[test]
fn the_selected_method_stays_selected() {
    let mut screen = screen();
    press(&mut screen, "↓↓");
    let selected = screen.selected().unwrap().key.clone();
    press(&mut screen, "ss");
    assert_eq!(screen.selected().unwrap().key, selected);
    screen.update(data());
    assert_eq!(screen.selected().unwrap().key, selected);
}

#[test]
fn no_size_of_the_terminal_is_too_small_and_the_selection_needs_no_color() {
    let mut screen = screen();
    for (width, height) in [(1, 1), (1, 30), (5, 3), (20, 4), (30, 6), (300, 1), (300, 60)] {
        for keys in ["", "?", "x", "2", "3", "1", "/a", "⎋"] {
            press(&mut screen, keys);
            assert_eq!(text(&mut screen, width, height).lines().count(), usize::from(height));
        }
    }
    let terminal = drawn(&mut screen, 60, 12);
    let buffer = terminal.backend().buffer();
    assert!((0..60).all(|x| buffer.cell((x, 3)).unwrap().modifier.contains(Modifier::REVERSED)));
}

#[test]
fn what_is_saved_is_what_is_shown() {
    let (sender, saved) = mpsc::channel();
    let mut screen = TopScreen::new(View::Cpu, true, move |trace, view| {
        sender.send((trace.threads().count(), view)).unwrap();
        "Wrote \u{1b}[2J".to_owned()
    });
    press(&mut screen, "w");
    assert!(saved.try_recv().is_err(), "there is nothing to save yet");
    screen.update(data());
    press(&mut screen, "vw");
    assert_eq!(saved.try_recv().unwrap(), (3, View::ThreadTime));
    assert!(text(&mut screen, 60, 12).contains(r"Wrote \u{1b}[2J"));
}

#[test]
fn a_table_and_a_line_of_json() {
    let data = data();
    let table = TopTable { data: &data, view: View::Cpu, inclusive: false };
    let mut printed = Vec::new();
    table.print(&mut printed, &TextOptions { rows: Some(3), ..TextOptions::default() }).unwrap();
    insta::assert_snapshot!("table", String::from_utf8(printed).unwrap());
    let mut line = Vec::new();
    crate::json::write_line(&mut line, &TopLine::new(&table, Some(2))).unwrap();
    insta::assert_snapshot!("json", String::from_utf8(line).unwrap());
}
