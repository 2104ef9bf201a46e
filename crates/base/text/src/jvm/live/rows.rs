//! The rows of each tab as text.

use crate::Clean;
use crate::units::{Count, Moment};
use runtap_bytefrog::{fitted, readable};
use runtap_model::Message;

use super::super::agents::agent_title;
use super::items::{Baseline, Fold, Numbers, Sort, TabRow};
use super::state::{Tab, ViewState};
use super::view::{count, time};

/// The minimum width of a name.
const MIN_NAME_WIDTH: usize = 12;
/// The width of the numbers in front of a method's name.
const NUMBERS_WIDTH: usize = 44;

/// Returns the titles of the columns.
pub(super) fn heading(state: &ViewState) -> String {
    match state.tab {
        Tab::Tree => format!("{:>9} {:>9} {:>11} {:>9}  call", "self", "total", "calls", "exc exits"),
        Tab::Methods => {
            let mark = |sort: Sort, title: &str| {
                if state.sort == sort { format!("{title}▾") } else { title.to_owned() }
            };
            format!(
                "{:>9} {:>9} {:>11} {:>9}  {}",
                mark(Sort::Own, "self"),
                mark(Sort::Total, "total"),
                mark(Sort::Calls, "calls"),
                mark(Sort::Thrown, "exc exits"),
                mark(Sort::Name, "method"),
            )
        }
        Tab::Exceptions => format!("{:>11}  {:<9}  exception, method:line", "times", "what"),
        Tab::Segments => format!("{:>13} {:>9} {:>11} {:>8}  marker", "from", "took", "calls", "methods"),
        Tab::Slow => format!("{:>9} {:>13} {:>7} {:>6}  call", "took", "at", "thread", "depth"),
        Tab::Agents => "agents, and what happened to them, the last first".to_owned(),
    }
}

/// Returns the text of an empty tab.
pub(super) fn nothing(state: &ViewState) -> &'static str {
    match state.tab {
        _ if state.snapshot.agents.is_empty() => "load an agent: runtap jvm attach PID --hq ADDRESS:PORT",
        Tab::Tree | Tab::Methods => "nothing was called yet",
        Tab::Exceptions => "no exceptions",
        Tab::Segments => "no markers",
        Tab::Slow => "no call took so long",
        Tab::Agents => "",
    }
}

/// Returns whether a row is a warning.
pub(super) fn is_warning(state: &ViewState, item: &TabRow) -> bool {
    let line = item.index.checked_sub(state.snapshot.agents.len());
    state.tab == Tab::Agents
        && line
            .and_then(|line| state.log.iter().rev().nth(line))
            .is_some_and(|message| matches!(message, Message::Warning(_)))
}

fn name(signature: &str, width: usize, other_columns: usize) -> String {
    fitted(&Clean(&readable(signature)).to_string(), width.saturating_sub(other_columns).max(MIN_NAME_WIDTH))
}

fn numbers(numbers: Numbers) -> String {
    let Numbers { calls, thrown, total, own } = numbers;
    format!("{} {} {} {:>9}", time(own), time(total), count(calls), Count(thrown))
}

/// Returns a row as text for a terminal of this width.
pub(super) fn row(state: &ViewState, item: &TabRow, width: usize) -> String {
    let text = match state.tab {
        Tab::Tree => tree(state, item, width),
        Tab::Agents => agent_or_line(state, item),
        _ => of_report(state, item, width),
    };
    text.unwrap_or_default()
}

fn tree(state: &ViewState, item: &TabRow, width: usize) -> Option<String> {
    let tree = state.snapshot.tree.as_deref()?;
    let row = tree.rows.get(item.index)?;
    let before = state.since.as_ref().and_then(|since: &Baseline| since.nodes.get(&item.key));
    let mark = match item.fold {
        Fold::Leaf => ' ',
        Fold::Open => '▾',
        Fold::Closed => '▸',
    };
    // Deep rows show their depth as a number instead of indentation.
    let indent = if item.depth <= 15 {
        "  ".repeat(item.depth)
    } else {
        format!("{:<30}", format!("({})", item.depth))
    };
    let open = if row.open > 0 { format!(" [{} open]", Count(row.open)) } else { String::new() };
    let other_columns = NUMBERS_WIDTH + indent.len() + open.len() + 2;
    let name = name(tree.signatures.get(row.signature)?, width, other_columns);
    let values = numbers(Numbers::of_row(tree, item.index).since(before));
    Some(format!("{values}  {indent}{mark} {name}{open}"))
}

fn of_report(state: &ViewState, item: &TabRow, width: usize) -> Option<String> {
    let report = state.snapshot.report.as_deref()?;
    Some(match state.tab {
        Tab::Methods => {
            let method = report.methods.get(item.index)?;
            let before = state.since.as_ref().and_then(|since| since.methods.get(&item.key));
            let values = numbers(Numbers::of_method(method).since(before));
            format!("{values}  {}", name(&method.signature, width, NUMBERS_WIDTH))
        }
        Tab::Exceptions => {
            let place = report.exceptions.get(item.index)?;
            let exception = Clean(&place.exception).to_string();
            let at = place.line.map_or_else(String::new, |line| format!(":{line}"));
            let method = name(&place.signature, width, 28 + exception.chars().count() + at.len());
            format!("{}  {:<9}  {exception}, {method}{at}", count(place.count), place.fate.name())
        }
        Tab::Segments => {
            let segment = report.segments.get(item.index)?;
            let shown = &segment.segment;
            let took = shown.end.map(|end| u64::try_from(end.saturating_sub(shown.start)).unwrap_or(0));
            let marker = format!("{} = {}", shown.key, shown.value);
            format!(
                "{:>13} {} {} {:>8}  {}",
                Moment(shown.start),
                took.map_or_else(|| format!("{:>9}", "open"), time),
                count(shown.entries),
                Count(segment.calls.len() as u64),
                Clean(&marker),
            )
        }
        Tab::Slow => {
            let call = report.slow_calls.get(item.index)?;
            let (took, at) = (time(call.took), Moment(call.start));
            let name = name(call.path.last().map_or("", |last| &**last), width, 41);
            format!("{took} {at:>13} {:>7} {:>6}  {name}", call.thread, call.depth)
        }
        Tab::Tree | Tab::Agents => return None,
    })
}

fn agent_or_line(state: &ViewState, item: &TabRow) -> Option<String> {
    let agents = &state.snapshot.agents;
    let Some(line) = item.index.checked_sub(agents.len()) else {
        let agent = agents.get(item.index)?;
        let shown = state.snapshot.request.agent == Some(agent.status.id);
        let mark = if shown { '*' } else { ' ' };
        let mode =
            if agent.facts.finished { "ended".to_owned() } else { agent.status.state.mode.to_string() };
        let title = agent_title(agent.status.id, &agent.facts);
        let waiting = if agent.waiting > 0 {
            format!(", {} waiting for others", Count(agent.waiting as u64))
        } else {
            String::new()
        };
        return Some(format!(
            "{mark} {} ({mode}), {} calls{waiting}",
            Clean(&title),
            Count(agent.counters.calls())
        ));
    };
    state.log.iter().rev().nth(line).map(|line| format!("  {}", Clean(line.text())))
}
