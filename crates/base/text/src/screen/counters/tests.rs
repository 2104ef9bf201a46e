//! Tests of whole screens: what is seen after keys were pressed.

use ratatui_core::style::{Color, Modifier};
use runtap_model::counters::{Counter, CounterBoard, CounterKind, CounterValues, Reading, Tags};

use super::super::testing::{drawn, press, text};
use super::CounterScreen;
use super::state::Item;

fn counter(provider: &str, name: &str, kind: CounterKind, unit: &str, tags: &[(&str, &str)]) -> Counter {
    let text: Vec<String> = tags.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Counter {
        provider: provider.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        kind,
        tags: Tags::new(
            text.join(","),
            tags.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect(),
        ),
        ..Counter::default()
    }
}

fn add(board: &mut CounterBoard, process: u32, counter: Counter, values: CounterValues) {
    let values = CounterValues { interval_s: Some(1.0), ..values };
    board.add(process, Reading { counter, values, utc_ns: None });
}

/// Adds the readings of a shop after `round` intervals.
fn round(board: &mut CounterBoard, round: u32) {
    let number = f64::from(round);
    let runtime = "System.Runtime";
    let gauge = |value: f64| CounterValues { value: Some(value), ..CounterValues::default() };
    let sum =
        |value: f64, delta: f64| CounterValues { value: Some(value), delta: Some(delta), ..gauge(value) };
    let allocated = counter(runtime, "dotnet.gc.heap.total_allocated", CounterKind::Rate, "By", &[]);
    add(board, 7, allocated, sum(8_192.0 * number * number, 8_192.0 * number));
    let set = counter(runtime, "dotnet.process.memory.working_set", CounterKind::Updown, "By", &[]);
    add(board, 7, set, sum(43_212_800.0 - 4_096.0 * number, -4_096.0));
    for (tag, factor) in [("a", 3.0), ("b", 2.0)] {
        let orders = counter("Demo.Shop", "orders", CounterKind::Rate, "{order}", &[("shop", tag)]);
        add(board, 7, orders, sum(factor * number, factor));
    }
    let load = counter("Demo.Shop", "load", CounterKind::Gauge, "%", &[]);
    add(board, 7, load, gauge((number * 1.3).sin() * 50.0 + 50.0));
    let missing = counter("Demo.Shop", "queue", CounterKind::Gauge, "", &[]);
    add(board, 7, missing, CounterValues::default());
    let hostile = counter("Demo.Shop", "evil\x1b[2J\u{202e}", CounterKind::Gauge, "שלום", &[("k", "ع\n\r")]);
    add(board, 7, hostile, gauge(f64::NEG_INFINITY));
    let latency = counter("Demo.Shop", "latency", CounterKind::Histogram, "ms", &[("route", "/a")]);
    let quantiles = ["0.5", "0.95", "0.99"].iter().zip([12.5, 40.0, 99.25]);
    let quantiles = quantiles.map(|(share, value)| ((*share).to_owned(), value + number)).collect();
    let values =
        CounterValues { count: Some(100), sum: Some(5_050.0), quantiles, ..CounterValues::default() };
    add(board, 7, latency, values);
}

fn shop(rounds: u32) -> CounterScreen {
    let (mut screen, mut board) = (CounterScreen::new(false), CounterBoard::default());
    screen.start(7, "meters");
    for number in 1..=rounds {
        round(&mut board, number);
        screen.update(&board);
    }
    screen
}

#[test]
fn a_screen_of_100_columns() {
    insta::assert_snapshot!(text(&mut shop(30), 100, 18));
}

#[test]
fn a_screen_of_60_columns() {
    let mut screen = shop(30);
    press(&mut screen, "↓↓↓");
    insta::assert_snapshot!(text(&mut screen, 60, 18));
}

#[test]
fn a_screen_of_200_columns_with_changes() {
    let mut screen = shop(60);
    press(&mut screen, "d↓");
    insta::assert_snapshot!(text(&mut screen, 200, 18));
}

#[test]
fn the_help_fits_60_columns() {
    let mut screen = shop(1);
    press(&mut screen, "?");
    insta::assert_snapshot!(text(&mut screen, 60, 21));
    press(&mut screen, "x");
    assert!(text(&mut screen, 60, 18).contains("orders"));
}

#[test]
fn a_filter_sorting_and_collapsed_groups() {
    let mut screen = shop(3);
    press(&mut screen, "/ORD");
    insta::assert_snapshot!(text(&mut screen, 80, 8), @r"
    counters of meters (7)                                                  8 series
    COUNTER                                                VALUE PER SECOND HISTORY
    ▾ Demo.Shop
      orders{shop=a} ({order})                                 9          3      ▁▁▁
      orders{shop=b} ({order})                                 6          2      ▁▁▁

    /ord▏
    Enter keeps the filter  Esc removes it
    ");
    // The filter also finds groups.
    press(&mut screen, "⎋/system.r⏎");
    assert_eq!(screen.items.len(), 3);
    press(&mut screen, "⎋s");
    insta::assert_snapshot!(text(&mut screen, 80, 15));
    press(&mut screen, "gc");
    insta::assert_snapshot!(text(&mut screen, 60, 7), @r"
    counters of meters (7)                              8 series
    COUNTER                            VALUE PER SECOND HISTORY
    ▸ Demo.Shop  6 series
    ▸ System.Runtime  2 series


    q quit  ? help  space pause  / filter  s sort: value
    ");
    press(&mut screen, "↓⏎↓");
    assert!(matches!(screen.selected(), Some(Item::Line(..))));
    // Collapsing the group of a series selects the group.
    press(&mut screen, "←");
    assert_eq!(screen.selected(), Some(Item::Group(1)));
}

/// Returns the number of orders of the first shop.
fn orders(text: &str) -> Option<&str> {
    text.lines().find(|line| line.contains("orders{shop=a}"))?.split_whitespace().nth(2)
}

#[test]
fn a_paused_screen_keeps_its_values() {
    let (mut screen, mut board) = (CounterScreen::new(false), CounterBoard::default());
    round(&mut board, 1);
    screen.update(&board);
    press(&mut screen, " ");
    round(&mut board, 2);
    screen.update(&board);
    let paused = text(&mut screen, 80, 16);
    assert!(paused.contains("PAUSED  8 series") && paused.contains("space continue"), "{paused}");
    assert_eq!(orders(&paused), Some("3"), "{paused}");
    press(&mut screen, " ");
    screen.update(&board);
    assert_eq!(orders(&text(&mut screen, 80, 16)), Some("6"));
}

#[test]
fn series_and_processes_that_end_disappear_and_the_selection_stays() {
    let (mut screen, mut board) = (CounterScreen::new(false), CounterBoard::default());
    for process in [7, 8] {
        screen.start(process, "app");
        for name in ["a", "b"] {
            let values = CounterValues { value: Some(1.0), ..CounterValues::default() };
            add(&mut board, process, counter("P", name, CounterKind::Gauge, "", &[]), values);
        }
    }
    screen.update(&board);
    assert!(text(&mut screen, 60, 12).contains("▾ app (8): P"));
    press(&mut screen, "↓↓");
    let selected = screen.selected();
    board.end(7, &counter("P", "a", CounterKind::Gauge, "", &[]));
    screen.update(&board);
    assert_eq!((screen.selected(), screen.list.cursor), (selected, 1));
    board.end_process(8);
    screen.update(&board);
    assert!(text(&mut screen, 60, 12).contains("▾ P\n"));
    board.end_process(7);
    screen.update(&board);
    assert!(text(&mut screen, 60, 12).contains("Waiting for the first values"));
    press(&mut screen, "↓⏎←c");
}

#[test]
fn colors_only_add_to_the_text() {
    let terminal = drawn(&mut shop(5), 100, 18);
    let buffer = terminal.backend().buffer();
    let cell = |x: u16, y: u16| buffer.cell((x, y)).unwrap();
    assert!(cell(0, 1).modifier.contains(Modifier::BOLD));
    // The selected row is reversed as a whole, so that it is seen without colors.
    assert!((0..100).all(|x| cell(x, 2).modifier.contains(Modifier::REVERSED)));
    assert_eq!((cell(2, 2).fg, cell(99, 4).fg), (Color::Cyan, Color::Green));
    assert!(!cell(2, 3).modifier.contains(Modifier::REVERSED));
}

#[test]
fn no_size_of_the_terminal_is_too_small() {
    let mut screen = shop(2);
    for (width, height) in [(1, 1), (1, 30), (5, 3), (20, 4), (30, 5), (300, 1), (300, 60)] {
        for keys in ["", "?", "x", "/a", "⎋", "d", "G"] {
            press(&mut screen, keys);
            let text = text(&mut screen, width, height);
            assert_eq!(text.lines().count(), usize::from(height));
        }
    }
}

/// Only visible rows are formatted, and histories become shorter.
#[test]
fn ten_thousand_series_take_little_memory() {
    let (mut screen, mut board) = (CounterScreen::new(false), CounterBoard::default());
    for round in 0..200 {
        for index in 0..10_000 {
            let tag = index.to_string();
            let values = CounterValues { value: Some(f64::from(round)), ..CounterValues::default() };
            let counter = counter("P", "n", CounterKind::Gauge, "", &[("index", &tag)]);
            // Most series have readings in the first round only.
            if round == 0 || index < 10 {
                add(&mut board, 1, counter, values);
            }
        }
        if round % 20 == 0 || round > 190 {
            screen.update(&board);
        }
    }
    assert_eq!(screen.items.len(), 10_001);
    let longest =
        screen.table.all().flat_map(|(_, series)| &series.lines).map(|line| line.history.len()).max();
    assert!(longest.is_some_and(|longest| longest <= 120));
    press(&mut screen, "G");
    assert!(text(&mut screen, 100, 20).contains("n{index=9999}"));
    press(&mut screen, "/=77⏎");
    assert_eq!(screen.items.len(), 1 + 111);
}
