//! The live view of `jvm hq`: what agents send, while it comes, on a terminal.
//!
//! - `state`, `search`, `items`: what is to be seen; they know no terminal. - `view`, `rows`: how it looks. - `input`,
//!   `terminal`: the two ends of the terminal. - `gather`: reports, as often as the decoder can bear.

mod gather;
mod input;
mod items;
mod rows;
mod search;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, BufWriter, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use ratatui_core::backend::Backend;
use ratatui_core::terminal::Terminal;
use runtap_bytefrog::hq::Hq;
use runtap_record::Stops;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use self::gather::{Gatherer, Snapshot};
use self::state::{Action, State};
use self::terminal::{Ansi, Screen};
use super::hq::watch::{Line, Watch, Weight};
use crate::output::Output;

/// Keys that wait while something is drawn.
const KEYS: usize = 64;
/// The size of the terminal is looked at this often, whatever happens.
const LOOK: Duration = Duration::from_millis(500);

/// A view that there can be.
#[derive(Debug)]
pub(in crate::cmd) struct View(());

/// A live view, where there is a terminal for it: one to draw on and one to type on.
pub(in crate::cmd) fn possible(output: Output) -> Option<View> {
    (output.is_seen() && output.progress() && io::stdin().is_terminal()).then_some(View(()))
}

impl View {
    /// Shows the view until the end is asked for, or it is the end; where it `stays`, the end of the first agent is none. The
    /// lines that were shown last are given back.
    ///
    /// # Errors
    /// The terminal can't be taken, or drawn on.
    pub(super) async fn show(
        self,
        hq: &Arc<Hq>,
        heard: &Arc<Watch>,
        stops: &Stops,
        over: Instant,
        stays: bool,
    ) -> io::Result<Vec<Line>> {
        let (to, mut snapshots) = watch::channel(Snapshot::default());
        let gatherer = Gatherer::start(Arc::clone(hq), Arc::clone(heard), to)?;
        let screen = Screen::take()?;
        let (typed, mut keys) = mpsc::channel(KEYS);
        let listening = input::listen(typed)?;
        let colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let mut terminal = Terminal::new(Ansi::new(BufWriter::new(io::stdout()), colours))?;
        let mut state = State::default();
        loop {
            draw(&mut terminal, &mut state)?;
            tokio::select! {
                biased;
                () = stops.stopping() => break,
                () = sleep_until(over) => break,
                Some(key) = keys.recv() => {
                    let mut next = Some(key);
                    // All that was typed meanwhile, before it is drawn once.
                    while let Some(key) = next {
                        if let Some(action) = state.key(key) {
                            act(action, hq, heard, stops);
                        }
                        next = keys.try_recv().ok();
                    }
                    gatherer.ask(state.wants());
                }
                Ok(()) = snapshots.changed() => {
                    let snapshot = snapshots.borrow_and_update().clone();
                    state.update(snapshot);
                    gatherer.ask(state.wants());
                }
                () = heard.news.notified() => {
                    state.hear(heard.lines());
                    if !stays && heard.one_has_finished() {
                        break;
                    }
                    state.over = heard.all_have_finished();
                }
                () = sleep_until(Instant::now() + LOOK) => {}
            }
        }
        drop(listening);
        drop(screen);
        Ok(state.log.into_iter().collect())
    }
}

fn draw<B: Backend>(terminal: &mut Terminal<B>, state: &mut State) -> Result<(), B::Error> {
    terminal.draw(|frame| view::draw(state, frame.area(), frame.buffer_mut()))?;
    Ok(())
}

/// Does what a key asks for. An agent may not take what it is sent: nobody waits for that.
fn act(action: Action, hq: &Arc<Hq>, heard: &Arc<Watch>, stops: &Stops) {
    let (agent, order) = match action {
        Action::Quit => return stops.stop(),
        Action::Send(agent, order) => (agent, order),
    };
    let (hq, heard) = (Arc::clone(hq), Arc::clone(heard));
    tokio::task::spawn_blocking(move || {
        // What is shown is a little old.
        let Some(now) = hq.agents().into_iter().find(|state| state.id == agent) else { return };
        let command = order.command(now.state.mode);
        match hq.command(agent, command) {
            Ok(()) => heard.say(Weight::Note, format!("agent {} was told: {command}", agent.0)),
            Err(error) => heard.say(Weight::Warning, format!("agent {}: {command}: {error}", agent.0)),
        }
    });
}
