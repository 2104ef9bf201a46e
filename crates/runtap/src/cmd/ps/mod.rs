//! `runtap ps`: lists processes in a table. `watch` also prints changes.

mod remote;
mod watch;

use runtap_discover::{ReasonCode, System};
use runtap_target::messages::{NONE_FOUND, skipped_users};
use runtap_target::{Listing, ProcessStatus, SpecError};
use runtap_text::document::ProcessesDocument;
use runtap_text::{Output, ProcessList, ProcessRow, TextOptions};
use runtap_transport::remote::RemoteAddress;

use crate::cli::Ps;
use crate::cmd::target::spec_error;
use crate::exit::{self, expected};

/// Converts a process to a row of the table.
fn row(seen: &ProcessStatus) -> ProcessRow {
    let usage = seen.usage();
    let cpu_percent = usage.and_then(|usage| usage.cpu_percent());
    ProcessRow {
        pid: seen.pid,
        kind: seen.kind.name(),
        name: seen.name.clone(),
        command_line: seen.command_line.clone(),
        runtime_version: seen.runtime_version.clone(),
        arch: seen.arch.clone(),
        user: seen.user.clone(),
        container: seen.container.clone(),
        suspended: seen.suspended,
        reachable: seen.reachable,
        reason: seen.reason.map(ReasonCode::name),
        socket: seen.socket.clone(),
        parent_pid: usage.and_then(|usage| usage.parent_pid),
        // Rounded to what the clock of processor time measures.
        cpu_percent: cpu_percent.map(|percent| (percent * 10.0).round() / 10.0),
        rss_bytes: usage.map(|usage| usage.rss_bytes),
        uptime_ns: usage.and_then(|usage| usage.uptime.as_nanos().try_into().ok()),
    }
}

pub(super) async fn run(options: &Ps, output: Output) -> anyhow::Result<u8> {
    if options.name.as_deref().is_some_and(RemoteAddress::is_meant) {
        return remote::run(options, output).await;
    }
    if let Some(address) = options.name.as_deref().filter(|name| RemoteAddress::is_other(name)) {
        return Err(spec_error(&SpecError::OtherAddress(address.to_owned())));
    }
    if options.watch {
        return watch::run(options, output).await;
    }
    let Listing { processes, of_others: others } = Listing::now(options.all_users);
    let mut seen = ProcessStatus::all(processes).await;
    seen.retain(|seen| is_selected(options, seen));
    if let (true, Some(wanted)) = (seen.is_empty(), &options.name) {
        let hint =
            if others > 0 { skipped_users(others) } else { "'runtap ps' lists all processes.".to_owned() };
        return Err(expected(exit::NO_TARGET, format!("no .NET or Java process is named '{wanted}'"), hint));
    }
    let processes: Vec<ProcessRow> = seen.iter().map(row).collect();
    if output.json() {
        output.document(&ProcessesDocument::new(processes, others))?;
        return Ok(exit::OK);
    }
    if processes.is_empty() {
        output.text(format_args!("{NONE_FOUND}\n"))?;
    } else {
        let list = ProcessList { rows: &processes, wide: options.wide };
        output.print(&list, &text_options(options, output))?;
    }
    if others > 0 {
        output.note(skipped_users(others));
    }
    if let Some(blind_spot) = System::current().blind_spot() {
        output.note(blind_spot);
    }
    Ok(exit::OK)
}

fn is_selected(options: &Ps, seen: &ProcessStatus) -> bool {
    options.name.as_ref().is_none_or(|wanted| seen.has_name(wanted))
}

/// Returns the text options with the width of the table.
fn text_options(options: &Ps, output: Output) -> TextOptions<'static> {
    TextOptions { width: output.columns().filter(|_| !options.wide), ..output.options() }
}
