//! `runtap tail`: the events of a running program as lines, while they happen.

use std::future;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::thread;
use std::time::Duration;

use runtap_clr::Filter;
use runtap_diag::{Client, Control, Session, SessionConfig};
use runtap_providers::Request;
use runtap_record::{LiveEnd, Neighbours, StopRequest, Stops, write_live};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::asked;
use super::events::choice;
use super::failure::{about, explain};
use super::interrupt::unless;
use super::silence;
use super::target::{Chosen, choose_all, refuse_stopped};
use super::trace::refuse_forsaken;
use crate::cli::Tail;
use crate::exit::{self, usage};
use crate::output::{Output, stdout_in_turns};
use crate::units::Things;
use runtap_clr::lines::{Chooser, Lines, Style};

/// How long the runtime may take to end a session that nobody reads any more.
const GOODBYE: Duration = Duration::from_secs(2);
/// Between two looks at the sessions of others.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn run(options: &Tail, output: Output) -> anyhow::Result<u8> {
    let choice = choice(&options.provider, options.filter.as_deref())?;
    if choice.filter.as_ref().is_some_and(Filter::needs_frames) {
        return Err(usage("a live session has no names for stacks: the runtime tells them at its end"));
    }
    let request = resolve(options)?;
    for note in &request.notes {
        output.note(asked::note(note));
    }
    let stops = Stops::listen()?;
    let chosen = unless(&stops, choose_all(&options.target, options.all, output)).await?;
    // Its session would end with the runtime's silence, and say that the connection was lost.
    refuse_forsaken(&chosen, &stops).await?;
    let several = chosen.len() > 1;
    let mut end = End { several, code: exit::OK };
    let tapped = begin_all(chosen, session_config(options, &request), &stops, &mut end, output).await?;
    if tapped.is_empty() {
        return Ok(if stops.is_stopping() {
            stops.exit_code().unwrap_or(exit::INTERRUPTED)
        } else {
            end.code
        });
    }
    let terminal = io::stdout().is_terminal();
    let style = options.format.unwrap_or(if terminal { Style::Text } else { Style::Json });
    if output.is_seen() {
        output.note("waiting for events; Ctrl-C stops");
    }
    let mut waiting = JoinSet::new();
    for (number, Tapped { chosen, pid, session, since, mut neighbours }) in tapped.into_iter().enumerate() {
        let mut lines =
            Lines::new(Chooser::new(choice.clone(), None).of_process(pid), style, false, stdout_in_turns());
        if several {
            lines.name_the_process();
            // A table has one head, in front of all rows.
            if number == 0 { lines.flush()? } else { lines.without_head() }
        }
        let (control, chunks) = session.split();
        let (tell, printed) = oneshot::channel();
        // A thread of its own, so that a pipe that nobody reads does not keep signals from being heard.
        thread::Builder::new().name("tail".into()).spawn(move || {
            // Nobody listens any more when a stuck pipe was given up.
            let _ = tell.send(write_live(chunks, lines));
        })?;
        let (stops, duration) = (stops.clone(), options.duration);
        waiting.spawn(async move {
            let printed = wait(printed, control, &stops, duration, &mut neighbours).await;
            let (printed, end) = printed.unzip();
            if printed.as_ref().is_none_or(|printed| printed.write_error.is_some()) {
                // There is one reader for all.
                stops.stop();
            }
            // Until here: what has dialled in needs its port.
            drop(chosen);
            let after = end.map(|end| end.saturating_duration_since(since)).unwrap_or_default();
            (pid, printed, after, neighbours.has_one_ended())
        });
    }
    while let Some(ended) = waiting.join_next().await {
        let (pid, printed, after, overtaken) = ended?;
        let Some(printed) = printed else { return Ok(stops.exit_code().unwrap_or(exit::INTERRUPTED)) };
        let silence = printed.heard.silence(&request.providers, after, overtaken);
        end.judge(pid, printed, output)?;
        if let Some(silence) = &silence {
            output.note(format_args!("{}{}", end.subject(pid), silence::note(silence)));
        }
    }
    Ok(end.code)
}

fn session_config(options: &Tail, request: &Request) -> SessionConfig {
    let mut config =
        SessionConfig::new(request.providers.iter().map(|asked| asked.provider.clone()).collect());
    config.buffer_mb = options.buffersize;
    config.rundown_keyword = 0;
    // Nothing here shows a stack.
    config.stackwalk = false;
    config
}

/// A process that tells its events.
struct Tapped {
    chosen: Chosen,
    /// Its id for us, where it is known.
    pid: Option<u32>,
    session: Session,
    /// When the session had begun.
    since: Instant,
    /// The sessions of others beside it.
    neighbours: Neighbours,
}

/// Starts a session in each, all at the same time. None in those that the end was asked for before.
///
/// # Errors
/// The one process refused. One of several that does so is named, and the others have their turn.
async fn begin_all(
    chosen: Vec<Chosen>,
    config: SessionConfig,
    stops: &Stops,
    end: &mut End,
    output: Output,
) -> anyhow::Result<Vec<Tapped>> {
    let mut starting = Vec::with_capacity(chosen.len());
    for chosen in chosen {
        let (config, stops) = (config.clone(), stops.clone());
        let pid = chosen.process.as_ref().map(|process| process.pid);
        if let Err(error) = pid.map_or(Ok(()), refuse_stopped) {
            end.failed(pid, error, output)?;
            continue;
        }
        starting.push(tokio::spawn(async move {
            let neighbours = Neighbours::before(pid);
            let session = tokio::select! {
                biased;
                () = stops.stopping() => None,
                session = chosen.client.start_session(&config) => Some(session),
            };
            (chosen, pid, session, Instant::now(), neighbours)
        }));
    }
    let mut tapped = Vec::with_capacity(starting.len());
    for task in starting {
        let (chosen, pid, session, since, neighbours) = task.await?;
        match session {
            None => {}
            Some(Ok(session)) => {
                tokio::spawn(let_go(chosen.client.clone()));
                tapped.push(Tapped { chosen, pid, session, since, neighbours });
            }
            Some(Err(error)) => end.failed(pid, explain(error), output)?,
        }
    }
    Ok(tapped)
}

fn resolve(options: &Tail) -> anyhow::Result<Request> {
    if options.asked.is_empty() {
        return Err(usage(
            "which events? For example --clrevents gc+exception, or --providers Microsoft-Extensions-Logging:4:4",
        ));
    }
    Request::resolve(&options.asked.selection()).map_err(|error| usage(asked::mistake(&error)))
}

/// Lets the runtime go on, if it is suspended at its start.
async fn let_go(client: Client) {
    // Whoever is not suspended says so, and .NET Core 3 can't be.
    let _ = client.resume().await;
}

/// Waits for the end: of the program, of the time, of the user's patience. `None` for the last. Else what was printed, and
/// when that end was.
async fn wait(
    mut printed: oneshot::Receiver<LiveEnd>,
    control: Control,
    stops: &Stops,
    duration: Option<Duration>,
    neighbours: &mut Neighbours,
) -> Option<(LiveEnd, Instant)> {
    let mut requests = stops.listener();
    let is_over = async {
        tokio::select! {
            () = stops.stopping() => {}
            () = after(duration) => {}
        }
    };
    let mut is_over = pin!(is_over);
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            done = &mut printed => {
                let end = Instant::now();
                // Nobody reads our output, or the program has ended. In the first case the session is of no use to anyone.
                let _ = timeout(GOODBYE, control.stop()).await;
                return Some((done.ok()?, end));
            }
            () = &mut is_over => break,
            _ = tick.tick() => neighbours.look(),
        }
    }
    neighbours.look();
    let end = Instant::now();
    let stop = control.stop();
    let rest = async {
        if stop.await.is_err() {
            // The connection is closed with it, and so the stream ends.
            drop(control);
        }
        Some((printed.await.ok()?, end))
    };
    let given_up = async { while requests.next().await != StopRequest::Abandon {} };
    tokio::select! {
        done = rest => done,
        () = given_up => None,
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep(duration).await,
        None => future::pending().await,
    }
}

/// How all of it ends.
struct End {
    several: bool,
    /// That of the first process with one.
    code: u8,
}

impl End {
    /// `process 42: ` where there are several.
    fn subject(&self, pid: Option<u32>) -> String {
        pid.filter(|_| self.several).map_or_else(String::new, |pid| format!("process {pid}: "))
    }

    fn add(&mut self, code: u8) {
        if self.code == exit::OK {
            self.code = code;
        }
    }

    fn failed(&mut self, pid: Option<u32>, error: anyhow::Error, output: Output) -> anyhow::Result<()> {
        if !self.several {
            return Err(error);
        }
        self.add(exit::code_of(&error));
        output.error(&about(pid, &error), exit::hint_of(&error).as_deref());
        Ok(())
    }

    fn judge(&mut self, pid: Option<u32>, printed: LiveEnd, output: Output) -> anyhow::Result<()> {
        let subject = self.subject(pid);
        if let Some(error) = printed.write_error {
            return Err(error.into());
        }
        if printed.lost > 0 {
            output.warning(format_args!(
                "{subject}the target dropped {}, because its buffer was full",
                Things(printed.lost, "event")
            ));
        }
        if let Some(error) = printed.read_error {
            output.warning(format_args!("{subject}the connection broke: {error}"));
            self.add(exit::PARTIAL);
        } else if !printed.is_whole {
            output.warning(format_args!(
                "{subject}the process ended, or closed the connection, before the stream was complete"
            ));
            self.add(exit::PARTIAL);
        }
        Ok(())
    }
}
