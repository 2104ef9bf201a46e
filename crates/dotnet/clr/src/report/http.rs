//! Reports HTTP requests that the program received and sent.
//!
//! The start and the stop of a request are matched by its id (Kestrel), by its activity, or, without either, if no other request was
//! open between them. Otherwise the outcome is unknown.

use std::collections::{BTreeMap, HashMap};

use runtap_model::order;
use serde::Serialize;

use super::collector::{Collected, CollectedEvent, Collector, text};
use super::http_runs::{Id, RunTotals, Runs};
use super::{Collect, Durations, Observe, Payload, Report, StreamItem};

/// The HTTP requests in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HttpReport {
    /// The number of received requests.
    pub server_requests_count: u64,
    /// The number of received requests that ended with an unhandled exception.
    pub server_exceptions_count: u64,
    /// The number of sent requests.
    pub client_requests_count: u64,
    /// The number of sent requests that failed without a complete response. The status of an incomplete response is counted in
    /// `statuses` too.
    pub client_failures_count: u64,
    /// The number of sent requests with an error status (400 or more).
    pub client_error_statuses_count: u64,
    /// The number of requests, received and sent, that overlapped with others and can't be distinguished. Their durations are
    /// unknown, and so are their statuses and failures unless all of them are equal.
    pub overlapping_count: u64,
    /// The endpoints by side, method and path, most frequent first.
    pub endpoints: Vec<Endpoint>,
}

/// The side of a request on which the program was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The program received the request.
    Server,
    /// The program sent the request.
    Client,
}

/// The requests of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// The side.
    pub side: Side,
    /// The method, such as `GET`. `None` if unknown (client).
    pub method: Option<String>,
    /// The path without its query; for clients preceded by the host.
    pub path: String,
    /// The number of requests.
    pub requests_count: u64,
    /// The number of failed requests: on a server those with an unhandled exception, on a client those without a complete response.
    /// `None` if unknown because requests overlapped.
    pub failed_count: Option<u64>,
    /// The number of responses by status. Empty for servers, which do not report it.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of requests whose status is unknown because they overlapped with requests that had another status.
    pub unknown_statuses_count: u64,
    /// The number of requests that did not end in the recording. `None` if unknown because requests overlapped.
    pub unfinished_count: Option<u64>,
    /// The known durations of finished requests.
    pub durations: Durations,
}

/// The component that reports requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum RequestSource {
    Hosting,
    Kestrel,
    Client,
}

impl RequestSource {
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
enum EventData {
    Start {
        method: Option<String>,
        path: String,
    },
    /// The end of a request, with the status if reported.
    Stop {
        status: Option<i64>,
    },
    Failed,
}

#[derive(Debug, Clone)]
struct HttpEvent {
    by: RequestSource,
    what: EventData,
    id: Id,
}

/// Collects an [`HttpReport`].
#[derive(Debug)]
pub struct Http(Collector<HttpEvent>);

impl Default for Http {
    fn default() -> Self {
        Self(Collector::new(|metadata| RequestSource::of(&metadata.provider).is_some()))
    }
}

/// A component, a method and a path.
pub(super) type EndpointKey = (RequestSource, Option<String>, String);

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

fn report((kept, clock): Collected<HttpEvent>) -> HttpReport {
    let mut runs: HashMap<RequestSource, Runs> = HashMap::new();
    for CollectedEvent { timestamp, what: HttpEvent { by, what, id }, .. } in kept {
        let runs = runs.entry(by).or_default();
        match what {
            EventData::Start { method, path } => runs.start((by, method, path), id, timestamp),
            EventData::Stop { status } => runs.stop(id, status, |began| clock.ns(began, timestamp)),
            EventData::Failed => runs.fail(id),
        }
    }
    of_counted(order::to_map(runs.into_iter().map(|(by, runs)| (by, runs.finish()))))
}

impl Observe for Http {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, event, payload| {
            let by = RequestSource::of(&metadata.provider)?;
            let what = decode_event(by, payload)?;
            let activity = event.activity_id.filter(|id| !id.is_nil()).map(|id| id.to_string());
            let id = payload.text("requestId").filter(|id| !id.is_empty()).or(activity);
            Some(HttpEvent { by, what, id: Id(id) })
        });
    }
}

fn of_counted(mut counted: BTreeMap<RequestSource, RunTotals>) -> HttpReport {
    let mut report = HttpReport::default();
    if let Some(of) = counted.get(&RequestSource::Client) {
        report.client_failures_count = of.failures;
        report.client_error_statuses_count = of.error_statuses;
    }
    if let Some(of) = counted.get(&RequestSource::Hosting) {
        report.server_exceptions_count = of.failures;
    }
    // Kestrel has the most exact times, the hosting layer the exceptions.
    if let Some(mut kestrel) = counted.remove(&RequestSource::Kestrel) {
        for ((_, method, path), of) in
            counted.remove(&RequestSource::Hosting).map(|it| it.sums).unwrap_or_default()
        {
            if let Some(same) = kestrel.sums.get_mut(&(RequestSource::Kestrel, method, path)) {
                same.failed = of.failed;
            }
        }
        counted.insert(RequestSource::Kestrel, kestrel);
    }
    for ((by, method, path), of) in counted.into_values().flat_map(|it| it.sums) {
        let side = if by == RequestSource::Client { Side::Client } else { Side::Server };
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
    order::sort_by_key(&mut report.endpoints, |endpoint| {
        (endpoint.side, std::cmp::Reverse(endpoint.requests_count))
    });
    report
}

fn decode_event(by: RequestSource, payload: Payload<'_>) -> Option<EventData> {
    let path = |text: String| text.split(['?', '#']).next().unwrap_or_default().to_owned();
    Some(match (by, payload.schema().name()) {
        (RequestSource::Client, "RequestStart") => {
            let (scheme, host) = (text(payload, "scheme"), text(payload, "host"));
            let port = payload.u64("port").unwrap_or(0);
            let path = path(text(payload, "pathAndQuery"));
            EventData::Start { method: None, path: format!("{scheme}://{host}:{port}{path}") }
        }
        (_, "RequestStart") => {
            EventData::Start { method: payload.text("method"), path: path(text(payload, "path")) }
        }
        // .NET 8 and later report the status.
        (_, "RequestStop") => {
            EventData::Stop { status: payload.get("statusCode").and_then(|status| status.as_i64()) }
        }
        (RequestSource::Hosting, "UnhandledException") | (RequestSource::Client, "RequestFailed") => {
            EventData::Failed
        }
        _ => return None,
    })
}
