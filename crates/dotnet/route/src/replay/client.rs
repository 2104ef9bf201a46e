//! The client's part: asks a live runtime what was asked, in the same order, and compares what it answers.
//!
//! Each request is sent by our own client: decoded, checked by its encoder and, where that depends on the target, by a look
//! at the target. What it refuses is not sent, and said.

use std::collections::BTreeMap;

use runtap_diag::{Client, Error, Request, SessionId};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::report::{Difference, Exchange, Report, Verdict, differences};
use super::runtime::{Played, exchange};
use super::talk::{Conversation, Talk};
use runtap_transcript::Fields;

use crate::record::{Described, of_answer, of_refusal};

/// How it is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asking {
    /// Do not wait as long as it took.
    pub is_fast: bool,
    /// Send what changes the target, too: writes a dump or a perf map, sets a variable, loads a profiler or a startup hook.
    pub changes_target: bool,
}

/// A session that was started here.
struct Running {
    id: SessionId,
    /// Reads the stream; gives how much came.
    reading: JoinHandle<(u64, Vec<u8>, Option<String>)>,
    exchange: Exchange,
    is_stopped: bool,
}

/// The reply that a stream follows.
const REPLY: u64 = 28;
/// How much of a stream shows what it is.
const START: usize = 8;

/// Asks a runtime all that was recorded.
pub async fn ask(talk: &Talk, client: &Client, asking: Asking, played: &Played) -> Report {
    let mut order: Vec<(usize, &Conversation)> = talk.conversations.iter().enumerate().collect();
    order.retain(|(_, it)| it.asked.is_some());
    order.sort_by_key(|(_, it)| it.asked.map(|(_, line)| line));
    let start = order.first().and_then(|(_, it)| it.asked).map(|(t, _)| t).unwrap_or_default();
    let began = Instant::now();
    let mut sessions: BTreeMap<usize, Running> = BTreeMap::new();
    let mut report = Report::default();
    for (index, recorded) in order {
        let t = recorded.asked.map(|(t, _)| t).unwrap_or_default();
        if !asking.is_fast {
            sleep_until(began + t.saturating_sub(start)).await;
        }
        match one(recorded, client, asking, &sessions).await {
            Done::Over(exchange) => {
                let was_sent = matches!(exchange.verdict, Verdict::Same | Verdict::Differs);
                if let Some(running) = recorded.stops.and_then(|of| sessions.get_mut(&of)) {
                    running.is_stopped |= was_sent;
                }
                played(&exchange);
                report.exchanges.push(*exchange);
            }
            Done::Runs(running) => {
                sessions.insert(index, *running);
            }
        }
    }
    // What still runs was not stopped when it was recorded either.
    for (index, running) in sessions {
        if !running.is_stopped {
            let _gone = client.stop_session(running.id).await;
        }
        let Running { reading, mut exchange, .. } = running;
        match reading.await {
            Ok((bytes, start, error)) => {
                exchange.bytes = Some(bytes.saturating_add(REPLY));
                let recorded = talk.conversations.get(index).map(stream_start).unwrap_or_default();
                if let Some(error) = error {
                    (exchange.verdict, exchange.reason) = (Verdict::Failed, Some(error));
                } else if recorded != start {
                    exchange.differences.push(start_differs(&recorded, &start));
                    exchange.verdict = Verdict::Differs;
                }
            }
            Err(panicked) => {
                (exchange.verdict, exchange.reason) = (Verdict::Failed, Some(panicked.to_string()));
            }
        }
        played(&exchange);
        report.exchanges.push(exchange);
    }
    report
}

fn start_differs(recorded: &[u8], now: &[u8]) -> Difference {
    let shown = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned().into());
    Difference { field: "stream".to_owned(), recorded: shown(recorded), now: shown(now), is_identity: false }
}

/// The first bytes of a recorded stream: its format.
fn stream_start(recorded: &Conversation) -> Vec<u8> {
    let mut start = Vec::new();
    for answer in recorded.answers.iter().filter(|answer| answer.is_stream) {
        let mut parts = answer.data.parts();
        while let Ok(part) = parts.next() {
            start.extend(part.iter().take(START.saturating_sub(start.len())));
            if part.is_empty() || start.len() >= START {
                break;
            }
        }
        if start.len() >= START {
            break;
        }
    }
    start
}

enum Done {
    Over(Box<Exchange>),
    Runs(Box<Running>),
}

/// Whether a request may load code into the target, have it write a file, or set a variable, which may load code into what the
/// target starts. Transcripts are not trusted.
fn changes_target(request: &Request) -> bool {
    !matches!(
        request,
        Request::ProcessInfo(_)
            | Request::ProcessEnvironment
            | Request::CollectTracing { .. }
            | Request::CollectUserEvents { .. }
            | Request::StopTracing(_)
            | Request::ResumeRuntime
            | Request::DisablePerfMap
    )
}

async fn one(
    recorded: &Conversation,
    client: &Client,
    asking: Asking,
    sessions: &BTreeMap<usize, Running>,
) -> Done {
    let mut exchange = exchange(Some(recorded), Verdict::Same);
    let not_sent = |mut exchange: Exchange, reason: String| {
        (exchange.verdict, exchange.reason) = (Verdict::NotSent, Some(reason));
        Done::Over(Box::new(exchange))
    };
    let request = match recorded.message.as_ref().map(runtap_diag_proto::Verbatim::to_request) {
        Some(Ok(request)) => request,
        Some(Err(error)) => return not_sent(exchange, format!("a runtime may die of it: {error}")),
        None => return not_sent(exchange, "it is no request".to_owned()),
    };
    if changes_target(&request) && !asking.changes_target {
        return not_sent(exchange, "it changes the target; --allow-changes sends it".to_owned());
    }
    let answer = match request {
        Request::CollectTracing { form, config } => match client.start_session_as(form, &config).await {
            Ok(mut session) => {
                let id = session.id();
                // That it was started is the same; the id never is.
                let now = of_answer(&runtap_diag::Reply::SessionStarted(id));
                exchange.differences = differences(&recorded.reply, &now);
                exchange.verdict = verdict(&exchange.differences);
                let reading = tokio::spawn(async move {
                    let (mut bytes, mut start) = (0u64, Vec::new());
                    loop {
                        match session.next_chunk().await {
                            Ok(Some(chunk)) => {
                                bytes = bytes.saturating_add(chunk.len() as u64);
                                start.extend(chunk.iter().take(START.saturating_sub(start.len())));
                            }
                            Ok(None) => return (bytes, start, None),
                            Err(error) => return (bytes, start, Some(error.to_string())),
                        }
                    }
                });
                return Done::Runs(Box::new(Running { id, reading, exchange, is_stopped: false }));
            }
            Err(error) => Err(error),
        },
        Request::CollectUserEvents { .. } => {
            return not_sent(exchange, "it needs a descriptor of user_events_data".to_owned());
        }
        Request::StopTracing(_) => {
            let Some(running) = recorded.stops.and_then(|of| sessions.get(&of)) else {
                let reason = "the session was not started here, and its id may be another one's by now";
                return not_sent(exchange, reason.to_owned());
            };
            client.stop_session(running.id).await.map(|()| runtap_diag::Reply::SessionStopped(running.id))
        }
        request => client.request(request).await,
    };
    let now: Fields = match &answer {
        Ok(reply) => of_answer(reply),
        Err(Error::Refused { reply, .. }) => of_refusal(reply),
        Err(error @ (Error::Invalid(_) | Error::Objection { .. })) => {
            return not_sent(exchange, error.to_string());
        }
        Err(error) => {
            // Closed without an answer, then and now, is the same.
            let is_same = recorded.replied.is_none() && matches!(error, Error::Closed { received: 0, .. });
            if !is_same {
                exchange.verdict = Verdict::Failed;
            }
            exchange.reason = Some(error.to_string());
            return Done::Over(Box::new(exchange));
        }
    };
    exchange.differences = differences(&replied(recorded), &now);
    exchange.verdict = verdict(&exchange.differences);
    if matches!(answer, Ok(runtap_diag::Reply::Environment(_))) {
        hide(&mut exchange.differences);
    }
    Done::Over(Box::new(exchange))
}

/// What the reply said, without what only announces the rest of it.
fn replied(recorded: &Conversation) -> Fields {
    let parts = recorded.reply.iter().filter(|(name, _)| name != "continuation_bytes");
    parts.cloned().collect()
}

fn verdict(differences: &[Difference]) -> Verdict {
    if differences.iter().all(|difference| difference.is_identity) { Verdict::Same } else { Verdict::Differs }
}

/// Values of variables may be secrets.
fn hide(differences: &mut [Difference]) {
    for difference in differences {
        let hidden = |value: &Option<serde_json::Value>| value.as_ref().map(|_| Described::MASK.into());
        (difference.recorded, difference.now) = (hidden(&difference.recorded), hidden(&difference.now));
    }
}
