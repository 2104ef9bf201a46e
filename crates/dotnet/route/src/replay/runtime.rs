//! The runtime's side: replies to tools as recorded.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runtap_diag_proto::tap::{PieceKind, Side, Tap};
use runtap_diag_proto::{ErrorReply, Hresult};
use runtap_transport::{Endpoint, Stream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::playing::ToolConnection;
use super::report::{Exchange, Report, Verdict, differences_of, first_difference};
use super::talk::{Conversation, Talk, TalkError};
use crate::record::{Described, Phase};

const READ_SIZE: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// The pause between attempts to connect to a tool's port.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// A callback for each request that was played, called when the exchange is over.
pub type Played = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// Replies to tools as recorded.
pub struct Player {
    talk: Talk,
    is_fast: bool,
    played: Played,
    state: Mutex<PlayerState>,
    /// The indexes of sessions that a tool has stopped, and of sessions whose stream has ended.
    stopped: watch::Sender<BTreeSet<usize>>,
    finished: watch::Sender<BTreeSet<usize>>,
    /// The number of recorded requests that were not requested yet or are in progress.
    left: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct PlayerState {
    used: BTreeSet<usize>,
    playing: BTreeSet<usize>,
    exchanges: Vec<Exchange>,
}

impl std::fmt::Debug for Player {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Player").field("talk", &self.talk).finish_non_exhaustive()
    }
}

/// A request received from a tool.
#[derive(Default)]
struct ReceivedRequest {
    bytes: Vec<u8>,
    described: Option<Described>,
}

impl Player {
    /// Creates a player; `is_fast` leaves out recorded pauses.
    pub fn new(talk: Talk, is_fast: bool, played: Played) -> Self {
        let requested =
            talk.conversations.iter().filter(|conversation| conversation.requested.is_some()).count();
        Self {
            talk,
            is_fast,
            played,
            state: Mutex::new(PlayerState::default()),
            stopped: watch::Sender::new(BTreeSet::new()),
            finished: watch::Sender::new(BTreeSet::new()),
            left: watch::Sender::new(requested),
        }
    }

    /// Completes when every recorded request was requested and replied to.
    pub async fn is_over(&self) {
        // Cannot fail: the sender is part of `self`.
        let _ = self.left.subscribe().wait_for(|left| *left == 0).await;
    }

    /// Plays until the phase ends. Exchanges in progress are completed unless they are aborted too.
    pub async fn play(self: Arc<Self>, heard: ToolConnection, mut phase: watch::Receiver<Phase>) {
        let mut connections = JoinSet::new();
        let breaking = phase.clone();
        let closing = async move {
            // If the sender is gone, continue without an end.
            if phase.wait_for(|phase| *phase > Phase::Open).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::pin!(closing);
        match heard {
            ToolConnection::Listen(listener) => loop {
                let accepted = tokio::select! {
                    biased;
                    () = &mut closing => break,
                    accepted = listener.accept() => accepted,
                    Some(_ended) = connections.join_next() => continue,
                };
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(Arc::clone(&self).unless_broken(stream, None, breaking.clone()));
                    }
                    Err(_out_of_descriptors) => tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await,
                }
            },
            ToolConnection::Connect(port) => {
                tokio::select! {
                    () = &mut closing => {}
                    () = Arc::clone(&self).connect_to_tool(&port, &mut connections, &breaking) => {}
                }
            }
        }
        while connections.join_next().await.is_some() {}
    }

    /// Connects to a tool's port as the runtime did: again after each command.
    async fn connect_to_tool(
        self: Arc<Self>,
        port: &Endpoint,
        connections: &mut JoinSet<()>,
        breaking: &watch::Receiver<Phase>,
    ) {
        let advertise = self.talk.conversations.iter().find_map(|it| it.advertise.clone());
        let Some(advertise) = advertise else { return };
        while *self.left.borrow() > 0 {
            let Ok(stream) = port.connect(CONNECT_TIMEOUT).await else {
                tokio::time::sleep(CONNECT_RETRY_INTERVAL).await;
                continue;
            };
            if stream.send_all(&advertise, &[]).await.is_err() {
                continue;
            }
            // Hold idle connections, as a runtime does.
            let mut left = self.left.subscribe();
            tokio::select! {
                requested = self.request(&stream) => {
                    if let Some(requested) = requested {
                        let player = Arc::clone(&self);
                        connections.spawn(player.unless_broken(stream, Some(requested), breaking.clone()));
                    }
                }
                _ = left.wait_for(|left| *left == 0) => {}
            }
        }
    }

    async fn unless_broken(
        self: Arc<Self>,
        stream: Stream,
        requested: Option<ReceivedRequest>,
        mut phase: watch::Receiver<Phase>,
    ) {
        tokio::select! {
            () = self.answer(stream, requested) => {}
            Ok(_) = phase.wait_for(|phase| *phase == Phase::Broken) => {}
        }
    }

    /// Reads a complete request; `None` if the tool sent nothing. Bytes that are not a request are complete when they are as
    /// long as recorded.
    async fn request(&self, stream: &Stream) -> Option<ReceivedRequest> {
        let (mut tap, mut requested) = (Tap::new(), ReceivedRequest::default());
        let mut buffer = vec![0; READ_SIZE];
        loop {
            let (n, _closed) = stream.receive(&mut buffer).await.unwrap_or_default();
            if n == 0 {
                tap.handle_eof(Side::Client);
            } else {
                tap.handle_bytes(Side::Client, buffer.get(..n).unwrap_or_default());
            }
            while let Some(piece) = tap.poll_transmit() {
                requested.bytes.extend_from_slice(piece.bytes());
                if let PieceKind::Request(_) = piece.kind {
                    let error = tap.error(Side::Client);
                    requested.described = Some(Described::of(&piece, tap.request(), error));
                    return Some(requested);
                }
            }
            let is_complete = !requested.bytes.is_empty() && !self.may_continue(&requested.bytes);
            if n == 0 || is_complete {
                return Some(requested).filter(|requested| !requested.bytes.is_empty());
            }
        }
    }

    /// Returns whether recorded bytes that are not a request start with these bytes and continue.
    fn may_continue(&self, bytes: &[u8]) -> bool {
        let others = self.talk.conversations.iter().filter(|it| it.message.is_none());
        let mut others = others.map(Conversation::requested_bytes);
        others.clone().all(|sent| sent != bytes) && others.any(|sent| sent.starts_with(bytes))
    }

    async fn answer(&self, stream: Stream, requested: Option<ReceivedRequest>) {
        let requested = match requested {
            Some(requested) => requested,
            None => match self.request(&stream).await {
                Some(requested) => requested,
                None => return,
            },
        };
        let (index, mut exchange) = self.choose(&requested);
        let Some(conversation) = index.and_then(|index| self.talk.conversations.get(index)) else {
            let refusal = ErrorReply::from(Hresult::UNKNOWN_COMMAND).to_bytes().unwrap_or_default();
            let _gone = stream.send_all(&refusal, &[]).await;
            self.over(exchange, None);
            return;
        };
        if let Some(of) = conversation.stops {
            self.stopped.send_modify(|stopped| {
                stopped.insert(of);
            });
        }
        let index = index.unwrap_or_default();
        let mut sent = 0;
        let played = tokio::select! {
            played = self.send(&stream, conversation, index, &mut sent) => played,
            () = closed(&stream) => Ok(()),
        };
        exchange.bytes = Some(sent);
        if let Err(error) = played {
            (exchange.verdict, exchange.reason) = (Verdict::Failed, Some(error.to_string()));
        }
        self.finished.send_modify(|finished| {
            finished.insert(index);
        });
        let first = !matches!(exchange.verdict, Verdict::Repeated);
        let has_failed = matches!(exchange.verdict, Verdict::Failed);
        self.over(exchange, first.then_some(index));
        // Close the connection if the reply can't be completed, so that the tool does not wait.
        if !conversation.runtime_ended && !has_failed {
            closed(&stream).await;
        }
    }

    /// Chooses a recorded request: the first unused one that is equal, or else the first unused one with the same command, or
    /// else the last one that is equal.
    fn choose(&self, requested: &ReceivedRequest) -> (Option<usize>, Exchange) {
        let mut state = lock(&self.state);
        let all = || self.talk.conversations.iter().enumerate().filter(|(_, it)| it.requested.is_some());
        let is_equal = |it: &Conversation| it.requested_bytes() == requested.bytes;
        let id = requested.described.as_ref().and_then(|it| it.id);
        let is_alike = |it: &Conversation| id.is_some() && it.described.as_ref().and_then(|it| it.id) == id;
        let unused = |index: &usize| !state.used.contains(index);
        let equal = all().find(|(index, it)| unused(index) && is_equal(it));
        let (verdict, chosen) = match equal {
            Some(found) => (Verdict::Same, Some(found)),
            None => match all().find(|(index, it)| unused(index) && is_alike(it)) {
                Some(found) => (Verdict::Differs, Some(found)),
                None => match all().rfind(|(_, it)| is_equal(it)) {
                    Some(found) => (Verdict::Repeated, Some(found)),
                    None => (Verdict::Unexpected, None),
                },
            },
        };
        let recorded = chosen.map(|(_, it)| it);
        let mut exchange = exchange(recorded, verdict);
        if recorded.is_none() {
            (exchange.id, exchange.name) = (id, requested.described.as_ref().and_then(|it| it.name));
        }
        if let (Verdict::Differs, Some(recorded)) = (verdict, recorded) {
            exchange.differences = differences_of(recorded.described.as_ref(), requested.described.as_ref());
            exchange.offset = first_difference(recorded.requested_bytes(), &requested.bytes);
        }
        let index = chosen.map(|(index, _)| index);
        state.used.extend(index);
        state.playing.extend(index);
        (index, exchange)
    }

    /// Sends the recorded reply.
    async fn send(
        &self,
        stream: &Stream,
        conversation: &Conversation,
        index: usize,
        sent: &mut u64,
    ) -> Result<(), TalkError> {
        let requested = conversation.requested.map(|(t, _)| t).unwrap_or_default();
        let (mut from, mut began) = (requested, Instant::now());
        let mut was_stopped = false;
        self.wait_for_stream(conversation).await;
        for answer in &conversation.answers {
            if let Some((t, line)) = conversation.stopped
                && answer.is_stream
                && answer.line > line
                && !std::mem::replace(&mut was_stopped, true)
            {
                // Cannot fail: the sender is part of `self`.
                let _ = self.stopped.subscribe().wait_for(|stopped| stopped.contains(&index)).await;
                (from, began) = (t, Instant::now());
            }
            if !self.is_fast {
                sleep_until(began + answer.t.saturating_sub(from)).await;
            }
            let mut parts = answer.data.parts();
            loop {
                let part = parts.next()?;
                if part.is_empty() {
                    break;
                }
                if stream.send_all(&part, &[]).await.is_err() {
                    return Ok(());
                }
                *sent = sent.saturating_add(part.len() as u64);
            }
        }
        Ok(())
    }

    /// Waits for the end of the stream, as a runtime does before it replies to a `StopTracing`.
    async fn wait_for_stream(&self, conversation: &Conversation) {
        let Some(of) = conversation.stops else { return };
        let line_of =
            |it: Option<&Conversation>| it.and_then(|it| it.answers.last()).map(|answer| answer.line);
        let was_after = line_of(Some(conversation)) > line_of(self.talk.conversations.get(of));
        if was_after && lock(&self.state).playing.contains(&of) {
            let _ = self.finished.subscribe().wait_for(|finished| finished.contains(&of)).await;
        }
    }

    /// Reports that an exchange is over; `of` is its index if it is the first for a recorded request.
    fn over(&self, exchange: Exchange, of: Option<usize>) {
        (self.played)(&exchange);
        lock(&self.state).exchanges.push(exchange);
        if of.is_some() {
            self.left.send_modify(|left| *left = left.saturating_sub(1));
        }
    }

    /// Returns the exchanges that were played, and those that were not requested.
    pub fn report(&self) -> Report {
        let state = lock(&self.state);
        let mut exchanges = state.exchanges.clone();
        let all = self.talk.conversations.iter().enumerate();
        let left = all.filter(|(index, it)| it.requested.is_some() && !state.used.contains(index));
        exchanges.extend(left.map(|(_, it)| exchange(Some(it), Verdict::NotAsked)));
        Report { exchanges }
    }
}

/// Creates an exchange, for a recorded request if there is one.
pub(super) fn exchange(recorded: Option<&Conversation>, verdict: Verdict) -> Exchange {
    let described = recorded.and_then(|it| it.described.as_ref());
    Exchange {
        conn: recorded.map(|it| it.conn.clone()),
        line: recorded.and_then(|it| it.requested).map(|(_, line)| line),
        id: described.and_then(|it| it.id),
        name: described.and_then(|it| it.name),
        verdict,
        differences: Vec::new(),
        offset: None,
        reason: None,
        bytes: None,
        recorded_bytes: recorded.map_or(0, Conversation::answer_bytes),
    }
}

/// Completes when a tool has closed its connection.
async fn closed(stream: &Stream) {
    let mut buffer = vec![0; READ_SIZE];
    loop {
        match stream.receive(&mut buffer).await {
            Ok((0, _)) if !stream.is_hung_up() => {
                // The tool has stopped sending but still reads; writing shows when it closes.
                return std::future::pending().await;
            }
            Ok((0, _)) | Err(_) => return,
            Ok(_ignored) => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
