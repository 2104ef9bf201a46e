//! Drawing of the state.
//!
//! Owns: [`draw`]. Three lines above the rows, two below. Only visible rows are formatted, even if a report has ten thousand
//! methods.

use crate::Clean;
use crate::units::{Count, Things};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::rows;
use super::state::{Tab, Typing, ViewState};

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
const WARNING: Style = Style::new().fg(Color::Yellow);

/// The number of lines around the rows: tabs, agent, heading; message, keys.
const FRAME: u16 = 5;

/// Fits a terminal with 60 columns.
const HELP: [&str; 19] = [
    "1 to 6, Tab    another tab",
    "↑ ↓ PgUp PgDn  another row; Home, End: the first, the last",
    "→ Enter        open a row of the tree",
    "←              close it, or go to its caller",
    "e, c           open one level below a row; close everything",
    "s              sort methods by the next column",
    "/, n, N        look for a text; the next, the one before",
    "a, A           the next agent, the one before",
    "t, T           the next thread, the one before; all",
    "r, Esc         count from now on; from the beginning",
    "b              start the program",
    "p              pause in the next traced call, or resume",
    "u              suspend recording, or record again",
    "x x            stop the agent; the program continues",
    "q, Ctrl-C      stop all agents, end with the report",
    "",
    "self: time in a method; total: with all that it calls;",
    "exc exits: calls that an exception ended;",
    "open: calls that have not ended, with their time so far",
];

/// Draws the state into the entire area.
pub(super) fn draw(state: &mut ViewState, area: Rect, buffer: &mut Buffer) {
    buffer.reset();
    let rows = area.height.saturating_sub(FRAME);
    state.page = usize::from(rows);
    state.top = state.top.min(state.cursor).max((state.cursor + 1).saturating_sub(state.page));
    tabs(state, area, buffer);
    line(buffer, area, 1, &agent(state, usize::from(area.width)), Style::new());
    if state.typing == Typing::Help {
        for (y, text) in (3..area.height).zip(HELP) {
            line(buffer, area, y, text, Style::new());
        }
    } else {
        content(state, area, buffer, rows);
    }
    foot(state, area, buffer);
}

/// Writes a line, truncated to the area. Text of the program has been sanitized before.
fn line(buffer: &mut Buffer, area: Rect, y: u16, text: &str, style: Style) {
    if y < area.height {
        buffer.set_stringn(area.x, area.y + y, text, usize::from(area.width), style);
    }
}

fn tabs(state: &ViewState, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let titles = |others: bool| {
        Tab::ALL.into_iter().zip(1..).map(move |(tab, number)| {
            let is_long = others || tab == state.tab;
            let title = if is_long { format!(" {number} {} ", tab.title()) } else { format!(" {number} ") };
            (tab, title)
        })
    };
    // If the titles do not all fit, only the selected tab has its title.
    let fits = titles(true).map(|(_, title)| title.chars().count()).sum::<usize>() <= usize::from(area.width);
    let mut x = area.x;
    for (tab, title) in titles(fits) {
        let left = usize::from(area.right().saturating_sub(x));
        let style = if tab == state.tab { SELECTED } else { Style::new() };
        (x, _) = buffer.set_stringn(x, area.y, title, left, style);
    }
}

/// Returns the line about the displayed agent, with as many numbers as fit.
fn agent(state: &ViewState, width: usize) -> String {
    let Some(agent) = state.agent() else { return "no agent has connected yet".to_owned() };
    let counters = &agent.counters;
    let process = agent.facts.process.as_ref().map_or_else(
        || agent.facts.peer.to_string(),
        |process| format!("{} ({})", Clean(&process.main.to_string()), process.pid),
    );
    let mode = match agent.facts.last_heartbeat.and_then(|(mode, _)| mode.mode()) {
        _ if agent.facts.finished => "ended".to_owned(),
        _ if agent.facts.silent => "silent".to_owned(),
        Some(mode) => mode.to_string(),
        None => agent.status.state.mode.to_string(),
    };
    let lost = counters.missing.saturating_add(counters.dropped);
    let lost = if lost > 0 { format!(", {} missing", Count(lost)) } else { String::new() };
    let thread = state.thread().and_then(|at| {
        let thread = state.snapshot.report.as_ref()?.threads.get(at)?;
        let name = thread.name.as_deref().map_or_else(String::new, |name| format!(" {}", Clean(name)));
        Some(format!(", thread {}{name}", thread.id))
    });
    let since = if state.since.is_some() { ", since reset" } else { "" };
    let mut shown = format!(
        "agent {} of {}{}{since}: {process}, {mode}",
        agent.status.id.0,
        state.snapshot.agents.len(),
        // The selected thread is at the start, where it is never truncated.
        thread.unwrap_or_default(),
    );
    let more = [
        format!("; {} calls", Count(counters.calls())),
        format!(", {}/s", Count(agent.rate)),
        format!(", {}", Things(counters.exceptions, "exception")),
        lost,
    ];
    for piece in more {
        if shown.chars().count() + piece.chars().count() <= width {
            shown.push_str(&piece);
        }
    }
    shown
}

fn content(state: &ViewState, area: Rect, buffer: &mut Buffer, rows: u16) {
    line(buffer, area, 2, &rows::heading(state), BOLD);
    if state.items.is_empty() && rows > 0 {
        line(buffer, area, 3, rows::nothing(state), DIM);
    }
    let seen = state.items.iter().enumerate().skip(state.top);
    for (y, (place, item)) in (3..3 + rows).zip(seen) {
        let text = rows::row(state, item, usize::from(area.width));
        let style = match (place == state.cursor, rows::is_warning(state, item)) {
            (true, _) => SELECTED,
            (false, true) => WARNING,
            (false, false) => Style::new(),
        };
        // Pad the text so that the entire line is highlighted.
        let padded = format!("{text:<width$}", width = usize::from(area.width));
        line(buffer, area, y, &padded, style);
    }
}

fn foot(state: &ViewState, area: Rect, buffer: &mut Buffer) {
    let Some(below) = area.height.checked_sub(2).filter(|y| *y > 2) else { return };
    match &state.typing {
        Typing::Search(text) => line(buffer, area, below, &format!("/{}▏", Clean(text)), BOLD),
        _ => line(buffer, area, below, &Clean(&state.message).to_string(), WARNING),
    }
    let keys = match &state.typing {
        Typing::Search(_) => "Enter looks for it, Esc does not".to_owned(),
        Typing::Help => "any key goes back".to_owned(),
        Typing::Keys => hints(state, usize::from(area.width)),
    };
    line(buffer, area, below + 1, &keys, DIM);
}

/// Returns the hints about a tab's keys: the first ones that fit as a whole.
fn hints(state: &ViewState, width: usize) -> String {
    let first: &[&str] =
        if state.over { &["all agents have ended: q quits", "? help"] } else { &["? help", "q quit"] };
    let more: &[&str] = match state.tab {
        Tab::Tree => &["←→ open", "/ find", "t thread", "p pause", "u suspend", "e all below", "r reset"],
        Tab::Methods => &["s sort", "/ find", "r reset", "p pause", "u suspend", "x stop"],
        _ => &["/ find", "a agent", "b start", "p pause", "u suspend", "x stop"],
    };
    let mut shown = String::new();
    for hint in first.iter().chain(more) {
        let gap = if shown.is_empty() { "" } else { "  " };
        if shown.chars().count() + gap.len() + hint.chars().count() <= width {
            shown.push_str(gap);
            shown.push_str(hint);
        }
    }
    shown
}

/// Formats a time, nine columns wide.
pub(super) fn time(nanoseconds: u64) -> String {
    format!("{:>9}", crate::jvm::time(nanoseconds))
}

/// Formats a number, eleven columns wide.
pub(super) fn count(number: u64) -> String {
    format!("{:>11}", Count(number))
}
