//! The client's side: repeats recorded requests to a live runtime in order, and compares the replies.
//!
//! Each request is decoded, validated and sent by runtap's own client, which may inspect the target. Rejected requests are not
//! sent, but reported.

use std::collections::BTreeMap;

use runtap_diag::{Client, Error, Request, SessionId};
use runtap_model::order;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::report::{Difference, Exchange, Report, Verdict, differences};
use super::runtime::{Played, exchange};
use super::talk::{Conversation, Talk};
use runtap_transcript::Fields;

use crate::record::{Described, of_answer, of_refusal};

/// Options of a replay as the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asking {
    /// Whether to leave out recorded pauses.
    pub is_fast: bool,
    /// Whether to send requests that change the target: that write a dump or perf map, set a variable, or load a profiler or
    /// startup hook.
    pub changes_target: bool,
}

/// A session started by the replay.
struct StartedSession {
    id: SessionId,
    /// Reads the stream; returns its size, its first bytes and an error.
    reading: JoinHandle<(u64, Vec<u8>, Option<String>)>,
    exchange: Exchange,
    is_stopped: bool,
}

/// The size of the reply before a stream, in bytes.
const REPLY_SIZE: u64 = 28;
/// The number of bytes that identify a stream's format.
const FORMAT_PREFIX: usize = 8;

/// Sends all recorded requests to a runtime.
pub async fn ask(talk: &Talk, client: &Client, asking: Asking, played: &Played) -> Report {
    let mut order: Vec<(usize, &Conversation)> = talk.conversations.iter().enumerate().collect();
    order.retain(|(_, it)| it.requested.is_some());
    order::sort_by_key(&mut order, |(_, it)| it.requested.map(|(_, line)| line));
    let start = order.first().and_then(|(_, it)| it.requested).map(|(t, _)| t).unwrap_or_default();
    let began = Instant::now();
    let mut sessions: BTreeMap<usize, StartedSession> = BTreeMap::new();
    let mut report = Report::default();
    for (index, recorded) in order {
        let t = recorded.requested.map(|(t, _)| t).unwrap_or_default();
        if !asking.is_fast {
            sleep_until(began + t.saturating_sub(start)).await;
        }
        match replay_request(recorded, client, asking, &sessions).await {
            RequestResult::Over(exchange) => {
                let was_sent = matches!(exchange.verdict, Verdict::Same | Verdict::Differs);
                if let Some(session) = recorded.stops.and_then(|of| sessions.get_mut(&of)) {
                    session.is_stopped |= was_sent;
                }
                played(&exchange);
                report.exchanges.push(*exchange);
            }
            RequestResult::Runs(session) => {
                sessions.insert(index, *session);
            }
        }
    }
    // Sessions that still run were not stopped in the recording either.
    for (index, session) in sessions {
        if !session.is_stopped {
            let _gone = client.stop_session(session.id).await;
        }
        let StartedSession { reading, mut exchange, .. } = session;
        match reading.await {
            Ok((bytes, start, error)) => {
                exchange.bytes = Some(bytes.saturating_add(REPLY_SIZE));
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

/// Returns the first bytes of a recorded stream, which identify its format.
fn stream_start(recorded: &Conversation) -> Vec<u8> {
    let mut start = Vec::new();
    for answer in recorded.answers.iter().filter(|answer| answer.is_stream) {
        let mut parts = answer.data.parts();
        while let Ok(part) = parts.next() {
            start.extend(part.iter().take(FORMAT_PREFIX.saturating_sub(start.len())));
            if part.is_empty() || start.len() >= FORMAT_PREFIX {
                break;
            }
        }
        if start.len() >= FORMAT_PREFIX {
            break;
        }
    }
    start
}

enum RequestResult {
    Over(Box<Exchange>),
    Runs(Box<StartedSession>),
}

/// Returns whether a request may load code into the target, make it write a file, or set a variable, which may load code into
/// its child processes. Transcripts are not trusted.
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

async fn replay_request(
    recorded: &Conversation,
    client: &Client,
    asking: Asking,
    sessions: &BTreeMap<usize, StartedSession>,
) -> RequestResult {
    let mut exchange = exchange(Some(recorded), Verdict::Same);
    let not_sent = |mut exchange: Exchange, reason: String| {
        (exchange.verdict, exchange.reason) = (Verdict::NotSent, Some(reason));
        RequestResult::Over(Box::new(exchange))
    };
    let request = match recorded.message.as_ref().map(runtap_diag_proto::Verbatim::to_request) {
        Some(Ok(request)) => request,
        Some(Err(error)) => return not_sent(exchange, format!("it could crash a runtime: {error}")),
        None => return not_sent(exchange, "it is not a request".to_owned()),
    };
    if changes_target(&request) && !asking.changes_target {
        return not_sent(exchange, "it changes the target; use --allow-changes to send it".to_owned());
    }
    let answer = match request {
        Request::CollectTracing { form, config } => match client.start_session_as(form, &config).await {
            Ok(mut session) => {
                let id = session.id();
                // Only the ids differ, which is expected.
                let now = of_answer(&runtap_diag::Reply::SessionStarted(id));
                exchange.differences = differences(&recorded.reply, &now);
                exchange.verdict = verdict(&exchange.differences);
                let reading = tokio::spawn(async move {
                    let (mut bytes, mut start) = (0u64, Vec::new());
                    loop {
                        match session.next_chunk().await {
                            Ok(Some(chunk)) => {
                                bytes = bytes.saturating_add(chunk.len() as u64);
                                start.extend(chunk.iter().take(FORMAT_PREFIX.saturating_sub(start.len())));
                            }
                            Ok(None) => return (bytes, start, None),
                            Err(error) => return (bytes, start, Some(error.to_string())),
                        }
                    }
                });
                return RequestResult::Runs(Box::new(StartedSession {
                    id,
                    reading,
                    exchange,
                    is_stopped: false,
                }));
            }
            Err(error) => Err(error),
        },
        Request::CollectUserEvents { .. } => {
            return not_sent(exchange, "it needs a descriptor of user_events_data".to_owned());
        }
        Request::StopTracing(_) => {
            let Some(session) = recorded.stops.and_then(|of| sessions.get(&of)) else {
                let reason =
                    "this replay did not start the session, so its id may now belong to another session";
                return not_sent(exchange, reason.to_owned());
            };
            client.stop_session(session.id).await.map(|()| runtap_diag::Reply::SessionStopped(session.id))
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
            // A connection that closes without a reply, as recorded, is no difference.
            let is_same = recorded.replied.is_none() && matches!(error, Error::Closed { received: 0, .. });
            if !is_same {
                exchange.verdict = Verdict::Failed;
            }
            exchange.reason = Some(error.to_string());
            return RequestResult::Over(Box::new(exchange));
        }
    };
    exchange.differences = differences(&replied(recorded), &now);
    exchange.verdict = verdict(&exchange.differences);
    if matches!(answer, Ok(runtap_diag::Reply::Environment(_))) {
        hide(&mut exchange.differences);
    }
    RequestResult::Over(Box::new(exchange))
}

/// Returns the fields of the recorded reply, without the size of its continuation.
fn replied(recorded: &Conversation) -> Fields {
    let parts = recorded.reply.iter().filter(|(name, _)| name != "continuation_bytes");
    parts.cloned().collect()
}

fn verdict(differences: &[Difference]) -> Verdict {
    if differences.iter().all(|difference| difference.is_identity) { Verdict::Same } else { Verdict::Differs }
}

/// Masks the values of variables, which may be secrets.
fn hide(differences: &mut [Difference]) {
    for difference in differences {
        let hidden = |value: &Option<serde_json::Value>| value.as_ref().map(|_| Described::MASK.into());
        (difference.recorded, difference.now) = (hidden(&difference.recorded), hidden(&difference.now));
    }
}
