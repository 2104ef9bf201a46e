//! `runtap trace --user-events`: makes the target write its events to tracepoints of the kernel while runtap runs. There is no
//! event stream, and runtap writes no file.

use std::io;

use runtap_diag::user_events::open_data_file;
use runtap_diag::{Provider, UserEventsConfig};
use runtap_record::providers::messages::tracepoints_error;
use runtap_record::providers::{Request, user_events_config};
use runtap_record::{Stops, UserEvent, UserEvents, UserEventsOutcome, messages};
use runtap_text::Output;
use runtap_text::document::TracepointsDocument;

use super::spec::rundown_keyword;
use crate::cli::Trace;
use crate::cmd::failure::explain;
use crate::cmd::interrupt::unless;
use crate::cmd::target::{DotnetVerb, choose, reject_stuck};
use crate::exit::{self, expected, usage};
use runtap_text::units::Clock;

pub(super) async fn run(options: &Trace, request: &Request, output: Output) -> anyhow::Result<u8> {
    let recording = &options.recording;
    let specs = &options.user_events.user_events;
    let providers: Vec<Provider> = request.providers.iter().map(|asked| asked.provider.clone()).collect();
    let config = |pid| -> anyhow::Result<UserEventsConfig> {
        let mut config =
            user_events_config(&providers, specs, pid).map_err(|error| usage(tracepoints_error(&error)))?;
        config.rundown_keyword = rundown_keyword(recording, request);
        Ok(config)
    };
    // Check the options and the kernel before any process is contacted.
    config(0)?;
    let descriptor = open_data_file().map_err(|error| no_user_events(&error))?;
    let stops = Stops::listen()?;
    let chosen = unless(&stops, choose(&options.target, DotnetVerb::TRACE, output)).await?;
    if recording.resume_runtime {
        reject_stuck(std::slice::from_ref(&chosen), &stops).await?;
    }
    let (pid, _) = unless(&stops, async { chosen.pids().await.map_err(explain) }).await?;
    let config = config(u64::from(pid))?;
    let tracepoints: Vec<String> =
        config.providers.iter().flat_map(|entry| entry.tracepoints.names()).map(str::to_owned).collect();

    let show = |event: UserEvent<'_>| {
        output.messages([messages::user_event(&event, pid, &tracepoints)]);
    };
    let (duration, resume) = (recording.duration, recording.resume_runtime);
    let recorder = UserEvents { config, descriptor, duration, resume };
    let recorded = recorder.record(&chosen.client, &stops, &show).await.map_err(explain)?;
    let Some(UserEventsOutcome { duration, is_partial }) = recorded else {
        return Ok(stops.exit_code().unwrap_or(exit::OK));
    };
    if output.json() {
        output.document(&TracepointsDocument::new(pid, tracepoints, duration, "CollectTracing5"))?;
    } else {
        output.note(format_args!("the session was stopped after {}", Clock(duration)));
    }
    Ok(if is_partial { exit::PARTIAL } else { exit::OK })
}

/// Creates the error for a kernel without usable `user_events`. No target has been contacted yet.
fn no_user_events(error: &io::Error) -> anyhow::Error {
    let (message, hint) = messages::user_events_unavailable(error);
    expected(exit::FAILED, message, hint.to_owned())
}
