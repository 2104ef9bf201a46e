//! The syntax of parts of a recording.
//!
//! A [`Part`] is resolved to a [`ResolvedPart`] with the report on the whole recording, because the ends of
//! segments are known only after all markers have arrived.
//!
//! | syntax | part |
//! |---|---|
//! | `NAME` | the part that was named while HQ recorded |
//! | `KEY=VALUE` | every segment from the marker KEY with VALUE to the next marker KEY |
//! | `KEY=` | every segment of KEY |
//! | `FROM..UNTIL` | from one edge to another; one of them may be omitted |
//!
//! An edge is a time of the agent's clock (`1.5s`, `250ms`, `1500000ns`) or the first marker `KEY=VALUE`.

use std::fmt;
use std::time::Duration;

use runtap_bytefrog::{Report, Segment, Selection};
use runtap_model::order;
use thiserror::Error;

use crate::recording::marks::Marks;

/// The start or the end of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edge {
    /// A time of the agent's clock, in nanoseconds.
    Time(i64),
    /// The first marker with this key and value; for an end, the first one after the start.
    Marker(String, String),
}

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Part {
    /// The whole recording.
    #[default]
    Whole,
    /// The part with this name.
    Named(String),
    /// The segments of a key, with any value for `None`.
    Segment(String, Option<String>),
    /// The part between two edges.
    Range(Option<Edge>, Option<Edge>),
}

/// An error for the invalid syntax of a part.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PartProblem {
    /// The part is empty.
    #[error("a part has the form NAME, KEY=VALUE or FROM..UNTIL")]
    Empty,
    /// The end is not after the start.
    #[error("'{0}' is empty: its end is not after its start")]
    Backwards(String),
    /// An edge is neither a time nor a marker.
    #[error("'{0}' is neither a time with its unit (1.5s, 250ms, 10us, 7ns) nor a marker (KEY=VALUE)")]
    Edge(String),
}

/// An error for a part that a recording does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownPart {
    /// No part has this name.
    #[error("no part is named '{name}'{}", listed(.known))]
    Named {
        /// The name.
        name: String,
        /// The names of the parts that exist.
        known: Vec<String>,
    },
    /// The end is not after the start.
    #[error("{name} is empty: its end is not after its start")]
    Backwards {
        /// The part.
        name: String,
    },
    /// No segment matches.
    #[error("there is no segment {name}{}", listed(.known))]
    Segment {
        /// The part.
        name: String,
        /// The segments that exist.
        known: Vec<String>,
    },
}

fn listed(known: &[String]) -> String {
    const MAX_NAMES: usize = 10;
    let names: Vec<&str> = known.iter().take(MAX_NAMES).map(String::as_str).collect();
    match known.len() {
        0 => "; the recording has none".to_owned(),
        n if n > MAX_NAMES => format!("; the recording has {} and {} more", names.join(", "), n - MAX_NAMES),
        _ => format!("; the recording has {}", names.join(", ")),
    }
}

/// A part in terms of a specific recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResolvedPart {
    /// The selection by the agent's clock or by sequence IDs.
    pub selection: Selection,
    /// The ranges of HQ's clock, which marks use; `None` for no restriction.
    pub marked: Option<Vec<(Duration, Duration)>>,
}

impl Part {
    /// Parses a part.
    ///
    /// # Errors
    /// Fails if the syntax is invalid.
    pub fn parse(text: &str) -> Result<Self, PartProblem> {
        if let Some((from, until)) = text.split_once("..") {
            let edge = |text: &str| (!text.is_empty()).then(|| Edge::parse(text)).transpose();
            return match (edge(from)?, edge(until)?) {
                (None, None) => Err(PartProblem::Empty),
                (Some(Edge::Time(from)), Some(Edge::Time(until))) if from >= until => {
                    Err(PartProblem::Backwards(text.to_owned()))
                }
                (from, until) => Ok(Self::Range(from, until)),
            };
        }
        match text.split_once('=') {
            _ if text.is_empty() => Err(PartProblem::Empty),
            None => Ok(Self::Named(text.to_owned())),
            Some((key, value)) => {
                Ok(Self::Segment(key.to_owned(), (!value.is_empty()).then(|| value.to_owned())))
            }
        }
    }

    /// Resolves the part for a recording with this report and these marks.
    ///
    /// # Errors
    /// Fails if the recording does not have the part.
    pub fn resolve(&self, report: &Report, marks: &Marks) -> Result<ResolvedPart, UnknownPart> {
        match self {
            Self::Whole => Ok(ResolvedPart::default()),
            Self::Named(name) => {
                let ranges = marks.ranges(name);
                if ranges.is_empty() {
                    let known = marks.names().into_iter().map(str::to_owned).collect();
                    return Err(UnknownPart::Named { name: name.clone(), known });
                }
                Ok(ResolvedPart { selection: Selection::All, marked: Some(ranges) })
            }
            Self::Segment(key, value) => {
                let has_value = |segment: &Segment| {
                    value.as_ref().is_none_or(|value| segment.value.to_string() == *value)
                };
                let matches = |segment: &Segment| segment.key.to_string() == *key && has_value(segment);
                let matching: Vec<&Segment> = segments(report).filter(|segment| matches(segment)).collect();
                if matching.is_empty() {
                    return Err(unknown(self, report));
                }
                let times = |(from, until): (TracePoint, TracePoint)| (from.time, until.time);
                let points = matching
                    .into_iter()
                    .map(|segment| (TracePoint::start(segment), TracePoint::end(segment)));
                let points: Vec<(TracePoint, TracePoint)> = points.collect();
                let by_sequence: Option<Vec<(u64, u64)>> =
                    points.iter().map(|(from, until)| from.sequence.zip(until.sequence)).collect();
                Ok(ResolvedPart {
                    selection: match by_sequence.filter(|_| has_sequences(report)) {
                        Some(ranges) => Selection::Sequences(ranges),
                        None => Selection::Times(points.into_iter().map(times).collect()),
                    },
                    marked: None,
                })
            }
            Self::Range(from, until) => {
                let start = match from {
                    None => TracePoint::FIRST,
                    Some(edge) => {
                        edge.point(TracePoint::FIRST, report).ok_or_else(|| unknown(self, report))?
                    }
                };
                let end = match until {
                    None => TracePoint::LAST,
                    Some(edge) => edge.point(start, report).ok_or_else(|| unknown(self, report))?,
                };
                if start.time >= end.time && !end.is_after(start) {
                    return Err(UnknownPart::Backwards { name: self.to_string() });
                }
                let by_sequence = start.sequence.zip(end.sequence).filter(|_| has_sequences(report));
                // Sequence IDs are exact, but can be used only if neither edge is a time.
                let is_timed = [from, until].iter().any(|edge| matches!(edge, Some(Edge::Time(_))));
                let selection = match by_sequence.filter(|_| !is_timed) {
                    Some(range) => Selection::Sequences(vec![range]),
                    None => Selection::Times(vec![(start.time, end.time)]),
                };
                Ok(ResolvedPart { selection, marked: None })
            }
        }
    }
}

/// Returns whether markers have IDs in one order: in F1 each thread has its own.
fn has_sequences(report: &Report) -> bool {
    report.sequences.is_some()
}

fn segments(report: &Report) -> impl Iterator<Item = &Segment> {
    report.segments.iter().map(|report| &report.segment)
}

fn unknown(part: &Part, report: &Report) -> UnknownPart {
    let mut known: Vec<String> =
        segments(report).map(|segment| format!("{}={}", segment.key, segment.value)).collect();
    order::sort(&mut known);
    known.dedup();
    UnknownPart::Segment { name: part.to_string(), known }
}

/// A point in a trace.
#[derive(Debug, Clone, Copy)]
struct TracePoint {
    time: i64,
    sequence: Option<u64>,
}

impl TracePoint {
    const FIRST: Self = Self { time: i64::MIN, sequence: Some(0) };
    const LAST: Self = Self { time: i64::MAX, sequence: Some(u64::MAX) };

    fn start(segment: &Segment) -> Self {
        Self { time: segment.start, sequence: Some(segment.sequences.0) }
    }

    fn end(segment: &Segment) -> Self {
        match segment.end {
            Some(time) => Self { time, sequence: segment.sequences.1 },
            None => Self::LAST,
        }
    }

    fn is_after(self, other: Self) -> bool {
        (self.time, self.sequence) > (other.time, other.sequence)
    }
}

impl Edge {
    fn parse(text: &str) -> Result<Self, PartProblem> {
        if let Some((key, value)) = text.split_once('=') {
            return Ok(Self::Marker(key.to_owned(), value.to_owned()));
        }
        let units = [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let wrong = || PartProblem::Edge(text.to_owned());
        let (number, unit) = units
            .iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
            .ok_or_else(wrong)?;
        scaled(number, unit).map(Self::Time).ok_or_else(wrong)
    }

    /// Returns the first matching point after another one; `None` if no later point matches.
    fn point(&self, after: TracePoint, report: &Report) -> Option<TracePoint> {
        match self {
            Self::Time(time) => Some(TracePoint { time: *time, sequence: None }),
            Self::Marker(key, value) => {
                let of_key = segments(report).filter(|segment| segment.key.to_string() == *key);
                // The marker `E` starts no segment, but ends one.
                let mut points: Vec<TracePoint> = if value == "E" {
                    of_key.filter(|segment| segment.end.is_some()).map(TracePoint::end).collect()
                } else {
                    of_key
                        .filter(|segment| segment.value.to_string() == *value)
                        .map(TracePoint::start)
                        .collect()
                };
                points.retain(|point| point.is_after(after));
                points.into_iter().min_by_key(|point| (point.time, point.sequence))
            }
        }
    }
}

/// Converts a decimal number with a unit to nanoseconds, truncated; `None` if it is invalid.
fn scaled(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let parts = 10_i64.pow(u32::try_from(fraction.len()).ok()?);
    let fraction = fraction.parse::<i64>().ok()?.checked_mul(unit)? / parts;
    whole.parse::<i64>().ok()?.checked_mul(unit)?.checked_add(fraction)
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(time) => write!(f, "{time}ns"),
            Self::Marker(key, value) => write!(f, "{key}={value}"),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edge = |edge: &Option<Edge>| edge.as_ref().map_or_else(String::new, ToString::to_string);
        match self {
            Self::Whole => f.write_str("everything"),
            Self::Named(name) => f.write_str(name),
            Self::Segment(key, value) => write!(f, "{key}={}", value.as_deref().unwrap_or_default()),
            Self::Range(from, until) => write!(f, "{}..{}", edge(from), edge(until)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_parsed() {
        let marker = |key: &str, value: &str| Some(Edge::Marker(key.into(), value.into()));
        for (text, part) in [
            ("log in", Part::Named("log in".into())),
            ("request=7", Part::Segment("request".into(), Some("7".into()))),
            ("request=", Part::Segment("request".into(), None)),
            ("1.5s..", Part::Range(Some(Edge::Time(1_500_000_000)), None)),
            ("..250ms", Part::Range(None, Some(Edge::Time(250_000_000)))),
            ("7ns..0.25us", Part::Range(Some(Edge::Time(7)), Some(Edge::Time(250)))),
            ("a=b..c=d", Part::Range(marker("a", "b"), marker("c", "d"))),
        ] {
            assert_eq!(Part::parse(text), Ok(part), "{text}");
        }
        assert_eq!(Part::parse(""), Err(PartProblem::Empty));
        assert_eq!(Part::parse(".."), Err(PartProblem::Empty));
        for wrong in ["5s..1s", "1s..1000ms"] {
            assert_eq!(Part::parse(wrong), Err(PartProblem::Backwards(wrong.into())));
        }
        for wrong in ["5..", "..1.s", "-1s..", "1e3s..", "99999999999s..", "now.."] {
            assert!(matches!(Part::parse(wrong), Err(PartProblem::Edge(_))), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_part_round_trips(text in "[a-z0-9=.s]{0,12}") {
            if let Ok(part) = Part::parse(&text) {
                prop_assert_eq!(Part::parse(&part.to_string()), Ok(part));
            }
        }
    }
}
