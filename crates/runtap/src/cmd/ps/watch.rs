//! `ps --watch`: who starts, ends and changes, until it is told to stop.
//!
//! On a terminal the table is shown anew; in a pipe, and as JSON Lines, only what changed is told: first everybody who
//! runs already.

use std::time::Duration;

use runtap_os::in_a_thread;
use runtap_record::Stops;
use runtap_target::{Change, Listing, ProcessStatus, Watch};
use runtap_text::{ChangeRow, ProcessRow, ProcessTable, TextOptions};
use tokio::time::{MissedTickBehavior, interval};

use super::{NOTHING, is_meant, of_others, row, text_options};
use crate::cli::Ps;
use crate::output::Output;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch::default();
    let (mut first, all_users) = (true, options.all_users);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = stops.stopping() => break,
        }
        let looking = async {
            let listing = in_a_thread(move || Listing::now(all_users)).await?;
            anyhow::Ok((ProcessStatus::all(watch.to_query(&listing.processes)).await, listing))
        };
        // How long it takes to look is for the processes to choose.
        let (mut told, Listing { processes, of_others: others }) = tokio::select! {
            looked = looking => looked?,
            () = stops.stopping() => break,
        };
        told.retain(|seen| is_meant(options, seen));
        let changes = watch.update(&processes, told);
        if changes.is_empty() && !first {
            continue;
        }
        if first && !output.json() {
            if !output.is_seen() {
                output.text(ProcessTable::of_unknown(text_options(options, output)).heading(" "))?;
            }
            if others > 0 {
                output.note(of_others(others));
            }
        }
        first = false;
        tell(&watch, &changes, text_options(options, output), output)?;
    }
    Ok(crate::exit::OK)
}

fn tell(
    watch: &Watch,
    changes: &[(Change, ProcessStatus)],
    options: TextOptions<'_>,
    output: Output,
) -> anyhow::Result<()> {
    if output.is_seen() {
        let rows: Vec<ProcessRow> = watch.known().iter().map(row).collect();
        let table = ProcessTable::of(&rows, options);
        let lines = rows.iter().fold(table.heading(""), |text, row| text + &table.line("", row));
        let text = if rows.is_empty() { NOTHING } else { &lines };
        return output.screen(format_args!("{text}\nCtrl-C ends\n"));
    }
    let table = ProcessTable::of_unknown(options);
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
