//! The full-screen interfaces of `counters monitor` and `top` on a terminal, with a real program: they show its data, handle keys,
//! and restore the terminal however they exit.

use runtap_testkit::{RealRuntime, Skip, eventually};
use rustix::process::Signal;
use rustix::termios::{Winsize, tcsetwinsize};

use crate::cli_jvm_live::{ENTER, LEAVE, wait_for_row};
use crate::cli_terminal::Terminal;
use crate::common::{Target, command};

on_each_runtime!(counters_are_shown_until_a_key_quits, methods_are_shown_until_a_key_quits);
on_the_newest_runtime!(
    ctrl_c_and_signals_restore_the_terminal,
    a_smaller_terminal_is_drawn_again,
    a_dumb_terminal_has_lines,
    a_program_that_exits_ends_the_screen,
);

fn meters(runtime: &RealRuntime, arguments: &[&str]) -> Result<Target, Skip> {
    Ok(Target::start(runtime.program("meters", arguments)?))
}

const ROUNDS: [&str; 3] = ["100000", "200", "5"];

fn counters(target: &Target, more: &[&str]) -> Terminal {
    let words = ["counters", &target.p(), "--counters", "Demo.Shop,System.Runtime"];
    Terminal::start(command([&words[..], more].concat()), 100)
}

/// Waits for the exit, and checks that the terminal is as it was before.
#[track_caller]
fn expect_restored(terminal: Terminal, code: i32) -> String {
    let (before, raw, keyboard) = (terminal.modes.clone(), terminal.shared(), terminal.keyboard());
    let (text, exit) = terminal.wait();
    assert_eq!(exit, Some(code), "{text}");
    let raw = raw.lock().unwrap();
    let (_, after) = raw.rsplit_once(LEAVE).unwrap_or_else(|| panic!("the screen is not left: {raw:?}"));
    assert!(raw.contains(ENTER) && !after.contains(ENTER));
    assert_eq!(format!("{:?}", rustix::termios::tcgetattr(&keyboard).unwrap()), before);
    anstream::adapter::strip_str(after).to_string()
}

fn counters_are_shown_until_a_key_quits(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, &ROUNDS)?;
    let mut terminal = counters(&target, &[]);
    wait_for_row(&terminal, "orders{shop=a}");
    wait_for_row(&terminal, "latency{route=/a} q0.5");
    wait_for_row(&terminal, "▾ Demo.Shop 1.2.3");
    terminal.type_in("/shop=b\r");
    wait_for_row(&terminal, "Only series with 'shop=b'");
    terminal.type_in("q");
    assert_eq!(expect_restored(terminal, 0), "");
    target.still_answers();
    Ok(())
}

fn methods_are_shown_until_a_key_quits(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &["600"])?);
    let mut terminal = Terminal::start(command(["top", &target.p(), "--view", "thread-time"]), 100);
    wait_for_row(&terminal, "spin!Burn.Cycles");
    terminal.type_in("2");
    wait_for_row(&terminal, "spin-A");
    terminal.type_in("1/a.round\r\r");
    wait_for_row(&terminal, "METHOD AND WHAT IT CALLS");
    wait_for_row(&terminal, "  spin!A.Heavy");
    terminal.type_in("q");
    assert_eq!(expect_restored(terminal, 0), "");
    target.still_answers();
    Ok(())
}

fn ctrl_c_and_signals_restore_the_terminal(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, &ROUNDS)?;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let terminal = counters(&target, &["--counters", "No.Such"]);
        wait_for_row(&terminal, "orders{shop=a}");
        terminal.signal(signal);
        // What was noted meanwhile is printed at the end.
        let after = expect_restored(terminal, 0);
        assert!(after.contains("no values of No.Such were received"), "{after}");
    }
    let terminal = Terminal::start(command(["top", &target.p()]), 60);
    wait_for_row(&terminal, "SELF   TOTAL METHOD");
    terminal.signal(Signal::TERM);
    expect_restored(terminal, 0);
    Ok(())
}

fn a_smaller_terminal_is_drawn_again(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, &ROUNDS)?;
    let mut terminal = counters(&target, &[]);
    // A column that only wide terminals have.
    wait_for_row(&terminal, "VALUE UNIT");
    tcsetwinsize(terminal.keyboard(), Winsize { ws_row: 20, ws_col: 60, ws_xpixel: 0, ws_ypixel: 0 })
        .unwrap();
    eventually("the narrow table", || terminal.raw().contains("VALUE PER SECOND HISTORY").then_some(()));
    terminal.type_in("q");
    expect_restored(terminal, 0);
    Ok(())
}

fn a_dumb_terminal_has_lines(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = meters(runtime, &ROUNDS)?;
    for words in
        [&["counters", "--counters", "Demo.Shop", "--duration", "2s"][..], &["top", "--duration", "2s"]]
    {
        let mut shown = command(words.iter().copied().chain([&*target.p()]));
        shown.env("TERM", "dumb");
        let (text, code) = Terminal::start_as_it_is(shown, 100).wait();
        assert_eq!(code, Some(0), "{text}");
        assert!(!text.contains("\u{1b}[") && text.lines().count() > 2, "{text}");
    }
    Ok(())
}

fn a_program_that_exits_ends_the_screen(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = meters(runtime, &["20", "100", "5", "--stdin"])?;
    let terminal = counters(&target, &[]);
    wait_for_row(&terminal, "▾ System.Runtime");
    target.program.begin();
    expect_restored(terminal, 0);
    Ok(())
}
