//! HTTP requests: those that the program answered, and those that it sent.
//!
//! The start and the stop of a request belong together by its id (Kestrel's), by its activity, or where there is
//! neither because no other request was open at any time between them; else its outcome stays unknown.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::collector::{Collector, Found, Kept, text};
use super::http_runs::{Counted, Id, Runs};
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
    /// How many of them failed: without a response, or with one that ended early, whose status is counted in `statuses` too.
    pub client_failures_count: u64,
    /// How many of them were answered with an error: a status of 400 or more.
    pub client_error_statuses_count: u64,
    /// How many requests of both sides ran at the same time as others, with nothing in the recording that tells them apart:
    /// their durations are unknown, and so are their statuses and failures unless all of them had the same.
    pub overlapping_count: u64,
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
    /// How many failed: on a server by an exception that nobody handled, on a client without a complete response.
    /// `None` if unknown, because requests overlapped.
    pub failed_count: Option<u64>,
    /// How many were answered with which status; a server does not tell it.
    pub statuses: BTreeMap<u16, u64>,
    /// Of how many the status is unknown, because they overlapped with requests that had another one.
    pub unknown_statuses_count: u64,
    /// How many did not end in the recording; `None` if unknown, because requests overlapped.
    pub unfinished_count: Option<u64>,
    /// How long the others took, as far as that is known.
    pub durations: Durations,
}

/// Whoever tells of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Teller {
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
    id: Id,
}

/// Makes a [`HttpReport`].
#[derive(Debug)]
pub struct Http(Collector<HttpEvent>);

impl Default for Http {
    fn default() -> Self {
        Self(Collector::new(|metadata| Teller::of(&metadata.provider).is_some()))
    }
}

/// A teller, a method and a path.
pub(super) type Key = (Teller, Option<String>, String);

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
    let mut runs: HashMap<Teller, Runs> = HashMap::new();
    for Kept { timestamp, what: HttpEvent { by, what, id }, .. } in kept {
        let runs = runs.entry(by).or_default();
        match what {
            What::Start { method, path } => runs.start((by, method, path), id, timestamp),
            What::Stop { status } => runs.stop(id, status, |began| clock.ns(began, timestamp)),
            What::Failed => runs.fail(id),
        }
    }
    of_counted(runs.into_iter().map(|(by, runs)| (by, runs.finish())).collect())
}

impl Observe for Http {
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |metadata, event, payload| {
            let by = Teller::of(&metadata.provider)?;
            let what = what(by, payload)?;
            let activity = event.activity_id.filter(|id| !id.is_nil()).map(|id| id.to_string());
            let id = payload.text("requestId").filter(|id| !id.is_empty()).or(activity);
            Some(HttpEvent { by, what, id: Id(id) })
        });
    }
}

fn of_counted(mut counted: BTreeMap<Teller, Counted>) -> HttpReport {
    let mut report = HttpReport::default();
    if let Some(of) = counted.get(&Teller::Client) {
        report.client_failures_count = of.failures;
        report.client_error_statuses_count = of.error_statuses;
    }
    if let Some(of) = counted.get(&Teller::Hosting) {
        report.server_exceptions_count = of.failures;
    }
    // Kestrel knows the times of requests best, hosting their exceptions.
    if let Some(mut kestrel) = counted.remove(&Teller::Kestrel) {
        for ((_, method, path), of) in counted.remove(&Teller::Hosting).map(|it| it.sums).unwrap_or_default()
        {
            if let Some(same) = kestrel.sums.get_mut(&(Teller::Kestrel, method, path)) {
                same.failed = of.failed;
            }
        }
        counted.insert(Teller::Kestrel, kestrel);
    }
    for ((by, method, path), of) in counted.into_values().flat_map(|it| it.sums) {
        let side = if by == Teller::Client { Side::Client } else { Side::Server };
        match side {
            Side::Server => report.server_requests_count += of.requests,
            Side::Client => report.client_requests_count += of.requests,
        }
        report.overlapping_count += of.overlapping;
        report.endpoints.push(Endpoint {
            side,
            method,
            path,
            requests_count: of.requests,
            failed_count: of.failed.known(),
            statuses: of.statuses,
            unknown_statuses_count: of.unknown_statuses,
            unfinished_count: of.unfinished.known(),
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
