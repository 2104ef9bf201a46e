//! Reports exceptions by type.

use std::collections::BTreeMap;

use runtap_model::order;
use serde::Serialize;

use super::collector::{Collected, CollectedEvent, Collector, small, text};
use super::{Collect, Observe, Report, StreamItem};
use crate::clr;

/// The exceptions in a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExceptionsReport {
    /// The number of exceptions thrown.
    pub thrown_count: u64,
    /// The number of exceptions rethrown by a handler. `None` if unknown: .NET 9 and later do not report them.
    pub rethrown_count: Option<u64>,
    /// The types, most frequent first.
    pub types: Vec<ExceptionType>,
    /// The exceptions in order of time.
    pub exceptions: Vec<Thrown>,
}

/// The exceptions of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExceptionType {
    /// The name of the type.
    #[serde(rename = "type")]
    pub name: String,
    /// The number of exceptions thrown.
    pub thrown_count: u64,
    /// The number of exceptions rethrown. `None` if unknown.
    pub rethrown_count: Option<u64>,
    /// The message of the first exception.
    pub first_message: String,
}

/// An exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thrown {
    /// The time in nanoseconds since the start of the session.
    pub ts_ns: i64,
    /// The thread.
    pub thread: u64,
    /// The name of the type.
    #[serde(rename = "type")]
    pub name: String,
    /// The message.
    pub message: String,
    /// The HRESULT.
    pub hresult: u32,
    /// Whether a handler rethrew the exception.
    pub rethrown: bool,
}

/// The flag of a rethrown exception.
const RETHROWN: u32 = 4;

/// `Runtime/Start`, which has the version of the runtime.
const RUNTIME_START: u32 = 187;

/// `Sku` of the .NET Framework.
const DESKTOP_CLR: u32 = 1;

/// `Sku` of .NET and .NET Core.
const CORE_CLR: u32 = 2;

#[derive(Debug, Clone)]
enum EventData {
    Thrown(Thrown),
    Runtime { reports_rethrown: bool },
}

/// Collects an [`ExceptionsReport`].
#[derive(Debug)]
pub struct Exceptions(Collector<EventData>);

impl Default for Exceptions {
    fn default() -> Self {
        Self(Collector::new(|metadata| {
            matches!(
                (metadata.provider.as_str(), metadata.event_id),
                (clr::RUNTIME, 80 | RUNTIME_START) | (clr::RUNDOWN, RUNTIME_START)
            )
        }))
    }
}

impl Report for ExceptionsReport {
    fn limit(&mut self, n: usize) {
        self.types.truncate(n);
        self.exceptions.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.exceptions.is_empty() && self.thrown_count + self.rethrown_count.unwrap_or(0) == 0
    }
}

impl Collect for Exceptions {
    type Report = ExceptionsReport;

    fn finish(self) -> ExceptionsReport {
        report(self.0.finish())
    }

    fn snapshot(&self) -> ExceptionsReport {
        report(self.0.so_far())
    }
}

fn report((kept, clock): Collected<EventData>) -> ExceptionsReport {
    let mut types: BTreeMap<String, (ExceptionType, u64)> = BTreeMap::new();
    let mut report = ExceptionsReport::default();
    let mut rethrown_count = 0_u64;
    let mut runtimes = Vec::new();
    for CollectedEvent { timestamp, thread, what } in kept {
        let thrown = match what {
            EventData::Thrown(thrown) => Thrown { ts_ns: clock.at(timestamp), thread, ..thrown },
            EventData::Runtime { reports_rethrown } => {
                runtimes.push(reports_rethrown);
                continue;
            }
        };
        let (of_type, rethrown_of_type) = types.entry(thrown.name.clone()).or_insert_with(|| {
            let (name, first_message) = (thrown.name.clone(), thrown.message.clone());
            (ExceptionType { name, first_message, ..ExceptionType::default() }, 0)
        });
        if thrown.rethrown {
            (rethrown_count, *rethrown_of_type) = (rethrown_count + 1, *rethrown_of_type + 1);
        } else {
            (report.thrown_count, of_type.thrown_count) = (report.thrown_count + 1, of_type.thrown_count + 1);
        }
        report.exceptions.push(thrown);
    }
    // .NET 9 and later report them too if DOTNET_LegacyExceptionHandling is set.
    let is_known = rethrown_count > 0 || !runtimes.is_empty() && !runtimes.contains(&false);
    report.rethrown_count = is_known.then_some(rethrown_count);
    report.types = types
        .into_values()
        .map(|(of_type, rethrown)| ExceptionType { rethrown_count: is_known.then_some(rethrown), ..of_type })
        .collect();
    order::sort_by_key(&mut report.types, |it| std::cmp::Reverse(it.thrown_count));
    report
}

impl Observe for Exceptions {
    fn item(&mut self, item: &StreamItem<'_>) {
        self.0.item(item, |metadata, _, payload| {
            if metadata.event_id == RUNTIME_START {
                // Native AOT has another SKU.
                let is_clr = matches!(small(payload, "Sku")?, DESKTOP_CLR | CORE_CLR);
                let reports_rethrown = is_clr && small(payload, "VMMajorVersion")? < 9;
                return Some(EventData::Runtime { reports_rethrown });
            }
            Some(EventData::Thrown(Thrown {
                ts_ns: 0,
                thread: 0,
                name: text(payload, "ExceptionType"),
                message: text(payload, "ExceptionMessage"),
                hresult: small(payload, "ExceptionHRESULT").unwrap_or(0),
                rethrown: small(payload, "ExceptionFlags").unwrap_or(0) & RETHROWN != 0,
            }))
        });
    }
}
