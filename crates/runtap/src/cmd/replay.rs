//! `runtap replay`: plays one side of a transcript and prints the differences. [`runtap_route::replay`] does the playing.

use std::path::Path;
use std::sync::Arc;

use runtap_os::{exit_code, in_named_thread, shell};
use runtap_route::record::{Command, RecorderSocket, Stop};
use runtap_route::replay::{
    Asking, Exchange, Played, Player, Playing, Report, Talk, TalkError, ToolConnection, Verdict, ask,
};
use runtap_text::Output;
use runtap_text::document::{DifferenceRow, ExchangeRow, ReplayDocument};
use runtap_transport::Endpoint;
use runtap_transport::naming::SocketName;
use tokio::sync::watch;

use super::interrupt::unless;
use super::record::stop_requests;
use super::target::{DotnetVerb, connect_to_one};
use crate::cli::{PlayedSide, Replay, target_of};
use crate::exit::{self, expected, usage};

pub(super) async fn run(options: Replay, output: Output) -> anyhow::Result<u8> {
    let stops = runtap_record::Stops::listen()?;
    let (file, max_size) = (options.file.clone(), options.max_size.of());
    // Opening and reading a pipe may block forever, so a separate thread reads the transcript.
    let reading = in_named_thread("transcript", move || {
        let input = runtap_convert::source::open_input(&file, max_size)?;
        let directory = file.parent().unwrap_or_else(|| Path::new(""));
        Talk::read(input, directory).map_err(|error| unreadable(&file, &error))
    });
    let talk = unless(&stops, reading).await??;
    if talk.is_cut() {
        output.warning(format_args!(
            "the last line of {} is truncated and is not replayed",
            options.file.display()
        ));
    }
    match options.part {
        PlayedSide::Runtime => play_runtime(talk, &options, stop_requests(&stops), output).await,
        PlayedSide::Client => {
            let report = unless(&stops, play_client(&talk, &options, output)).await?;
            conclude(&options, &report, exit::OK, output)
        }
    }
}

fn unreadable(file: &Path, error: &TalkError) -> anyhow::Error {
    // Streams beside the transcript are opened later, so a failure here concerns the transcript itself.
    let why = match error {
        TalkError::Stream { source, .. } => source.to_string(),
        error => error.to_string(),
    };
    expected(exit::USAGE, format!("cannot replay {}: {why}", file.display()), None)
}

async fn play_client(talk: &Talk, options: &Replay, output: Output) -> anyhow::Result<Report> {
    if options.listen.is_some() || options.dial.is_some() || !options.command.is_empty() {
        return Err(usage("--listen, --dial and a command apply only to --as runtime"));
    }
    let no_port = "with --as client, the runtime must listen: --diagnostic-port PATH,connect";
    let target = connect_to_one(&target_of(&options.target), no_port, DotnetVerb::REPLAY, output).await?;
    let asking = Asking { is_fast: options.fast, changes_target: options.allow_changes };
    Ok(ask(talk, &target.client, asking, &verdict_printer(output)).await)
}

async fn play_runtime(
    talk: Talk,
    options: &Replay,
    stops: watch::Receiver<Stop>,
    output: Output,
) -> anyhow::Result<u8> {
    if options.target.any() {
        return Err(usage(
            "a target applies only to --as client; with --as runtime, tools connect to runtap",
        ));
    }
    if options.allow_changes {
        return Err(usage("--allow-changes is for --as client"));
    }
    let (place, heard) = match &options.dial {
        Some(port) if talk.connects_to_tool() => (None, ToolConnection::Connect(Endpoint::local(port))),
        Some(_) => return Err(usage("no runtime connected to a tool when this was recorded; use --listen")),
        None if talk.connects_to_tool() => {
            return Err(usage(
                "a runtime connected to a tool when this was recorded; specify the tool's port with --dial",
            ));
        }
        None => {
            let name = talk.process().map(|(pid, start)| SocketName::runtime(pid, start));
            let (place, listener) = RecorderSocket::listen(options.listen.as_deref(), name)?;
            (Some(place), ToolConnection::Listen(listener))
        }
    };
    let command = (!options.command.is_empty()).then(|| match &place {
        Some(place) => Command::connecting_to(place, &options.command, None, output.json()),
        None => Command::new(options.command.clone(), output.json()),
    });
    if let (Some(place), None) = (&place, &command) {
        let path = shell::word(place.path());
        output.note(format_args!(
            "Connect tools to the recorded runtime with: --diagnostic-port {path},connect"
        ));
    }
    let player = Arc::new(Player::new(talk, options.fast, verdict_printer(output)));
    let status = Playing { player: Arc::clone(&player), heard, command }.run(stops).await?;
    conclude(
        options,
        &player.report(),
        status.map_or(exit::OK, |status| exit_code(status).unwrap_or(exit::FAILED)),
        output,
    )
}

/// Returns a callback that prints the verdict of each exchange as a detail.
fn verdict_printer(output: Output) -> Played {
    Arc::new(move |exchange: &Exchange| {
        let name = exchange.name.unwrap_or("a request");
        let conn = exchange.conn.as_deref().unwrap_or("not recorded");
        output.detail(format_args!("{conn}: {name}: {}", exchange.verdict.name()));
    })
}

fn conclude(options: &Replay, report: &Report, code: u8, output: Output) -> anyhow::Result<u8> {
    let part = if options.part == PlayedSide::Runtime { "runtime" } else { "client" };
    let exchanges = report.exchanges.iter().map(row).collect();
    let document = ReplayDocument::new(options.file.display().to_string(), part, report.is_same(), exchanges);
    output.show(&document)?;
    let refused = report.exchanges.iter().filter(|exchange| exchange.verdict == Verdict::NotSent).count();
    if refused > 0 {
        output.warning(format_args!("requests that were not sent: {refused}"));
    }
    Ok(if code == exit::OK && !report.is_same() { exit::FAILED } else { code })
}

fn row(exchange: &Exchange) -> ExchangeRow {
    let difference = |it: &runtap_route::replay::Difference| DifferenceRow {
        field: it.field.clone(),
        recorded: it.recorded.clone(),
        now: it.now.clone(),
        identity: it.is_identity,
    };
    ExchangeRow {
        conn: exchange.conn.clone(),
        line: exchange.line,
        id: exchange.id.map(|id| format!("{id:#06x}")),
        name: exchange.name,
        verdict: exchange.verdict.name(),
        differences: exchange.differences.iter().map(difference).collect(),
        offset: exchange.offset,
        reason: exchange.reason.clone(),
        bytes: exchange.bytes,
        recorded_bytes: exchange.recorded_bytes,
    }
}
