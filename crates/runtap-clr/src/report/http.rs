//! HTTP requests: those that the program answered, and those that it sent.
//!
//! The start and the stop of a request belong together by its id (Kestrel's), by its activity, or where there is
//! neither because no other request was under way; else its time stays unknown.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::collector::{Collector, Found, Kept, text};
use super::{Collect, Durations, Item, Observe, Payload, Report};

/// What a recording says about HTTP requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HttpReport {
    /// How many requests the program was asked.
    pub server_requests_count: u64,
    /// How many of them ended in an exception that nobody handled.
    pub server_exceptions_count: u64,
    /// How many requests it sent.
    pub client_requests_count: u64,
    /// How many of them failed, without an answer.
    pub client_failures_count: u64,
    /// How many of them were answered with an error: a status of 400 or more.
    pub client_error_statuses_count: u64,
    /// By side, method and path, the most frequent first.
    pub endpoints: Vec<Endpoint>,
}

/// Which side of a request the program was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// It answered.
    Server,
    /// It asked.
    Client,
}

/// Requests of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Which side.
    pub side: Side,
    /// `GET`; `None` where that is not told (client).
    pub method: Option<String>,
    /// The path without its query; of a client with the host in front.
    pub path: String,
    /// How many.
    pub requests_count: u64,
    /// How many failed: on a server by an exception that nobody handled, on a client without an answer.
    pub failed_count: u64,
    /// How many were answered with which status; a server does not tell it.
    pub statuses: BTreeMap<u16, u64>,
    /// How many did not end in the recording.
    pub unfinished_count: u64,
    /// How long the others took, as far as that is known.
    pub durations: Durations,
}

/// Whoever tells of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Teller {
    Hosting,
    Kestrel,
    Client,
}

impl Teller {
    fn of(provider: &str) -> Option<Self> {
        Some(match provider {
            "Microsoft.AspNetCore.Hosting" => Self::Hosting,
            "Microsoft-AspNetCore-Server-Kestrel" => Self::Kestrel,
            "System.Net.Http" => Self::Client,
            _ => return None,
        })
    }
}

#[derive(Debug, Clone)]
enum What {
    Start {
        method: Option<String>,
        path: String,
    },
    /// With the status of the answer, where it is told.
    Stop {
        status: Option<i64>,
    },
    Failed,
}

#[derive(Debug, Clone)]
struct HttpEvent {
    by: Teller,
    what: What,
    /// What tells the request from others, if anything does.
    id: Option<String>,
}

/// Makes a [`HttpReport`].
#[derive(Debug)]
pub struct Http(Collector<HttpEvent>);

impl Default for Http {
    fn default() -> Self {
        Self(Collector::new(|metadata| Teller::of(&metadata.provider).is_some()))
    }
}

/// What a client tells instead of a status when there was no answer.
const NO_ANSWER: i64 = -1;

/// A request under way.
struct Open {
    key: Key,
    start: u64,
    id: Option<String>,
    /// It is known to have failed.
    failed: bool,
}
type Key = (Teller, Option<String>, String);

/// Requests under way, in the order of their starts.
#[derive(Default)]
struct Requests {
    list: BTreeMap<u64, Open>,
    started: u64,
    /// Which of them have an id; some may have ended.
    by_id: HashMap<String, Vec<u64>>,
}

impl Requests {
    fn begin(&mut self, request: Open) {
        if let Some(id) = &request.id {
            self.by_id.entry(id.clone()).or_default().push(self.started);
        }
        self.list.insert(self.started, request);
        self.started += 1;
    }

    /// The last one that has an id.
    fn last_of(&mut self, id: &str) -> Option<u64> {
        let places = self.by_id.get_mut(id)?;
        while places.pop_if(|place| !self.list.contains_key(place)).is_some() {}
        places.last().copied()
    }
}

#[derive(Default)]
struct Sums {
    requests: u64,
    failed: u64,
    statuses: BTreeMap<u16, u64>,
    ended: u64,
    times: Vec<u64>,
}

impl Report for HttpReport {
    fn limit(&mut self, n: usize) {
        self.endpoints.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }
}

impl Collect for Http {
    type Report = HttpReport;

    fn finish(self) -> HttpReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> HttpReport {
        report(self.0.so_far())
    }
}

fn report((kept, clock): Found<HttpEvent>) -> HttpReport {
    let mut sums: BTreeMap<Key, Sums> = BTreeMap::new();
    let mut open: HashMap<Teller, Requests> = HashMap::new();
    for Kept { timestamp, what: HttpEvent { by, what, id }, .. } in kept {
        let open = open.entry(by).or_default();
        match what {
            What::Start { method, path } => {
                let key = (by, method, path);
                sums.entry(key.clone()).or_default().requests += 1;
                open.begin(Open { key, start: timestamp, id, failed: false });
            }
            What::Stop { .. } | What::Failed => {
                let found = id.and_then(|id| open.last_of(&id));
                let certain = found.is_some() || open.list.len() == 1;
                let Some(index) = found.or_else(|| open.list.last_key_value().map(|(index, _)| *index))
                else {
                    continue;
                };
                let Some(request) = open.list.get_mut(&index) else { continue };
                let of = sums.entry(request.key.clone()).or_default();
                let status = match what {
                    What::Stop { status } => status,
                    _ => Some(NO_ANSWER),
                };
                // A failure is told, and then once more as the status of the end.
                if status == Some(NO_ANSWER) && !std::mem::replace(&mut request.failed, true) {
                    of.failed += 1;
                }
                if let Some(status) = status.and_then(|status| u16::try_from(status).ok()) {
                    *of.statuses.entry(status).or_default() += 1;
                }
                if matches!(what, What::Stop { .. }) {
                    of.ended += 1;
                    if certain {
                        of.times.push(clock.ns(request.start, timestamp));
                    }
                    open.list.remove(&index);
                }
            }
        }
    }
    of_sums(sums)
}

impl Observe for Http {
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |metadata, event, payload| {
            let by = Teller::of(&metadata.provider)?;
            let what = what(by, payload)?;
            let activity = event.activity_id.filter(|id| !id.is_nil()).map(|id| id.to_string());
            let id = payload.text("requestId").filter(|id| !id.is_empty()).or(activity);
            Some(HttpEvent { by, what, id })
        });
    }
}

fn of_sums(mut sums: BTreeMap<Key, Sums>) -> HttpReport {
    // Kestrel knows the times of requests best, hosting their exceptions.
    if sums.keys().any(|(by, ..)| *by == Teller::Kestrel) {
        let hosting: Vec<Key> = sums.keys().filter(|(by, ..)| *by == Teller::Hosting).cloned().collect();
        for key in hosting {
            let Some(of) = sums.remove(&key) else { continue };
            if let Some(same) = sums.get_mut(&(Teller::Kestrel, key.1, key.2)) {
                same.failed = same.failed.max(of.failed);
            }
        }
    }
    let mut report = HttpReport::default();
    for ((by, method, path), of) in sums {
        let side = if by == Teller::Client { Side::Client } else { Side::Server };
        let (requests, failed) = match side {
            Side::Server => (&mut report.server_requests_count, &mut report.server_exceptions_count),
            Side::Client => (&mut report.client_requests_count, &mut report.client_failures_count),
        };
        *requests += of.requests;
        *failed += of.failed;
        if side == Side::Client {
            report.client_error_statuses_count += of.statuses.range(400..).map(|(_, n)| n).sum::<u64>();
        }
        report.endpoints.push(Endpoint {
            side,
            method,
            path,
            requests_count: of.requests,
            failed_count: of.failed,
            statuses: of.statuses,
            unfinished_count: of.requests.saturating_sub(of.ended),
            durations: Durations::of(of.times),
        });
    }
    report.endpoints.sort_by_key(|endpoint| (endpoint.side, std::cmp::Reverse(endpoint.requests_count)));
    report
}

fn what(by: Teller, payload: Payload<'_>) -> Option<What> {
    let path = |text: String| text.split(['?', '#']).next().unwrap_or_default().to_owned();
    Some(match (by, payload.schema().name()) {
        (Teller::Client, "RequestStart") => {
            let (scheme, host) = (text(payload, "scheme"), text(payload, "host"));
            let port = payload.u64("port").unwrap_or(0);
            let path = path(text(payload, "pathAndQuery"));
            What::Start { method: None, path: format!("{scheme}://{host}:{port}{path}") }
        }
        (_, "RequestStart") => {
            What::Start { method: payload.text("method"), path: path(text(payload, "path")) }
        }
        // .NET 8 and later tell the status.
        (_, "RequestStop") => {
            What::Stop { status: payload.get("statusCode").and_then(|status| status.as_i64()) }
        }
        (Teller::Hosting, "UnhandledException") | (Teller::Client, "RequestFailed") => What::Failed,
        _ => return None,
    })
}
