//! `runtap tail`: the events of a running program as lines, while they happen.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::thread;
use std::time::Duration;

use runtap_diag::providers::{Request, Selection};
use runtap_diag::{Chunks, Client, Control, Error, SessionConfig};
use runtap_ingest::Filter;
use runtap_nettrace::InOrder;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::events::choice;
use super::failure::explain;
use super::interrupt::unless;
use super::target::choose;
use super::trace::signals::{Stops, Wish};
use crate::cli::{LineFormat, Tail};
use crate::exit::{self, usage};
use crate::lines::{Chooser, Lines, Style};
use crate::output::Output;
use crate::units::Count;

/// The runtime writes what it has gathered ten times a second. When nothing came for longer, nothing older will.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long the runtime may take to end a session that nobody reads any more.
const GOODBYE: Duration = Duration::from_secs(2);

pub(crate) async fn run(options: &Tail, output: Output) -> anyhow::Result<u8> {
    let choice = choice(&options.provider, options.filter.as_deref())?;
    if choice.filter.as_ref().is_some_and(Filter::needs_frames) {
        return Err(usage("a live session has no names for stacks: the runtime tells them at its end"));
    }
    let request = resolve(options)?;
    for note in &request.notes {
        output.note(note);
    }
    let stops = Stops::listen()?;
    let chosen = unless(&stops, choose(&options.target, output)).await?;
    let mut config =
        SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
    config.buffer_mb = options.buffersize;
    config.rundown_keyword = 0;
    // Nothing here shows a stack.
    config.stackwalk = false;
    let session = tokio::select! {
        biased;
        () = stops.stopping() => return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED)),
        session = chosen.client.start_session(&config) => session.map_err(explain)?,
    };
    tokio::spawn(let_go(chosen.client.clone()));
    let (control, chunks) = session.split();
    let terminal = io::stdout().is_terminal();
    let style = match options.format {
        Some(LineFormat::Json) => Style::Json,
        Some(LineFormat::Csv) => Style::Csv,
        Some(LineFormat::Text) => Style::Text,
        None if terminal => Style::Text,
        None => Style::Json,
    };
    if output.is_seen() {
        output.note("waiting for events; Ctrl-C stops");
    }
    let (tell, printed) = oneshot::channel();
    let chooser = Chooser::new(choice, None);
    // A thread of its own, so that a pipe that nobody reads does not keep signals from being heard.
    thread::Builder::new().name("tail".into()).spawn(move || {
        // Nobody listens any more when a stuck pipe was given up.
        let _ = tell.send(print(chunks, chooser, style, terminal));
    })?;
    let Some(printed) = wait(printed, control, &stops, options.duration).await else {
        return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED));
    };
    judge(printed, output)
}

fn resolve(options: &Tail) -> anyhow::Result<Request> {
    if options.providers.is_empty() && options.profile.is_empty() && options.clrevents.is_none() {
        return Err(usage(
            "which events? For example --clrevents gc+exception, or --providers Microsoft-Extensions-Logging:4:4",
        ));
    }
    Request::resolve(&Selection {
        providers: &options.providers,
        profiles: &options.profile,
        clr_events: options.clrevents.as_deref(),
        clr_event_level: options.clreventlevel.as_deref(),
        event_filters: &[],
    })
    .map_err(|error| usage(error.to_string()))
}

/// Lets the runtime go on, if it is suspended at its start.
async fn let_go(client: Client) {
    // Whoever is not suspended says so, and .NET Core 3 can't be.
    let _ = client.resume().await;
}

/// What was printed.
#[derive(Debug)]
struct Printed {
    lost: u64,
    /// Whether the stream has an end.
    whole: bool,
    write_error: Option<io::Error>,
    read_error: Option<Error>,
}

/// Prints events as they come.
fn print(mut chunks: Chunks, chooser: Chooser, style: Style, terminal: bool) -> Printed {
    let mut reader = InOrder::new();
    let out = BufWriter::with_capacity(1 << 16, io::stdout());
    let mut lines = Lines::new(chooser, style, false, terminal, out);
    let (mut write_error, mut read_error) = (None, None);
    loop {
        match chunks.blocking_next_within(PATIENCE) {
            Some(Ok(Some(chunk))) => reader.feed(&chunk),
            Some(Ok(None)) => break,
            Some(Err(error)) => {
                read_error = Some(error);
                break;
            }
            None => reader.hold_nothing_back(),
        }
        if let Err(error) = print_items(&mut reader, &mut lines) {
            write_error = Some(error);
            break;
        }
    }
    reader.finish();
    if write_error.is_none() {
        write_error = print_items(&mut reader, &mut lines).err();
    }
    Printed { lost: reader.lost(), whole: reader.partial().is_none(), write_error, read_error }
}

/// Prints what can be decoded by now. The reader goes on behind a damaged block, and remembers the damage.
fn print_items<W: Write>(reader: &mut InOrder, lines: &mut Lines<W>) -> io::Result<()> {
    loop {
        match reader.next() {
            Ok(Some(item)) => lines.item(&item)?,
            Err(_) => {}
            Ok(None) => return lines.flush(),
        }
    }
}

/// Waits for the end: of the program, of the time, of the user's patience. `None` for the last.
async fn wait(
    mut printed: oneshot::Receiver<Printed>,
    control: Control,
    stops: &Stops,
    duration: Option<Duration>,
) -> Option<Printed> {
    let mut ear = stops.ear();
    let is_over = async {
        tokio::select! {
            () = stops.stopping() => {}
            () = after(duration) => {}
        }
    };
    tokio::select! {
        done = &mut printed => {
            // Nobody reads our output, or the program has ended. In the first case the session is of no use to anyone.
            let _ = timeout(GOODBYE, control.stop()).await;
            return done.ok();
        }
        () = is_over => {}
    }
    let stop = control.stop();
    let rest = async {
        if stop.await.is_err() {
            // The connection is closed with it, and so the stream ends.
            drop(control);
        }
        printed.await.ok()
    };
    let given_up = async { while ear.next().await != Wish::GiveUp {} };
    tokio::select! {
        done = rest => done,
        () = given_up => None,
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => std::future::pending().await,
    }
}

fn judge(printed: Printed, output: Output) -> anyhow::Result<u8> {
    if let Some(error) = printed.write_error {
        return Err(error.into());
    }
    if printed.lost > 0 {
        output.warning(format_args!(
            "the target dropped {} events, because its buffer was full",
            Count(printed.lost)
        ));
    }
    if let Some(error) = printed.read_error {
        output.warning(format_args!("the connection broke: {error}"));
        return Ok(exit::PARTIAL);
    }
    if !printed.whole {
        output.warning("the target ended, or closed the connection, in mid-stream");
        return Ok(exit::PARTIAL);
    }
    Ok(exit::OK)
}
