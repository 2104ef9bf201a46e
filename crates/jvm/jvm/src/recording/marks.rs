//! Parts of a recording that were named while it was made.
//!
//! The lines of `marks.tsv` are `204.125631<TAB>begin<TAB>login`, or with `end`. Times are those of
//! [chunks](crate::recording::Row). A part may start and end many times; without an end it lasts to the end of the
//! recording.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::recording::chunks::{Milliseconds, parse_milliseconds};

/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 256;

/// The start or the end of a named part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The time since HQ started to listen.
    pub at: Duration,
    /// Whether the part starts.
    pub begins: bool,
    /// The name of the part.
    pub name: String,
}

/// A problem of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MarkProblem {
    /// The line does not have three fields with tabs between them.
    #[error("is not a time, 'begin' or 'end', and a name, separated by tabs")]
    Fields,
    /// The time is invalid: see [`RowProblem::Time`](crate::recording::RowProblem::Time).
    #[error("field 'time': is not a number of milliseconds")]
    Time,
    /// The second field is neither `begin` nor `end`.
    #[error("field 'what': is neither 'begin' nor 'end'")]
    What,
    /// The line is not UTF-8.
    #[error("is not UTF-8 text")]
    Text,
    /// The name is empty, too long, or has control characters.
    #[error("field 'name': is empty, longer than {MAX_NAME} bytes, or has control characters")]
    Name,
}

impl Mark {
    /// Creates a mark.
    ///
    /// # Errors
    /// Fails if the name is empty, too long, or has control characters.
    pub fn new(at: Duration, name: &str, begins: bool) -> Result<Self, MarkProblem> {
        if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
            return Err(MarkProblem::Name);
        }
        Ok(Self { at, begins, name: name.to_owned() })
    }

    /// Parses a line, without its line end.
    ///
    /// # Errors
    /// Fails if the line is invalid.
    pub fn parse_bytes(line: &[u8]) -> Result<Self, MarkProblem> {
        Self::parse(std::str::from_utf8(line).map_err(|_not_utf8| MarkProblem::Text)?)
    }

    /// Parses a line of text, without its line end.
    ///
    /// # Errors
    /// Fails if the line is invalid.
    pub fn parse(line: &str) -> Result<Self, MarkProblem> {
        let mut fields = line.splitn(3, '\t');
        let (Some(at), Some(what), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(MarkProblem::Fields);
        };
        let at = parse_milliseconds(at.as_bytes()).ok_or(MarkProblem::Time)?;
        let begins = match what {
            "begin" => true,
            "end" => false,
            _ => return Err(MarkProblem::What),
        };
        Self::new(at, name, begins)
    }
}

impl fmt::Display for Mark {
    /// Formats the mark without the line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.begins { "begin" } else { "end" };
        write!(f, "{}\t{what}\t{}", Milliseconds(self.at), self.name)
    }
}

/// The marks of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    marks: Vec<Mark>,
    problem: Option<MarksProblem>,
}

/// The reason why marks of a recording are missing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MarksProblem {
    /// Some lines are invalid and were skipped.
    #[error("line {line} {problem}{}", others(*.more))]
    Line {
        /// The number of the first invalid line, from 1.
        line: u64,
        /// The problem of that line.
        problem: MarkProblem,
        /// The number of further invalid lines.
        more: u64,
    },
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    File(String),
    /// There are too many marks. Only the first ones are kept.
    #[error("has too many marks: {kept} were kept, {more} were skipped")]
    TooMany {
        /// The number of marks that were kept.
        kept: usize,
        /// The number of marks that were skipped.
        more: usize,
    },
}

fn others(more: u64) -> String {
    if more > 0 { format!("; {more} more invalid lines") } else { String::new() }
}

impl Marks {
    /// Parses a file. Invalid lines are skipped and [reported](Self::problem). A last line without its line end was
    /// truncated and is ignored.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut read = Self::default();
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').and_then(|end| bytes.get(..end));
        let Some(complete) = complete else { return read };
        for (number, line) in (1..).zip(complete.split(|byte| *byte == b'\n')) {
            match (Mark::parse_bytes(line), &mut read.problem) {
                (Ok(mark), _) => read.marks.push(mark),
                (Err(_), Some(MarksProblem::Line { more, .. })) => *more += 1,
                (Err(problem), of_marks) => {
                    *of_marks = Some(MarksProblem::Line { line: number, problem, more: 0 });
                }
            }
        }
        read
    }

    /// Returns no marks, with the reason.
    pub(crate) fn unreadable(problem: MarksProblem) -> Self {
        Self { marks: Vec::new(), problem: Some(problem) }
    }

    /// Keeps only the first marks.
    #[must_use]
    pub(crate) fn at_most(mut self, kept: usize) -> Self {
        let more = self.marks.len().saturating_sub(kept);
        if more > 0 {
            self.marks.truncate(kept);
            self.problem = Some(MarksProblem::TooMany { kept, more });
        }
        self
    }

    /// Returns the reason why marks are missing; `None` if all are present.
    pub fn problem(&self) -> Option<&MarksProblem> {
        self.problem.as_ref()
    }

    /// Returns the names, in the order of their first marks.
    pub fn names(&self) -> Vec<&str> {
        self.parts().into_iter().map(|(name, _)| name).collect()
    }

    /// Returns the ranges of time of the part with this name; empty if there is no such part.
    pub fn ranges(&self, name: &str) -> Ranges {
        let mut part = OpenRanges::default();
        self.marks.iter().filter(|mark| mark.name == name).for_each(|mark| part.add(mark));
        part.finish()
    }

    /// Returns the names with their ranges of time, in the order of their first marks.
    pub fn parts(&self) -> Vec<(&str, Ranges)> {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut parts: Vec<(&str, OpenRanges)> = Vec::new();
        for mark in &self.marks {
            let number = *numbers.entry(&mark.name).or_insert(parts.len());
            if number == parts.len() {
                parts.push((&mark.name, OpenRanges::default()));
            }
            if let Some((_, part)) = parts.get_mut(number) {
                part.add(mark);
            }
        }
        parts.into_iter().map(|(name, part)| (name, part.finish())).collect()
    }
}

/// Half-open ranges of time.
type Ranges = Vec<(Duration, Duration)>;

/// A part whose marks are being read.
#[derive(Default)]
struct OpenRanges {
    ranges: Ranges,
    start: Option<Duration>,
}

impl OpenRanges {
    fn add(&mut self, mark: &Mark) {
        match (mark.begins, self.start) {
            (true, None) => self.start = Some(mark.at),
            (false, Some(from)) => {
                self.ranges.push((from, mark.at));
                self.start = None;
            }
            // Started twice, or ended without a start.
            _ => {}
        }
    }

    fn finish(mut self) -> Ranges {
        self.ranges.extend(self.start.map(|from| (from, Duration::MAX)));
        self.ranges
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_start_and_end() {
        let text = "1.0\tbegin\tlog in\n2\tend\tlog in\n3\tend\tother\n4\tbegin\tlog in\n4.5\tbegin\tlog in\n5\tend\tlo";
        let marks = Marks::parse(text.as_bytes());
        let ms = Duration::from_millis;
        assert_eq!(marks.names(), ["log in", "other"]);
        assert_eq!(marks.ranges("log in"), [(ms(1), ms(2)), (ms(4), Duration::MAX)]);
        assert_eq!(marks.ranges("other"), []);
        assert_eq!(marks.problem(), None);
        assert_eq!(Marks::parse(b""), Marks::default());
        let parts = [("log in", marks.ranges("log in")), ("other", Vec::new())];
        assert_eq!(marks.parts(), parts);
        let first = marks.at_most(3);
        assert_eq!((first.ranges("log in").len(), first.names().len()), (1, 2));
        assert_eq!(first.problem(), Some(&MarksProblem::TooMany { kept: 3, more: 2 }));
        assert_eq!(first.clone().at_most(3), first);
    }

    #[test]
    fn invalid_marks_are_skipped_and_reported() {
        for (line, problem) in [
            ("", MarkProblem::Fields),
            ("1\tbegin", MarkProblem::Fields),
            ("x\tbegin\tn", MarkProblem::Time),
            ("1\tBegin\tn", MarkProblem::What),
            ("1\tbegin\t", MarkProblem::Name),
            ("1\tbegin\ta\tb", MarkProblem::Name),
        ] {
            let marks = Marks::parse(format!("1\tbegin\tn\n{line}\n2\tend\tn\nx\n").as_bytes());
            assert_eq!(marks.problem(), Some(&MarksProblem::Line { line: 2, problem, more: 1 }), "{line}");
            // The valid marks are kept.
            assert_eq!(marks.ranges("n").len(), 1);
        }
        let text = MarksProblem::Line { line: 2, problem: MarkProblem::Text, more: 1 };
        assert_eq!(Marks::parse(b"1\tend\tn\n1\tend\t\xff\n\n").problem(), Some(&text));
        assert_eq!(text.to_string(), "line 2 is not UTF-8 text; 1 more invalid lines");
        assert_eq!(Mark::new(Duration::ZERO, "a\nb", true), Err(MarkProblem::Name));
    }

    proptest! {
        #[test]
        fn marks_round_trip(marks in prop::collection::vec((any::<u64>(), any::<bool>(), "[^\\p{Cc}]{1,20}"), 0..6)) {
            let marks: Vec<Mark> = marks
                .into_iter()
                .map(|(at, begins, name)| Mark { at: Duration::from_nanos(at), begins, name })
                .collect();
            let lines: Vec<String> = marks.iter().map(|mark| format!("{mark}\n")).collect();
            prop_assert_eq!(Marks::parse(lines.concat().as_bytes()), Marks { marks, problem: None });
        }
    }
}
