//! The live view on a terminal: it shows new data, handles keys, and restores the terminal however it exits.

use runtap_testkit::eventually;
use rustix::process::Signal;
use rustix::termios::tcgetattr;

use crate::cli_terminal::Terminal;
use crate::common::command;

/// Switches to the alternate screen, and back.
pub(crate) const ENTER: &str = "\x1b[?1049h";
pub(crate) const LEAVE: &str = "\x1b[?1049l";

/// Returns the rows of the screen that result from these bytes: the view draws only changes.
fn screen_rows(raw: &str) -> Vec<String> {
    let (rows, columns) = (50, 100);
    let mut screen = vec![vec![' '; columns]; rows];
    let (mut row, mut column) = (0, 0);
    let mut letters = raw.rsplit_once(ENTER).map_or("", |(_, after)| after).chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => {
                let sequence = sequence(letters.by_ref());
                if let Some(place) = sequence.strip_suffix('H') {
                    let mut place = place.split(';').map(|number| number.parse::<usize>().unwrap() - 1);
                    (row, column) = (place.next().unwrap(), place.next().unwrap());
                } else if sequence == "2J" {
                    screen = vec![vec![' '; columns]; rows];
                }
            }
            letter => {
                if let Some(cell) = screen.get_mut(row).and_then(|row| row.get_mut(column)) {
                    *cell = letter;
                }
                column += 1;
            }
        }
    }
    screen.into_iter().map(|row| row.into_iter().collect()).collect()
}

/// Returns a sequence after escape and bracket, up to its final letter.
fn sequence(letters: impl Iterator<Item = char>) -> String {
    let mut sequence = String::new();
    for letter in letters.skip(1) {
        sequence.push(letter);
        if letter.is_ascii_alphabetic() {
            break;
        }
    }
    sequence
}

/// Waits until a row of the screen contains this text.
#[track_caller]
pub(crate) fn wait_for_row(terminal: &Terminal, text: &str) {
    eventually(text, || screen_rows(&terminal.raw()).iter().any(|row| row.contains(text)).then_some(()));
}

fn live(words: &[&str]) -> Terminal {
    Terminal::start(command([&["demo", "jvm"], words].concat()), 100)
}

#[test]
fn keys_show_and_command_and_the_report_is_left() {
    let mut terminal = live(&["--duration", "60s"]);
    let before = terminal.modes.clone();
    wait_for_row(&terminal, "shop.Worker.run()");
    assert!(terminal.raw().contains(ENTER));
    assert_ne!(terminal.modes(), before);
    terminal.type_in("2");
    wait_for_row(&terminal, "shop.Store.query(String, Object[])");
    terminal.type_in("3");
    wait_for_row(&terminal, "shop.OutOfStock");
    terminal.type_in("4");
    wait_for_row(&terminal, "orders = 1 to 50");
    terminal.type_in("u6");
    wait_for_row(&terminal, "agent 0 received the command: suspend");
    terminal.type_in("u");
    wait_for_row(&terminal, "agent 0 received the command: unsuspend");
    terminal.type_in("q");
    let raw = terminal.shared();
    let keyboard = terminal.keyboard();
    let (text, code) = terminal.wait();
    // Nothing was lost: recording was not requested.
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(tcgetattr(&keyboard).map(|modes| format!("{modes:?}")).unwrap(), before);
    let raw = raw.lock().unwrap().clone();
    let (_, after) = raw.rsplit_once(LEAVE).unwrap();
    assert!(after.contains("Methods, by the time in them"), "{after}");
    assert!(after.contains("The demo program reported"), "{after}");
}

#[test]
fn signals_give_the_terminal_back() {
    for signal in [Signal::TERM, Signal::INT] {
        let terminal = live(&["--duration", "60s"]);
        let before = terminal.modes.clone();
        wait_for_row(&terminal, "shop.Worker.run()");
        terminal.signal(signal);
        let (raw, keyboard) = (terminal.shared(), terminal.keyboard());
        let (text, code) = terminal.wait();
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(tcgetattr(&keyboard).map(|modes| format!("{modes:?}")).unwrap(), before);
        assert!(raw.lock().unwrap().contains(LEAVE));
        assert!(text.contains("Methods, by the time in them"), "{text}");
    }
}

#[test]
fn plain_lines_are_available_on_request() {
    let terminal = live(&["--duration", "1s", "--plain"]);
    let raw = terminal.shared();
    let (text, code) = terminal.wait();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("agent 0 is tracing"), "{text}");
    assert!(!raw.lock().unwrap().contains(ENTER));
}
