//! Exceptions: which types, how often, what they said.

use std::collections::BTreeMap;

use serde::Serialize;

use super::collector::{Collector, Found, Kept, small, text};
use super::{Collect, Item, Observe, Report};
use crate::clr;

/// What a recording says about exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExceptionsReport {
    /// How many were thrown.
    pub thrown_count: u64,
    /// How many were thrown once more by a handler; .NET 9 and later do not tell.
    pub rethrown_count: u64,
    /// By type, the most frequent first.
    pub types: Vec<ExceptionType>,
    /// Each of them, in the order of time.
    pub exceptions: Vec<Thrown>,
}

/// Exceptions of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExceptionType {
    /// The type.
    #[serde(rename = "type")]
    pub name: String,
    /// How many were thrown.
    pub thrown_count: u64,
    /// How many were thrown once more.
    pub rethrown_count: u64,
    /// What the first one said.
    pub first_message: String,
}

/// An exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thrown {
    /// When.
    pub ts_ns: i64,
    /// On which thread.
    pub thread: u64,
    /// Its type.
    #[serde(rename = "type")]
    pub name: String,
    /// What it says.
    pub message: String,
    /// Its number.
    pub hresult: u32,
    /// Whether a handler threw it once more.
    pub rethrown: bool,
}

/// Flag of an exception that is thrown once more.
const RETHROWN: u32 = 4;

/// Makes an [`ExceptionsReport`].
#[derive(Debug)]
pub struct Exceptions(Collector<Thrown>);

impl Default for Exceptions {
    fn default() -> Self {
        Self(Collector::new(|metadata| metadata.provider == clr::RUNTIME && metadata.event_id == 80))
    }
}

impl Report for ExceptionsReport {
    fn limit(&mut self, n: usize) {
        self.types.truncate(n);
        self.exceptions.truncate(n);
    }

    fn is_empty(&self) -> bool {
        self.thrown_count + self.rethrown_count == 0
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

fn report((kept, clock): Found<Thrown>) -> ExceptionsReport {
    let mut types: BTreeMap<String, ExceptionType> = BTreeMap::new();
    let mut report = ExceptionsReport::default();
    for Kept { timestamp, thread, what } in kept {
        let thrown = Thrown { ts_ns: clock.at(timestamp), thread, ..what };
        let of_type = types.entry(thrown.name.clone()).or_insert_with(|| ExceptionType {
            name: thrown.name.clone(),
            first_message: thrown.message.clone(),
            ..ExceptionType::default()
        });
        if thrown.rethrown {
            (report.rethrown_count, of_type.rethrown_count) =
                (report.rethrown_count + 1, of_type.rethrown_count + 1);
        } else {
            (report.thrown_count, of_type.thrown_count) = (report.thrown_count + 1, of_type.thrown_count + 1);
        }
        report.exceptions.push(thrown);
    }
    report.types = types.into_values().collect();
    report.types.sort_by_key(|it| std::cmp::Reverse(it.thrown_count));
    report
}

impl Observe for Exceptions {
    fn item(&mut self, item: &Item<'_>) {
        self.0.item(item, |_, _, payload| {
            Some(Thrown {
                ts_ns: 0,
                thread: 0,
                name: text(payload, "ExceptionType"),
                message: text(payload, "ExceptionMessage"),
                hresult: small(payload, "ExceptionHRESULT").unwrap_or(0),
                rethrown: small(payload, "ExceptionFlags").unwrap_or(0) & RETHROWN != 0,
            })
        });
    }
}
