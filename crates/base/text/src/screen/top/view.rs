//! Drawing of the screen of the hottest methods. Three lines above the rows, two below. Only visible rows are formatted.

use std::fmt::Write as _;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use runtap_model::TreeDirection;

use super::super::input::Key;
use super::super::paint::{
    BOLD, CHART, DIM, SELECTED, WARNING, at, clean, fit, highlight, join, line, sparkline,
};
use super::super::prompt::Mode;
use super::super::shown::View as ScreenView;
use super::state::{Row, Tab, TopScreen};
use crate::top::{Order, remark, samples};
use crate::units::{Count, Percent, Seconds, Things};

/// The number of lines around the rows: title, tabs, heading; message, keys.
const FRAME: u16 = 5;
/// The width from which methods have their module and a chart.
const WIDE: usize = 90;
/// The width of a percentage.
const SHARE: usize = 7;

/// Fits a terminal with 60 columns.
const HELP: [&str; 19] = [
    "↑ ↓ PgUp PgDn   another row; also j, k and the wheel",
    "1 2 3, Tab      methods, threads, calls of a method",
    "Enter →         calls of a method, methods of a thread",
    "←               from the calls back to the methods",
    "r               what calls the method, or what it calls",
    "s               sort methods by: self, total, name",
    "v               count all samples, or only running threads",
    "/               show only rows that contain a text",
    "Esc             show all rows and all threads again",
    "space           pause the screen, or continue",
    "w               write the samples to a flame graph (SVG)",
    "q, Ctrl-C       quit",
    "",
    "SELF: the share of the samples that ended in the method.",
    "TOTAL: with everything that the method calls.",
    "RUNNING: the share of a thread's samples in which it ran",
    "managed code. .NET 8 and 9 count some of it as waiting;",
    "v includes it.",
    "To select text with the mouse, hold Shift.",
];

impl ScreenView for TopScreen {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        buffer.reset();
        title(self, area, buffer);
        tabs(self, area, buffer);
        let rows = area.height.saturating_sub(FRAME);
        if self.prompt.mode == Mode::Help {
            for (y, text) in (2..=2 + rows).zip(HELP) {
                line(buffer, area, y, text, Style::new());
            }
        } else {
            content(self, area, buffer, rows);
        }
        foot(self, area, buffer);
    }

    fn key(&mut self, key: Key) -> bool {
        self.handle(key)
    }

    fn message(&mut self, message: String) {
        self.prompt.show(&message);
    }
}

fn title(screen: &TopScreen, area: Rect, buffer: &mut Buffer) {
    let mut state = if screen.is_paused { "PAUSED  ".to_owned() } else { String::new() };
    let mut name = String::new();
    if let Some(data) = &screen.data {
        name = clean(&data.trace.process().label());
        let all: u64 = data.trace.threads().map(|(_, thread)| thread.weight(screen.view)).sum();
        let covers = Seconds(data.covers);
        let _ = write!(state, "{} in {covers:.1}", Things(samples(all), "sample"));
        if data.lost > 0 {
            let _ = write!(state, ", {} lost", Count(data.lost));
        }
        if data.is_naming {
            state.push_str(", receiving names");
        }
    }
    let room = usize::from(area.width).saturating_sub(state.len() + 2);
    let text = format!("{}  {state}", fit(&name, room));
    line(buffer, area, 0, &text, if screen.is_paused { WARNING } else { Style::new() });
}

fn tabs(screen: &TopScreen, area: Rect, buffer: &mut Buffer) {
    let mut x = 0;
    for tab in Tab::ALL {
        let title = format!(" {} ", tab.title());
        at(buffer, area, x, 1, &title, if tab == screen.tab { SELECTED } else { Style::new() });
        x += u16::try_from(title.chars().count()).unwrap_or(0) + 1;
    }
    let view = format!("view {}", screen.view.name());
    let thread = screen.thread.map_or_else(String::new, |tid| format!(", thread {tid}"));
    at(buffer, area, x + 1, 1, &format!("{view}{thread}"), DIM);
}

fn content(screen: &mut TopScreen, area: Rect, buffer: &mut Buffer, rows: u16) {
    let width = usize::from(area.width);
    let chart = if width >= WIDE && screen.tab == Tab::Methods { width / 8 } else { 0 };
    let heading = match screen.tab {
        Tab::Methods => {
            let history = if chart > 0 { format!("{} ", fit("HISTORY", chart)) } else { String::new() };
            format!("{:>SHARE$} {:>SHARE$} {history}METHOD", "SELF", "TOTAL")
        }
        Tab::Threads => format!("{:>SHARE$} {:>10} THREAD", "RUNNING", "SAMPLES"),
        Tab::Tree => {
            let direction = match screen.direction {
                TreeDirection::Callees => "WHAT IT CALLS",
                TreeDirection::Callers => "WHAT CALLS IT",
            };
            format!("{:>SHARE$} {:>SHARE$} METHOD AND {direction}", "SELF", "TOTAL")
        }
    };
    line(buffer, area, 2, &heading, BOLD);
    if screen.rows.is_empty() && rows > 0 {
        line(buffer, area, 3, nothing(screen), DIM);
    }
    let visible = screen.list.visible(3, rows);
    for (y, place) in (3..).zip(visible) {
        let Some(row) = screen.rows.get(place) else { continue };
        let text = row_text(screen, row, width, chart);
        line(buffer, area, y, &text, Style::new());
        if let Some(history) = screen.history.get(&row.key).filter(|_| chart > 0) {
            let x = u16::try_from(2 * SHARE + 2).unwrap_or(0);
            at(buffer, area, x, y, &sparkline(history.iter().copied(), chart, Some((0.0, 100.0))), CHART);
        }
        if place == screen.list.cursor {
            highlight(buffer, area, y, SELECTED);
        }
    }
}

fn row_text(screen: &TopScreen, row: &Row, width: usize, chart: usize) -> String {
    let percent = |part| Percent { part, whole: row.whole };
    // The module takes the place that the method needs on a narrow screen.
    let name = if width >= WIDE { &row.text } else { &row.short };
    match screen.tab {
        Tab::Methods => {
            let gap = if chart > 0 { chart + 1 } else { 0 };
            let used = 2 * SHARE + 2 + gap;
            let name = fit(name, width.saturating_sub(used));
            format!("{:>SHARE$} {:>SHARE$} {:gap$}{name}", percent(row.own), percent(row.total), "")
        }
        Tab::Threads => {
            format!("{:>SHARE$} {:>10} {}", percent(row.own), Count(samples(row.total)).to_string(), row.text)
        }
        Tab::Tree => {
            // Deep calls keep half of the line for their name.
            let indent = (2 * row.depth).min(width.saturating_sub(2 * SHARE + 2) / 2);
            let name = fit(name, width.saturating_sub(2 * SHARE + 2 + indent));
            format!("{:>SHARE$} {:>SHARE$} {:indent$}{name}", percent(row.own), percent(row.total), "")
        }
    }
}

/// Returns why there are no rows.
fn nothing(screen: &TopScreen) -> &'static str {
    if screen.data.is_none() {
        "Waiting for the first samples"
    } else if !screen.prompt.filter.is_empty() {
        "No row contains this text"
    } else if screen.tab == Tab::Tree && screen.method.is_none() {
        "Select a method in the first tab"
    } else if screen.view == runtap_model::View::Cpu {
        "No thread ran managed code; v also counts waiting threads"
    } else {
        "No samples"
    }
}

/// Returns a remark about the samples until another row is selected, whose complete name then takes its place.
fn remark_of(screen: &TopScreen) -> Option<&'static str> {
    let data = screen.data.as_ref().filter(|_| screen.list.cursor == 0)?;
    remark(data, screen.view)
}

fn foot(screen: &TopScreen, area: Rect, buffer: &mut Buffer) {
    let Some(below) = area.height.checked_sub(2).filter(|y| *y > 2) else { return };
    let width = usize::from(area.width);
    let (text, style) = screen.prompt.line("rows").unwrap_or_else(|| match remark_of(screen) {
        Some(remark) => (format!("{remark} (v)"), WARNING),
        None => (screen.selected().map_or_else(String::new, |row| row.text.clone()), DIM),
    });
    line(buffer, area, below, &fit(&text, width), style);
    let order = match screen.order {
        Order::Own => "s sort: self",
        Order::Total => "s sort: total",
        Order::Name => "s sort: name",
    };
    let pause = if screen.is_paused { "space continue" } else { "space pause" };
    let commands: &[&str] = match screen.tab {
        Tab::Methods => &["q quit", "? help", pause, "/ filter", order, "Enter calls", "v view", "w save"],
        Tab::Threads => &["q quit", "? help", pause, "/ filter", "Enter methods of the thread", "v view"],
        Tab::Tree => &["q quit", "? help", pause, "← methods", "r reverse", "/ filter", "w save"],
    };
    let keys = screen.prompt.keys().unwrap_or(commands);
    line(buffer, area, below + 1, &join(keys, width), DIM);
}
