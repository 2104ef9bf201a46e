//! `runtap tail`: prints the events of running programs as lines, as they happen.

use std::io::{self, IsTerminal};

use runtap_clr::Filter;
use runtap_clr::lines::{Chooser, Lines, Style};
use runtap_diag::SessionConfig;
use runtap_os::output::shared_stdout;
use runtap_record::providers::{Request, messages};
use runtap_record::{Drained, LiveEnd, Stops, tap_all, write_live};
use runtap_text::{Output, advice};
use tokio::task::JoinSet;

use super::events::{choice, warn_of_unmet};
use super::failure::{print_process_error, recording_error};
use super::interrupt::unless;
use super::target::{DotnetVerb, choose_all, reject_stuck};
use crate::cli::Tail;
use crate::exit::{self, usage};
use runtap_text::units::Things;

pub(crate) async fn run(options: &Tail, output: Output) -> anyhow::Result<u8> {
    let choice = choice(&options.provider, options.filter.as_deref())?;
    if choice.filter.as_ref().is_some_and(Filter::needs_frames) {
        return Err(usage(
            "a live session has no names for stacks, because the runtime sends them when the session stops",
        ));
    }
    let request = resolve(options)?;
    for note in &request.notes {
        output.note(messages::note(note));
    }
    let stops = Stops::listen()?;
    let chosen = unless(&stops, choose_all(&options.target, options.all, DotnetVerb::TAIL, output)).await?;
    // The session of a stuck process would fail with a misleading error about a lost connection.
    reject_stuck(&chosen, &stops).await?;
    let several = chosen.len() > 1;
    let mut result = TailResult { several, code: exit::OK };
    let mut taps = Vec::with_capacity(chosen.len());
    for (pid, tap) in tap_all(chosen, &session_config(options, &request), &stops).await {
        match tap {
            Ok(tap) => taps.extend(tap.map(|tap| (pid, tap))),
            // A single process fails the run; one of several is reported, and the others continue.
            Err(error) => result.add_failure(pid, recording_error(error), output)?,
        }
    }
    if taps.is_empty() {
        return Ok(if stops.is_stopping() {
            stops.exit_code().unwrap_or(exit::INTERRUPTED)
        } else {
            result.code
        });
    }
    let terminal = io::stdout().is_terminal();
    let style = options.format.unwrap_or(if terminal { Style::Text } else { Style::Json });
    if output.is_seen() {
        output.note("Waiting for events; Ctrl-C stops");
    }
    let mut waiting = JoinSet::new();
    for (number, (pid, tap)) in taps.into_iter().enumerate() {
        let mut lines =
            Lines::new(Chooser::new(choice.clone(), None).of_process(pid), style, false, shared_stdout());
        if several {
            lines.name_the_process();
            // The table has one heading before all rows.
            if number == 0 { lines.flush()? } else { lines.without_head() }
        }
        let (stops, duration) = (stops.clone(), options.duration);
        waiting.spawn(async move {
            let drained = tap.drain(duration, &stops, move |chunks| write_live(chunks, lines)).await;
            // If stdout fails for one process, it fails for all: stop them.
            if !matches!(&drained, Ok(Some(drained)) if drained.made.write_error.is_none()) {
                stops.stop();
            }
            (pid, drained)
        });
    }
    while let Some(ended) = waiting.join_next().await {
        let (pid, drained) = ended?;
        let Some(Drained { made: printed, after, overtaken }) = drained? else {
            return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED));
        };
        let silence = printed.received.silence(&request.providers, after, overtaken);
        let silences = silence.iter().chain(printed.received.errors());
        let notes: Vec<_> = silences.map(|it| runtap_record::messages::silence(it, advice::NAMES)).collect();
        // Providers without events are reported by `silence`.
        if printed.matched.events > 0 {
            warn_of_unmet(&printed.matched, options.filter.is_some(), &result.subject(pid), output);
        }
        result.add_end(pid, printed, output)?;
        for note in notes {
            output.note(format_args!("{}{note}", result.subject(pid)));
        }
    }
    Ok(result.code)
}

fn session_config(options: &Tail, request: &Request) -> SessionConfig {
    let mut config =
        SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
    config.buffer_mb = options.buffersize;
    config.rundown_keyword = 0;
    // Stacks are never shown.
    config.stackwalk = false;
    config
}

fn resolve(options: &Tail) -> anyhow::Result<Request> {
    if options.events.is_empty() {
        return Err(usage(
            "No events selected. Use --clrevents, --providers or --profile (for example --clrevents gc+exception).",
        ));
    }
    Request::resolve(&options.events.selection()).map_err(|error| usage(messages::request_error(&error)))
}

/// Collects the result of all processes.
struct TailResult {
    several: bool,
    /// The exit code: that of the first process that failed.
    code: u8,
}

impl TailResult {
    /// Returns the prefix `process 42: ` if there are several processes, otherwise an empty string.
    fn subject(&self, pid: Option<u32>) -> String {
        pid.filter(|_| self.several).map_or_else(String::new, |pid| format!("process {pid}: "))
    }

    fn add_code(&mut self, code: u8) {
        if self.code == exit::OK {
            self.code = code;
        }
    }

    fn add_failure(&mut self, pid: Option<u32>, error: anyhow::Error, output: Output) -> anyhow::Result<()> {
        if !self.several {
            return Err(error);
        }
        self.add_code(print_process_error(pid, &error, output));
        Ok(())
    }

    fn add_end(&mut self, pid: Option<u32>, printed: LiveEnd, output: Output) -> anyhow::Result<()> {
        let subject = self.subject(pid);
        if let Some(error) = printed.write_error {
            return Err(error.into());
        }
        if printed.lost > 0 {
            output.warning(format_args!(
                "{subject}the target dropped at least {}, {}",
                Things(printed.lost, "event"),
                advice::FULL_OR_TOO_LARGE
            ));
        }
        if let Some(error) = printed.read_error {
            output.warning(format_args!("{subject}the connection broke: {error}"));
            self.add_code(exit::PARTIAL);
        } else if !printed.is_whole {
            output.warning(format_args!(
                "{subject}the process exited, or closed the connection, before the stream was complete"
            ));
            self.add_code(exit::PARTIAL);
        }
        Ok(())
    }
}
