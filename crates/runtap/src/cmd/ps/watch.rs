//! `ps --watch`: shows processes that start, exit or change, until interrupted.
//!
//! On a terminal, the table is redrawn. Otherwise each change is one line of text or JSON, starting with the processes
//! that already run.

use std::time::Duration;

use runtap_os::in_a_thread;
use runtap_record::Stops;
use runtap_target::messages::{NONE_FOUND, skipped_users};
use runtap_target::{Change, Listing, ProcessStatus, Watch};
use runtap_text::{ChangeRow, Output, ProcessRow, ProcessTable};
use tokio::time::{MissedTickBehavior, interval};

use super::{is_selected, row, text_options};
use crate::cli::Ps;

/// The interval at which processes are listed.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let mut tick = interval(REFRESH_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch::default();
    let (mut first, all_users) = (true, options.all_users);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = stops.stopping() => break,
        }
        let query = async {
            let listing = in_a_thread(move || Listing::now(all_users)).await?;
            anyhow::Ok((ProcessStatus::all(watch.to_query(&listing.processes)).await, listing))
        };
        // Processes can delay their answers, so the query must be interruptible.
        let (mut statuses, Listing { processes, of_others: others }) = tokio::select! {
            result = query => result?,
            () = stops.stopping() => break,
        };
        statuses.retain(|seen| is_selected(options, seen));
        let changes = watch.update(&processes, statuses);
        if changes.is_empty() && !first {
            continue;
        }
        if first && !output.json() {
            if !output.is_seen() {
                output.text(
                    ProcessTable::of_unknown(options.wide, text_options(options, output)).heading(" "),
                )?;
            }
            if others > 0 {
                output.note(skipped_users(others));
            }
        }
        first = false;
        show_changes(&watch, &changes, options, output)?;
    }
    Ok(crate::exit::OK)
}

fn show_changes(
    watch: &Watch,
    changes: &[(Change, ProcessStatus)],
    options: &Ps,
    output: Output,
) -> anyhow::Result<()> {
    let text_options = text_options(options, output);
    if output.is_seen() {
        let rows: Vec<ProcessRow> = watch.known().iter().map(row).collect();
        let table = ProcessTable::of(&rows, options.wide, text_options);
        let lines = rows.iter().fold(table.heading(""), |text, row| text + &table.line("", row));
        let text = if rows.is_empty() { NONE_FOUND } else { lines.trim_end_matches('\n') };
        return Ok(output.screen(format_args!("{text}\n\nCtrl-C stops\n"))?);
    }
    let table = ProcessTable::of_unknown(options.wide, text_options);
    for (change, seen) in changes {
        let (r#type, sign) = match change {
            Change::Started => ("process-start", "+"),
            Change::Changed => ("process-change", "*"),
            Change::Exited => ("process-end", "-"),
        };
        let row = row(seen);
        if output.json() {
            output.document_line(&ChangeRow { r#type, row: &row })?;
        } else {
            output.text(table.line(sign, &row))?;
        }
    }
    Ok(())
}
