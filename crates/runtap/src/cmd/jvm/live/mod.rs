//! The live view of `jvm hq`: a terminal interface that shows incoming data.
//!
//! - `state`, `search`, `items`: the content, independent of a terminal.
//! - `view`, `rows`: the layout.
//! - `input`, `terminal`: the two directions of the terminal.
//! - `gather`: reports, as often as the decoder can afford.

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
use self::state::{Action, ViewState};
use self::terminal::{Ansi, Screen};
use super::hq::watch::{Line, Watch, Weight};
use crate::output::Output;

/// The capacity of the queue of keys.
const KEY_QUEUE_CAPACITY: usize = 64;
/// The maximum interval at which the size of the terminal is checked.
const RESIZE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A live view that can be shown.
#[derive(Debug)]
pub(in crate::cmd) struct View(());

/// Returns a live view if both input and output are a terminal.
pub(in crate::cmd) fn possible(output: Output) -> Option<View> {
    (output.is_seen() && output.progress() && io::stdin().is_terminal()).then_some(View(()))
}

impl View {
    /// Shows the view until the user stops it, the deadline passes, or the first agent has ended and `stays` is not set.
    /// Returns the lines that were shown last.
    ///
    /// # Errors
    /// Fails if the terminal can't be configured or drawn on.
    pub(super) async fn show(
        self,
        hq: &Arc<Hq>,
        watch: &Arc<Watch>,
        stops: &Stops,
        over: Instant,
        stays: bool,
    ) -> io::Result<Vec<Line>> {
        let (to, mut snapshots) = watch::channel(Snapshot::default());
        let gatherer = Gatherer::start(Arc::clone(hq), Arc::clone(watch), to)?;
        let screen = Screen::take()?;
        let (typed, mut keys) = mpsc::channel(KEY_QUEUE_CAPACITY);
        let listening = input::listen(typed)?;
        let colours = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let mut terminal = Terminal::new(Ansi::new(BufWriter::new(io::stdout()), colours))?;
        let mut state = ViewState::default();
        loop {
            draw(&mut terminal, &mut state)?;
            tokio::select! {
                biased;
                () = stops.stopping() => break,
                () = sleep_until(over) => break,
                Some(key) = keys.recv() => {
                    let mut next = Some(key);
                    // Handle all pending keys before drawing again.
                    while let Some(key) = next {
                        if let Some(action) = state.key(key) {
                            act(action, hq, watch, stops);
                        }
                        next = keys.try_recv().ok();
                    }
                    gatherer.ask(state.request());
                }
                Ok(()) = snapshots.changed() => {
                    let snapshot = snapshots.borrow_and_update().clone();
                    state.update(snapshot);
                    gatherer.ask(state.request());
                }
                () = watch.news.notified() => {
                    state.add_lines(watch.lines());
                    if !stays && watch.one_has_finished() {
                        break;
                    }
                    state.over = watch.all_have_finished();
                }
                () = sleep_until(Instant::now() + RESIZE_POLL_INTERVAL) => {}
            }
        }
        drop(listening);
        drop(screen);
        Ok(state.log.into_iter().collect())
    }
}

fn draw<B: Backend>(terminal: &mut Terminal<B>, state: &mut ViewState) -> Result<(), B::Error> {
    terminal.draw(|frame| view::draw(state, frame.area(), frame.buffer_mut()))?;
    Ok(())
}

/// Performs the action of a key. Sending to an agent may block, so it runs on another thread.
fn act(action: Action, hq: &Arc<Hq>, watch: &Arc<Watch>, stops: &Stops) {
    let (agent, order) = match action {
        Action::Quit => return stops.stop(),
        Action::Send(agent, order) => (agent, order),
    };
    let (hq, watch) = (Arc::clone(hq), Arc::clone(watch));
    tokio::task::spawn_blocking(move || {
        // The displayed mode may be outdated.
        let Some(now) = hq.agents().into_iter().find(|state| state.id == agent) else { return };
        let command = order.command(now.state.mode);
        match hq.command(agent, command) {
            Ok(()) => watch.add_line(Weight::Note, format!("agent {} was told: {command}", agent.0)),
            Err(error) => watch.add_line(Weight::Warning, format!("agent {}: {command}: {error}", agent.0)),
        }
    });
}
