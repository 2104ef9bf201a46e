//! Drawing of the screen of counters. Two lines above the rows, two below. Only visible rows are formatted.

use std::fmt::{self, Write as _};

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use super::super::input::Key;
use super::super::paint::{
    BOLD, CHART, DIM, GROUP, SELECTED, WARNING, at, fit, highlight, join, line, sparkline,
};
use super::super::prompt::Mode;
use super::super::shown::View;
use super::series::Line;
use super::state::{CounterScreen, Item};
use crate::counters::{blank, number};
use crate::units::Count;

/// The number of lines around the rows: title, heading; message, keys.
const FRAME: u16 = 4;
/// The width from which units have a column.
const WIDE: usize = 90;

/// Fits a terminal with 60 columns.
const HELP: [&str; 17] = [
    "↑ ↓ PgUp PgDn   another row; also j, k and the wheel",
    "Home End        the first row, the last row",
    "/               show only series that contain a text",
    "Esc             show all series again",
    "s               sort by the next of: name, value, rate",
    "Enter ← →       collapse or expand the group of a row",
    "c               collapse or expand all groups",
    "space           pause the screen, or continue",
    "d               show the changes since the last reading",
    "q, Ctrl-C       quit",
    "",
    "VALUE: the current value, or the total of what is counted.",
    "PER SECOND: the increase in the latest interval.",
    "HISTORY: the rates of what has one, else the values,",
    "from the lowest to the highest one that is shown.",
    "q0.5, q0.95 …: quantiles of the values in an interval.",
    "To select text with the mouse, hold Shift.",
];

/// A number of series. The plural of the noun is irregular.
struct SeriesCount(usize);

impl fmt::Display for SeriesCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} series", Count(self.0 as u64))
    }
}

/// The columns of the table.
struct Columns {
    name: usize,
    value: usize,
    unit: Option<usize>,
    delta: Option<usize>,
    rate: usize,
    history: usize,
}

impl Columns {
    fn of(width: usize, deltas: bool) -> Self {
        let is_wide = width >= WIDE;
        let (value, unit, rate) = if is_wide { (15, Some(12), 12) } else { (11, None, 10) };
        let delta = deltas.then_some(rate);
        let history = if is_wide { width / 5 } else { 8 };
        let others = value
            + unit.map_or(0, |unit| unit + 1)
            + delta.map_or(0, |delta| delta + 1)
            + rate
            + 1
            + history
            + 2;
        Self { name: width.saturating_sub(others), value, unit, delta, rate, history }
    }
}

impl View for CounterScreen {
    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        buffer.reset();
        title(self, area, buffer);
        let rows = area.height.saturating_sub(FRAME);
        if self.prompt.mode == Mode::Help {
            for (y, text) in (1..=rows + 1).zip(HELP) {
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

fn title(screen: &CounterScreen, area: Rect, buffer: &mut Buffer) {
    let processes: Vec<String> =
        screen.names.iter().map(|(process, name)| format!("{name} ({process})")).collect();
    let state = if screen.is_paused { "PAUSED  ".to_owned() } else { String::new() };
    let state = format!("{state}{}", SeriesCount(screen.table.len()));
    let width = usize::from(area.width);
    let room = width.saturating_sub(state.len() + 2);
    let text = format!("{}  {state}", fit(&format!("counters of {}", processes.join(", ")), room));
    line(buffer, area, 0, &text, if screen.is_paused { WARNING } else { Style::new() });
}

fn content(screen: &mut CounterScreen, area: Rect, buffer: &mut Buffer, rows: u16) {
    let width = usize::from(area.width);
    let columns = Columns::of(width, screen.deltas);
    let Columns { name, value, unit, delta, rate, history } = columns;
    let mut heading = format!("{} {:>value$}", fit("COUNTER", name), "VALUE");
    if let Some(unit) = unit {
        let _ = write!(heading, " {:unit$}", "UNIT");
    }
    if let Some(delta) = delta {
        let _ = write!(heading, " {:>delta$}", "CHANGE");
    }
    let _ = write!(heading, " {:>rate$} {}", "PER SECOND", fit("HISTORY", history));
    line(buffer, area, 1, &heading, BOLD);
    if screen.items.is_empty() && rows > 0 {
        let why = if screen.prompt.filter.is_empty() {
            "Waiting for the first values"
        } else {
            "No series contains this text"
        };
        line(buffer, area, 2, why, DIM);
    }
    let several = screen.table.has_several_processes();
    let visible = screen.list.visible(2, rows);
    for (y, place) in (2..).zip(visible) {
        match screen.items.get(place) {
            Some(Item::Group(group)) => line(buffer, area, y, &group_text(screen, *group, several), GROUP),
            Some(Item::Line(id, number)) => {
                let known = screen.table.get(*id).and_then(|series| series.lines.get(*number));
                if let Some(known) = known {
                    series(known, &columns, area, buffer, y);
                }
            }
            None => {}
        }
        if place == screen.list.cursor {
            highlight(buffer, area, y, SELECTED);
        }
    }
}

fn group_text(screen: &CounterScreen, group: usize, several: bool) -> String {
    let is_collapsed = screen.collapsed.contains(&group);
    let Some(group) = screen.table.groups.get(group) else { return String::new() };
    let process = match screen.names.get(&group.process) {
        Some(name) if several => format!("{name} ({}): ", group.process),
        _ => String::new(),
    };
    let count = if is_collapsed { format!("  {}", SeriesCount(group.count)) } else { String::new() };
    format!("{} {process}{}{count}", if is_collapsed { '▸' } else { '▾' }, group.heading)
}

fn series(series: &Line, columns: &Columns, area: Rect, buffer: &mut Buffer, y: u16) {
    let Columns { name, value, unit, delta, rate, history } = *columns;
    let label = match unit {
        None if !series.unit.is_empty() => format!("  {} ({})", series.name, series.unit),
        _ => format!("  {}", series.name),
    };
    let mut text = format!("{} {}", fit(&label, name), right(&number(series.value), value));
    if let Some(unit) = unit {
        text.push(' ');
        text.push_str(&fit(&series.unit, unit));
    }
    if let Some(delta) = delta {
        text.push(' ');
        text.push_str(&right(&blank(series.delta), delta));
    }
    text.push(' ');
    text.push_str(&right(&blank(series.rate), rate));
    line(buffer, area, y, &text, Style::new());
    let chart = sparkline(series.history.iter().copied(), history, None);
    let x = usize::from(area.width).saturating_sub(history);
    at(buffer, area, u16::try_from(x).unwrap_or(u16::MAX), y, &chart, CHART);
}

/// Aligns a number at the right. Too long numbers are truncated.
fn right(text: &str, columns: usize) -> String {
    if text.len() <= columns { format!("{text:>columns$}") } else { fit(text, columns) }
}

fn foot(screen: &CounterScreen, area: Rect, buffer: &mut Buffer) {
    let Some(below) = area.height.checked_sub(2).filter(|y| *y > 1) else { return };
    let width = usize::from(area.width);
    let (text, style) = screen.prompt.line("series").unwrap_or_else(|| (selected(screen), DIM));
    line(buffer, area, below, &fit(&text, width), style);
    let sort = format!("s sort: {}", screen.sort.name());
    let pause = if screen.is_paused { "space continue" } else { "space pause" };
    let commands = ["q quit", "? help", pause, "/ filter", &sort, "c collapse all", "d changes", "←→ group"];
    let keys = screen.prompt.keys().unwrap_or(&commands);
    line(buffer, area, below + 1, &join(keys, width), DIM);
}

/// Returns the complete name of the selected series.
fn selected(screen: &CounterScreen) -> String {
    let Some(Item::Line(id, place)) = screen.selected() else { return String::new() };
    let Some(series) = screen.table.get(id) else { return String::new() };
    let Some(selected) = series.lines.get(place) else { return String::new() };
    let finite = selected.history.iter().copied().filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(value), high.max(value)));
    let per_second = if selected.rate.is_some() { " per second" } else { "" };
    let range = if low <= high {
        format!("  (lowest {}, highest {}{per_second})", number(Some(low.into())), number(Some(high.into())))
    } else {
        String::new()
    };
    format!("{}{range}", selected.name)
}
