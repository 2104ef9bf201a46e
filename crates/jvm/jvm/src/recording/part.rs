//! Names of parts of a recording.
//!
//! Owns: [`Part`], how people write it, and what it is in a recording ([`Resolved`]), which takes the report on the whole:
//! where segments begin and end is known when all markers have come.
//!
//! | written | part |
//! |---|---|
//! | `NAME` | what HQ has marked with this name while it recorded |
//! | `KEY=VALUE` | every segment from the marker KEY with VALUE to the next marker KEY |
//! | `KEY=` | every segment of KEY |
//! | `FROM..UNTIL` | from one edge up to another; one of them may be missing |
//!
//! An edge is a time of the agent's clock (`1.5s`, `250ms`, `1500000ns`) or a marker (`KEY=VALUE`, the first one).

use std::fmt;
use std::time::Duration;

use runtap_bytefrog::{Report, Segment, Selection};
use thiserror::Error;

use crate::recording::marks::Marks;

/// The beginning or the end of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edge {
    /// Nanoseconds of the agent's clock.
    Time(i64),
    /// The first marker with this key and value. As an end: the first one after the beginning.
    Marker(String, String),
}

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Part {
    /// All of it.
    #[default]
    Whole,
    /// What HQ has marked.
    Named(String),
    /// Segments of a key; `None`: with any value.
    Segment(String, Option<String>),
    /// Between two edges.
    Range(Option<Edge>, Option<Edge>),
}

/// A part that can't be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PartProblem {
    /// Nothing is said.
    #[error("a part is NAME, KEY=VALUE or FROM..UNTIL")]
    Empty,
    /// The end is not behind the beginning.
    #[error("'{0}' has nothing in it: it ends where it begins, or before")]
    Backwards(String),
    /// Neither a time nor a marker.
    #[error("'{0}' is neither a time with its unit (1.5s, 250ms, 10us, 7ns) nor a marker (KEY=VALUE)")]
    Edge(String),
}

/// A part that a recording does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnknownPart {
    /// Nothing was marked with this name.
    #[error("no part is named '{name}'{}", listed(.there))]
    Named {
        /// The name.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
    /// Its end is not behind its beginning.
    #[error("{name} has nothing in it: it ends where it begins, or before")]
    Backwards {
        /// As it was written.
        name: String,
    },
    /// No marker has begun such a segment.
    #[error("there is no segment {name}{}", listed(.there))]
    Segment {
        /// As it was written.
        name: String,
        /// Those that there are.
        there: Vec<String>,
    },
}

fn listed(there: &[String]) -> String {
    const MOST: usize = 10;
    let names: Vec<&str> = there.iter().take(MOST).map(String::as_str).collect();
    match there.len() {
        0 => "; the recording has none".to_owned(),
        n if n > MOST => format!("; the recording has {} and {} more", names.join(", "), n - MOST),
        _ => format!("; the recording has {}", names.join(", ")),
    }
}

/// What a part is in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// By the agent's clock or sequence ids.
    pub selection: Selection,
    /// By HQ's clock, in which marks are; `None`: always.
    pub marked: Option<Vec<(Duration, Duration)>>,
}

impl Part {
    /// Reads what people write.
    ///
    /// # Errors
    /// It is no part.
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

    /// What it is in a recording with these marks, of which this is the report.
    ///
    /// # Errors
    /// The recording has no such part.
    pub fn resolve(&self, report: &Report, marks: &Marks) -> Result<Resolved, UnknownPart> {
        match self {
            Self::Whole => Ok(Resolved::default()),
            Self::Named(name) => {
                let ranges = marks.ranges(name);
                if ranges.is_empty() {
                    let there = marks.names().into_iter().map(str::to_owned).collect();
                    return Err(UnknownPart::Named { name: name.clone(), there });
                }
                Ok(Resolved { selection: Selection::All, marked: Some(ranges) })
            }
            Self::Segment(key, value) => {
                let has_value = |segment: &Segment| {
                    value.as_ref().is_none_or(|value| segment.value.to_string() == *value)
                };
                let is_meant = |segment: &Segment| segment.key.to_string() == *key && has_value(segment);
                let meant: Vec<&Segment> = segments(report).filter(|segment| is_meant(segment)).collect();
                if meant.is_empty() {
                    return Err(unknown(self, report));
                }
                let ours = |(from, until): (Place, Place)| (from.time, until.time);
                let places = meant.into_iter().map(|segment| (Place::begin(segment), Place::end(segment)));
                let places: Vec<(Place, Place)> = places.collect();
                let by_sequence: Option<Vec<(u64, u64)>> =
                    places.iter().map(|(from, until)| from.sequence.zip(until.sequence)).collect();
                Ok(Resolved {
                    selection: match by_sequence.filter(|_| has_sequences(report)) {
                        Some(ranges) => Selection::Sequences(ranges),
                        None => Selection::Times(places.into_iter().map(ours).collect()),
                    },
                    marked: None,
                })
            }
            Self::Range(from, until) => {
                let begin = match from {
                    None => Place::FIRST,
                    Some(edge) => edge.place(Place::FIRST, report).ok_or_else(|| unknown(self, report))?,
                };
                let end = match until {
                    None => Place::LAST,
                    Some(edge) => edge.place(begin, report).ok_or_else(|| unknown(self, report))?,
                };
                if begin.time >= end.time && !end.is_after(begin) {
                    return Err(UnknownPart::Backwards { name: self.to_string() });
                }
                let by_sequence = begin.sequence.zip(end.sequence).filter(|_| has_sequences(report));
                // Whoever gives no time at all has the exact ids.
                let is_timed = [from, until].iter().any(|edge| matches!(edge, Some(Edge::Time(_))));
                let selection = match by_sequence.filter(|_| !is_timed) {
                    Some(range) => Selection::Sequences(vec![range]),
                    None => Selection::Times(vec![(begin.time, end.time)]),
                };
                Ok(Resolved { selection, marked: None })
            }
        }
    }
}

/// Whether markers have ids in one order: in F1 each thread has its own.
fn has_sequences(report: &Report) -> bool {
    report.sequences.is_some()
}

fn segments(report: &Report) -> impl Iterator<Item = &Segment> {
    report.segments.iter().map(|report| &report.segment)
}

fn unknown(part: &Part, report: &Report) -> UnknownPart {
    let mut there: Vec<String> =
        segments(report).map(|segment| format!("{}={}", segment.key, segment.value)).collect();
    there.sort();
    there.dedup();
    UnknownPart::Segment { name: part.to_string(), there }
}

/// A place in a trace.
#[derive(Debug, Clone, Copy)]
struct Place {
    time: i64,
    sequence: Option<u64>,
}

impl Place {
    const FIRST: Self = Self { time: i64::MIN, sequence: Some(0) };
    const LAST: Self = Self { time: i64::MAX, sequence: Some(u64::MAX) };

    fn begin(segment: &Segment) -> Self {
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

    /// The first place of it behind another one. `None`: there is none.
    fn place(&self, behind: Place, report: &Report) -> Option<Place> {
        match self {
            Self::Time(time) => Some(Place { time: *time, sequence: None }),
            Self::Marker(key, value) => {
                let of_key = segments(report).filter(|segment| segment.key.to_string() == *key);
                // The marker `E` begins nothing: it is where a segment ends.
                let mut places: Vec<Place> = if value == "E" {
                    of_key.filter(|segment| segment.end.is_some()).map(Place::end).collect()
                } else {
                    of_key.filter(|segment| segment.value.to_string() == *value).map(Place::begin).collect()
                };
                places.retain(|place| place.is_after(behind));
                places.into_iter().min_by_key(|place| (place.time, place.sequence))
            }
        }
    }
}

/// A decimal number of these units, in whole nanoseconds.
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
    fn parts_as_people_write_them() {
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
        fn a_part_means_the_same_when_it_is_written_again(text in "[a-z0-9=.s]{0,12}") {
            if let Ok(part) = Part::parse(&text) {
                prop_assert_eq!(Part::parse(&part.to_string()), Ok(part));
            }
        }
    }
}
