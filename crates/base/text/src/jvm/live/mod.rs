//! The live view of a collector: a terminal interface that shows incoming data.
//!
//! - `state`, `search`, `items`: the content, independent of a terminal.
//! - `view`, `rows`: the layout.
//! - `gather`: reports, as often as the decoder can afford.

mod gather;
mod items;
mod rows;
mod search;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ratatui_core::backend::Backend;
use ratatui_core::terminal::Terminal;
use runtap_bytefrog::hq::Hq;
use runtap_jvm::agents::{AgentWatch, News, Notice, Weight};
use runtap_model::Message;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use self::gather::{Gatherer, Snapshot};
use self::state::{Action, ViewState};
use super::agents::notice_messages;
use crate::screen::{Screen, ScreenBackend, listen};

/// The capacity of the queue of keys.
const KEY_QUEUE_CAPACITY: usize = 64;
/// The maximum interval at which the size of the terminal is checked.
const RESIZE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The live view of a collector.
#[derive(Debug, Clone, Copy)]
pub struct LiveView {
    /// Whether to use colors.
    pub colors: bool,
    /// Whether the view stays after all agents have ended.
    pub stays: bool,
}

impl LiveView {
    /// Shows the view on standard output until `end`, or the first agent has ended and the view does not stay. Calls
    /// `quit` when the user wants to stop the collection. Returns the messages that were shown last.
    ///
    /// # Errors
    /// Fails if the terminal can't be configured or drawn on.
    pub async fn show(
        self,
        hq: &Arc<Hq>,
        watch: &Arc<AgentWatch>,
        end: impl Future<Output = ()>,
        quit: impl Fn(),
    ) -> io::Result<Vec<Message>> {
        let mut end = pin!(end);
        let (to, mut snapshots) = watch::channel(Snapshot::default());
        let gatherer = Gatherer::start(Arc::clone(hq), Arc::clone(watch), to)?;
        let screen = Screen::take()?;
        let (typed, mut keys) = mpsc::channel(KEY_QUEUE_CAPACITY);
        // Drop keys when the queue is full instead of blocking.
        let listening = listen(move |key| {
            if let Some(key) = key {
                let _ = typed.try_send(key);
            }
        })?;
        let mut terminal = Terminal::new(ScreenBackend::new(self.colors))?;
        let mut state = ViewState::default();
        loop {
            draw(&mut terminal, &mut state)?;
            tokio::select! {
                biased;
                () = &mut end => break,
                Some(key) = keys.recv() => {
                    let mut next = Some(key);
                    // Handle all pending keys before drawing again.
                    while let Some(key) = next {
                        if let Some(action) = state.key(key) {
                            act(action, hq, watch, &quit);
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
                    state.add_messages(notice_messages(watch));
                    if !self.stays && watch.one_has_finished() {
                        break;
                    }
                    state.over = watch.all_have_finished();
                }
                () = sleep(RESIZE_POLL_INTERVAL) => {}
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
fn act(action: Action, hq: &Arc<Hq>, watch: &Arc<AgentWatch>, quit: &impl Fn()) {
    let (agent, order) = match action {
        Action::Quit => return quit(),
        Action::Send(agent, order) => (agent, order),
    };
    let (hq, watch) = (Arc::clone(hq), Arc::clone(watch));
    tokio::task::spawn_blocking(move || {
        // The displayed mode may be outdated.
        let Some(now) = hq.agents().into_iter().find(|status| status.id == agent) else { return };
        let command = order.command(now.state.mode);
        watch.add(match hq.command(agent, command) {
            Ok(()) => Notice::new(Weight::Note, agent, News::Sent(command)),
            Err(error) => Notice::new(Weight::Warning, agent, News::NotSent(command, error.to_string())),
        });
    });
}
