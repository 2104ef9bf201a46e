//! `runtap counters`: shows or saves the counters of running programs.

use std::io;

use runtap_record::counters::{CounterFile, CounterMonitor, CounterRequest, CounterSignal, messages};
use runtap_record::{Command, RecordingOutcome, Stops};
use runtap_sinks::counters::{CounterFormat, CounterWriter};
use runtap_target::TargetSpec;
use runtap_text::{CounterDisplay, Output, close_screen};

use super::failure::recording_error;
use super::interrupt::interrupt;
use super::target::target_spec;
use super::trace::{child_io, guard_arguments, launch, record_managed};
use crate::cli::{CollectCounters, CounterOptions, Counters, CountersVerb, MonitorCounters};
use crate::exit::{self, usage};

pub(super) async fn run(verb: Counters, output: Output) -> anyhow::Result<u8> {
    let (options, deltas, file) = match verb.verb {
        Some(CountersVerb::Collect(collect)) => {
            let CollectCounters { options, output, to } = *collect;
            let to = to.or_else(|| CounterFormat::of_path(output.as_ref()?)).unwrap_or(CounterFormat::Csv);
            (options, false, Some((to, output)))
        }
        monitor => {
            let MonitorCounters { options, deltas, .. } = match monitor {
                Some(CountersVerb::Monitor(monitor)) => *monitor,
                _ => verb.monitor,
            };
            (options, deltas, output.json().then(|| (CounterFormat::Jsonl, Some("-".into()))))
        }
    };
    let CounterOptions { target, all, wait, children, show_child_io, command: words, .. } = options;
    if wait && !matches!(target_spec(&target)?, TargetSpec::Name { .. }) {
        return Err(usage(
            "--wait needs the name of a program, for example: runtap counters -n MyService --wait",
        ));
    }
    let request = CounterRequest {
        interval: options.refresh_interval,
        max_series: options.max_series.get(),
        max_histograms: options.max_histograms.get(),
        ..CounterRequest::parse(&options.counters).map_err(|error| usage(format!("--counters: {error}")))?
    };
    let several = all || children || wait;
    let open = |(format, path): (CounterFormat, Option<_>)| {
        let writer = CounterWriter::new(format, request.interval.as_secs_f64()).with_process_ids(several);
        CounterFile::open(writer, path.as_deref())
    };
    let file = file.map(open).transpose()?;
    let path = file.as_ref().and_then(CounterFile::path);
    let io = child_io(show_child_io, path.is_none());
    if let Some(path) = path {
        output.note(format_args!("Writing counters to {}; Ctrl-C stops", path.display()));
    }
    // The output of a command would be written over the screen.
    let has_screen = file.is_none() && !show_child_io && output.can_show_screen();
    let output = if has_screen { output.beside_screen() } else { output };
    let mut display = CounterDisplay::new(deltas, several, output);
    let monitor = CounterMonitor::new(request, file, move |signal| show(&signal, &mut display, output));
    let mut spec = monitor.specification();
    (spec.duration, spec.children, spec.guard) = (options.duration, children, Some(guard_arguments()));
    let conclude = Box::new(move |outcome, stops: &Stops| conclude(outcome, &monitor, stops, output));
    if words.is_empty() {
        return record_managed(spec, &target, (all, wait), conclude, output).await;
    }
    launch(spec, Command { words, io, kill: false }, conclude, output).await
}

fn show(signal: &CounterSignal<'_>, display: &mut CounterDisplay, output: Output) -> io::Result<()> {
    match signal {
        CounterSignal::Started { pid, name } => display.start(*pid, name, interrupt),
        CounterSignal::Notice { pid, notice } => {
            output.messages([messages::notice(*pid, notice)]);
            Ok(())
        }
        CounterSignal::Reading(row) => display.reading(row),
        CounterSignal::Pause(board) => display.board(board),
        _ => Ok(()),
    }
}

fn conclude(
    outcome: RecordingOutcome,
    monitor: &CounterMonitor,
    stops: &Stops,
    output: Output,
) -> anyhow::Result<u8> {
    close_screen();
    if outcome.is_unread {
        return Ok(exit::OK);
    }
    monitor.finish()?;
    let (messages, is_partial) = messages::outcome(&outcome, monitor);
    output.messages(messages);
    let has_result = outcome.made.iter().any(|files| !files.parts.is_empty());
    if !has_result && outcome.failed.is_empty() {
        // Stopped before anything was read.
        return Ok(stops.exit_code().unwrap_or(exit::OK));
    }
    let mut code = if is_partial { exit::PARTIAL } else { exit::OK };
    for (index, (label, error)) in outcome.failed.into_iter().enumerate() {
        let error = recording_error(error);
        if !has_result && index == 0 {
            return Err(error);
        }
        code = exit::PARTIAL;
        output.warning(format_args!("{label}: {error:#}"));
    }
    Ok(code)
}
