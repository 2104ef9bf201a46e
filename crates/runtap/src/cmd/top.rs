//! `runtap top`: shows the hottest methods and threads of a running .NET program.

use runtap_record::{
    LiveProfileEnd, LiveProfileRequest, LiveProfileUpdate, Stops, live_profile, save_profile,
};
use runtap_text::{Output, TopData, TopDisplay, advice, close_screen};

use super::failure::recording_error;
use super::interrupt::{interrupt, unless};
use super::target::{DotnetVerb, choose, reject_stuck};
use crate::cli::Top;
use crate::exit;
use runtap_text::units::Things;

pub(crate) async fn run(options: Top, output: Output) -> anyhow::Result<u8> {
    let Top { target, refresh_interval: interval, window, view, inclusive, duration, number, .. } = options;
    let stops = Stops::listen()?;
    let chosen = unless(&stops, choose(&target, DotnetVerb::TOP, output)).await?;
    reject_stuck(std::slice::from_ref(&chosen), &stops).await?;
    let mut display = TopDisplay::new(view, inclusive, number, output);
    display.start(interrupt, save_profile)?;
    let receive = move |update: LiveProfileUpdate| {
        let LiveProfileUpdate { trace, time, covers, lost, left_out, is_naming, has_exact_states, .. } =
            update;
        display.update(TopData { trace, time, covers, lost, left_out, is_naming, has_exact_states })
    };
    let end = live_profile(chosen, LiveProfileRequest { interval, window, duration }, &stops, receive).await;
    close_screen();
    let Some(end) = end.map_err(recording_error)? else {
        return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED));
    };
    conclude(end, output)
}

fn conclude(end: LiveProfileEnd, output: Output) -> anyhow::Result<u8> {
    let LiveProfileEnd { updates, lost, is_whole, read_error, names_error, write_error } = end;
    if let Some(error) = write_error {
        return Err(error.into());
    }
    if let Some(error) = names_error {
        output.warning(format_args!("Some names of methods are missing: {error}"));
    }
    if lost > 0 {
        output.warning(format_args!(
            "the target dropped at least {}, {}",
            Things(lost, "event"),
            advice::FULL_OR_TOO_LARGE
        ));
    }
    if updates == 0 {
        output.note("No samples were received");
    }
    if let Some(error) = read_error {
        output.warning(format_args!("the connection broke: {error}"));
        return Ok(exit::PARTIAL);
    }
    if !is_whole {
        output.warning("the process exited, or closed the connection, before the stream was complete");
        return Ok(exit::PARTIAL);
    }
    Ok(exit::OK)
}
