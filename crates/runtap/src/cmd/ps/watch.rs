//! `ps --watch`: who starts, ends and changes, until it is told to stop.
//!
//! On a terminal the table is shown anew; in a pipe, and as JSON Lines, only what changed is told: first everybody who
//! runs already. A runtime that answers and runs is not asked again and again: it serves one client at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use runtap_record::in_a_thread;
use runtap_text::ProcessTable;
use runtap_transport::discover::Process;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use super::{Found, NOTHING, OfOthers, Row, Search, rows, sort};
use crate::output::Output;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// What tells one process from another that had the same id before: its start.
type Id = (u32, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum Change {
    #[serde(rename = "process-start")]
    Start,
    #[serde(rename = "process-change")]
    Changed,
    #[serde(rename = "process-end")]
    End,
}

#[derive(Serialize)]
struct Line<'a> {
    r#type: Change,
    #[serde(flatten)]
    row: &'a Row,
}

pub(super) async fn run(search: &Search, output: Output) -> anyhow::Result<u8> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut known: BTreeMap<Id, Row> = BTreeMap::new();
    let mut first = true;
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
        }
        let look = search.look();
        let looking = async {
            let Found { processes: found, of_others } = in_a_thread(look).await?;
            let asked: Vec<Process> =
                found.iter().filter(|process| is_open(&known, process)).cloned().collect();
            anyhow::Ok((rows(asked).await, found, of_others))
        };
        // How long it takes to look is for the processes to choose.
        let (mut told, found, of_others) = tokio::select! {
            looked = looking => looked?,
            _ = interrupted.recv() => break,
            _ = terminated.recv() => break,
        };
        told.retain(|row| search.is_meant(row));
        let changes = take(&mut known, &found, told);
        if changes.is_empty() && !first {
            continue;
        }
        if first && !output.json() {
            if !output.is_seen() {
                output.text(ProcessTable::of_unknown(search.options(output)).heading(" "))?;
            }
            if let Some(n) = of_others {
                output.note(OfOthers(n));
            }
        }
        first = false;
        tell(&known, &changes, search, output)?;
    }
    Ok(crate::exit::OK)
}

fn tell(
    known: &BTreeMap<Id, Row>,
    changes: &[(Change, Row)],
    search: &Search,
    output: Output,
) -> anyhow::Result<()> {
    if output.is_seen() {
        let mut rows: Vec<Row> = known.values().cloned().collect();
        sort(&mut rows);
        let table = ProcessTable::of(&rows, search.options(output));
        let lines = rows.iter().fold(table.heading(""), |text, row| text + &table.line("", row));
        let text = if rows.is_empty() { NOTHING } else { &lines };
        return output.screen(format_args!("{text}\nCtrl-C ends\n"));
    }
    let table = ProcessTable::of_unknown(search.options(output));
    for (change, row) in changes {
        if output.json() {
            output.document_line(&Line { r#type: *change, row })?;
        } else {
            let sign = match change {
                Change::Start => "+",
                Change::Changed => "*",
                Change::End => "-",
            };
            output.text(table.line(sign, row))?;
        }
    }
    Ok(())
}

fn id(process: &Process) -> Id {
    (process.pid, process.start_time)
}

/// Whether something of a process may still change: it is new, does not answer, or waits at its start.
fn is_open(known: &BTreeMap<Id, Row>, process: &Process) -> bool {
    known.get(&id(process)).is_none_or(|row| !row.reachable || row.suspended == Some(true))
}

/// Takes over what was found: what changed since the last time.
fn take(known: &mut BTreeMap<Id, Row>, found: &[Process], told: Vec<Row>) -> Vec<(Change, Row)> {
    let mut changes = Vec::new();
    let living: BTreeMap<u32, Id> = found.iter().map(|process| (process.pid, id(process))).collect();
    let ended: Vec<Id> =
        known.keys().filter(|(pid, start)| living.get(pid) != Some(&(*pid, *start))).copied().collect();
    for id in ended {
        changes.extend(known.remove(&id).map(|row| (Change::End, row)));
    }
    for row in told {
        let Some(id) = living.get(&row.pid) else { continue };
        match known.insert(*id, row.clone()) {
            None => changes.push((Change::Start, row)),
            Some(before) if before != row => changes.push((Change::Changed, row)),
            Some(_) => {}
        }
    }
    changes
}
