//! `runtap dump`: turns options into a specification, and events and results into output and an exit code.
//! [`runtap_record::dump`] writes the dump.

mod summary;

use std::cell::Cell;
use std::path::Path;

use jiff::Zoned;
use runtap_discover::System;
use runtap_os::in_a_thread;
use runtap_record::dump::{Destination, DumpOutcome, Error, Event, Prepared, Refusal, Specification};
use runtap_record::{Stops, messages};
use runtap_target::{ResolvedTarget, fixes};
use runtap_text::Output;

use super::failure::explain;
use super::interrupt::unless;
use super::target::{DotnetVerb, choose_all, each, reject_remote};
use crate::cli::Dump;
use crate::exit::{self, expected, usage};
use runtap_text::units::Bytes;

pub(super) async fn run(options: &Dump, output: Output) -> anyhow::Result<u8> {
    let stops = Stops::listen()?;
    if options.output.as_deref() == Some(Path::new("-")) {
        return Err(usage(
            "the target writes the dump itself and cannot write to runtap's stdout; specify a file or a directory with -o",
        ));
    }
    // Open the files before any process is contacted.
    let prepared = Cell::new(Some(prepare(options, None)?));
    let all = unless(&stops, choose_all(&options.target, options.all.all, DotnetVerb::DUMP, output)).await?;
    reject_remote(&all, "the target writes a dump to its own disk, where runtap verifies the dump")?;
    let several = all.len() > 1;
    let first = all.first().and_then(|chosen| Some(chosen.process.as_ref()?.pid));
    let dump = async |chosen: ResolvedTarget, output: Output| {
        // The first dump gets the given name; the names of further dumps contain the process id.
        let pid =
            chosen.process.as_ref().map(|process| process.pid).filter(|pid| several && Some(*pid) != first);
        let prepared = match (pid, prepared.take()) {
            (None, Some(prepared)) => prepared,
            (pid, _) => prepare(options, pid)?,
        };
        dump(&chosen, options, prepared, &stops, output).await
    };
    each(all, output, dump).await
}

/// The prefix and suffix around the date in the default file name, as in dotnet-dump.
const DEFAULT_NAME: (&str, &str) = if cfg!(windows) { ("dump_", ".dmp") } else { ("core_", "") };

/// Opens the output files: the file of `-o`, or a file with a default name in the directory of `-o` or the current one. A
/// process id becomes part of the name.
fn prepare(options: &Dump, pid_in_name: Option<u32>) -> anyhow::Result<Prepared> {
    let base = format!("{}{}{}", DEFAULT_NAME.0, Zoned::now().strftime("%Y%m%d_%H%M%S"), DEFAULT_NAME.1);
    let wanted = Destination::at(options.output.as_deref(), &base, pid_in_name);
    let mut spec = Specification::new(options.r#type, wanted);
    (spec.logging, spec.crash_report) = (options.diag, options.crashreport);
    Prepared::open(spec).map_err(explain_dump_error)
}

async fn dump(
    chosen: &ResolvedTarget,
    options: &Dump,
    prepared: Prepared,
    stops: &Stops,
    output: Output,
) -> anyhow::Result<u8> {
    let kind = options.r#type.name();
    let show = |event: Event<'_>| show(&event, kind, output);
    match prepared.write(chosen, stops.stopping(), &show).await {
        Ok(DumpOutcome::Written(dump)) => summary::conclude(kind, *dump, output),
        Ok(DumpOutcome::Interrupted { pid, still_writing_to }) => {
            if let Some(theirs) = still_writing_to {
                output.warning(format_args!(
                    "the dump continues without runtap: process {pid} is suspended until its createdump has written all of {}",
                    theirs.display()
                ));
            }
            Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED))
        }
        Err(error @ Error::Interrupted) => {
            Err(expected(stops.exit_code().unwrap_or(exit::INTERRUPTED), error.to_string(), None))
        }
        Err(error) => Err(explain_rejection(chosen, error).await),
    }
}

/// Explains an error. If the runtime rejected the dump without a reason, the process is examined for one.
async fn explain_rejection(chosen: &ResolvedTarget, error: Error) -> anyhow::Error {
    let pid = chosen.process.as_ref().map(|process| process.pid);
    let (Error::Runtime(cause @ runtap_diag::Error::Refused { .. }), Some(pid)) = (&error, pid) else {
        return explain_dump_error(error);
    };
    if Refusal::of(cause).is_some() || cause.is_unknown_command() {
        return explain_dump_error(error);
    }
    match in_a_thread(move || runtap_target::doctor::no_dumps(&System::current(), pid)).await {
        Ok(Some(finding)) => {
            let hint = format!("process {pid} {}; fix: {}", finding.detail, fixes::text(&finding.fixes));
            expected(exit::REFUSED, error.to_string(), hint)
        }
        Ok(None) | Err(_) => explain_dump_error(error),
    }
}

fn show(event: &Event<'_>, kind: &str, output: Output) {
    match event {
        Event::Progress { elapsed, written } if output.progress() => {
            output.status(format_args!("{} s: {} written", elapsed.as_secs(), Bytes(*written)));
        }
        Event::Over => output.end_status(),
        event => output.messages(messages::dump_event(event, kind)),
    }
}

/// Adds the exit code and hint to an error, and formats its sizes with units.
fn explain_dump_error(error: Error) -> anyhow::Error {
    let (text, hint) = (error.to_string(), messages::dump_hint(&error).map(str::to_owned));
    match error {
        Error::Unsupported | Error::NoCrashReports | Error::NoDisk(_) | Error::Taken(_) => usage(text),
        Error::NoName(_) | Error::NotOrdinary(_) | Error::NotReplaceable(_) | Error::NoText(_) => usage(text),
        Error::Unseen { .. } => expected(exit::NO_TARGET, text, hint),
        Error::NoPlace { .. } | Error::NoCore { .. } => expected(exit::FAILED, text, hint),
        Error::NoSpace { folder, free, needed, with_copy } => {
            let why = if with_copy { " with the copy of a file that belongs to another user" } else { "" };
            let (folder, free, needed) = (folder.display(), Bytes(free), Bytes(needed));
            let text = format!("{folder} has {free} left, but the dump needs about {needed}{why}");
            expected(exit::FAILED, text, hint)
        }
        Error::LongReport { theirs, bytes, most } => {
            let (theirs, bytes, most) = (theirs.display(), Bytes(bytes), Bytes(most));
            anyhow::anyhow!("the crash report {theirs} has {bytes}, more than {most}")
        }
        Error::Runtime(error) if hint.is_none() => explain(error),
        Error::Runtime(_) => expected(exit::REFUSED, text, hint),
        // Converted as they are: `exit::code_of` recognizes these types.
        Error::Output(error) => error.into(),
        Error::Io(error) => error.into(),
        error => error.into(),
    }
}
