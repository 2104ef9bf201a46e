//! Parts of a recording that got a name while it was made.
//!
//! Owns: the lines of `marks.tsv`: `204.125631<TAB>begin<TAB>login`, and `end`. Times are those of [chunks](crate::recording::Row). A part may
//! be begun and ended many times; one that is not ended lasts to the end of the recording.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::recording::chunks::{Milliseconds, time_of};

/// The longest name, in bytes.
const LONGEST: usize = 256;

/// A part begins or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Since HQ began to listen.
    pub at: Duration,
    /// Whether it begins.
    pub begins: bool,
    /// Its name.
    pub name: String,
}

/// What is wrong with a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MarkProblem {
    /// Not three fields with tabs between them.
    #[error("is not a time, begin or end, and a name, with tabs between them")]
    Fields,
    /// See [`RowProblem::Time`](crate::recording::RowProblem::Time).
    #[error("field 'time': is no number of milliseconds")]
    Time,
    /// Neither `begin` nor `end`.
    #[error("field 'what': is neither begin nor end")]
    What,
    /// Not UTF-8.
    #[error("is no text")]
    Text,
    /// Empty, too long, or with control characters.
    #[error("field 'name': is empty, longer than {LONGEST} bytes, or has control characters")]
    Name,
}

impl Mark {
    /// A mark with a name that a line can have.
    ///
    /// # Errors
    /// The name is empty, too long, or has control characters.
    pub fn new(at: Duration, name: &str, begins: bool) -> Result<Self, MarkProblem> {
        if name.is_empty() || name.len() > LONGEST || name.contains(char::is_control) {
            return Err(MarkProblem::Name);
        }
        Ok(Self { at, begins, name: name.to_owned() })
    }

    /// Reads a line, without its end.
    ///
    /// # Errors
    /// It is none.
    pub fn parse_bytes(line: &[u8]) -> Result<Self, MarkProblem> {
        Self::parse(std::str::from_utf8(line).map_err(|_no_text| MarkProblem::Text)?)
    }

    /// The same of a text.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(line: &str) -> Result<Self, MarkProblem> {
        let mut fields = line.splitn(3, '\t');
        let (Some(at), Some(what), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(MarkProblem::Fields);
        };
        let at = time_of(at.as_bytes()).ok_or(MarkProblem::Time)?;
        let begins = match what {
            "begin" => true,
            "end" => false,
            _ => return Err(MarkProblem::What),
        };
        Self::new(at, name, begins)
    }
}

impl fmt::Display for Mark {
    /// Without the line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.begins { "begin" } else { "end" };
        write!(f, "{}\t{what}\t{}", Milliseconds(self.at), self.name)
    }
}

/// All marks of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    marks: Vec<Mark>,
    trouble: Option<MarksTrouble>,
}

/// Why not all marks of a recording can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MarksTrouble {
    /// Lines are wrong. The others are there.
    #[error("line {line} {problem}{}", others(*.more))]
    Line {
        /// The first, from 1 on.
        line: u64,
        /// What is wrong with it.
        problem: MarkProblem,
        /// How many others are wrong.
        more: u64,
    },
    /// The file can't be read.
    #[error("can't be read: {0}")]
    File(String),
    /// There are too many. The first ones are there.
    #[error("has {more} more marks than the {kept} that are kept")]
    TooMany {
        /// How many are there.
        kept: usize,
        /// How many are left out.
        more: usize,
    },
}

fn others(more: u64) -> String {
    if more > 0 { format!("; wrong lines besides: {more}") } else { String::new() }
}

impl Marks {
    /// Reads a file. A line that is wrong is left out, and [told](Self::trouble). A last line without its end was cut off,
    /// and says nothing.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut read = Self::default();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').and_then(|end| bytes.get(..end));
        let Some(whole) = whole else { return read };
        for (number, line) in (1..).zip(whole.split(|byte| *byte == b'\n')) {
            match (Mark::parse_bytes(line), &mut read.trouble) {
                (Ok(mark), _) => read.marks.push(mark),
                (Err(_), Some(MarksTrouble::Line { more, .. })) => *more += 1,
                (Err(problem), trouble) => {
                    *trouble = Some(MarksTrouble::Line { line: number, problem, more: 0 });
                }
            }
        }
        read
    }

    /// None, and why.
    pub(crate) fn unreadable(trouble: MarksTrouble) -> Self {
        Self { marks: Vec::new(), trouble: Some(trouble) }
    }

    /// Leaves out all marks but the first ones.
    #[must_use]
    pub(crate) fn at_most(mut self, kept: usize) -> Self {
        let more = self.marks.len().saturating_sub(kept);
        if more > 0 {
            self.marks.truncate(kept);
            self.trouble = Some(MarksTrouble::TooMany { kept, more });
        }
        self
    }

    /// Why there are not all of them.
    pub fn trouble(&self) -> Option<&MarksTrouble> {
        self.trouble.as_ref()
    }

    /// The names, in the order in which they came first.
    pub fn names(&self) -> Vec<&str> {
        self.parts().into_iter().map(|(name, _)| name).collect()
    }

    /// The ranges of time in which the part with this name was recorded. Empty if there is no such part.
    pub fn ranges(&self, name: &str) -> Ranges {
        let mut part = OpenRanges::default();
        self.marks.iter().filter(|mark| mark.name == name).for_each(|mark| part.add(mark));
        part.finish()
    }

    /// The names, in the order in which they came first, and when each part was.
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

/// When a part was: from, and up to but without.
type Ranges = Vec<(Duration, Duration)>;

/// A part whose marks are being read.
#[derive(Default)]
struct OpenRanges {
    ranges: Ranges,
    begun: Option<Duration>,
}

impl OpenRanges {
    fn add(&mut self, mark: &Mark) {
        match (mark.begins, self.begun) {
            (true, None) => self.begun = Some(mark.at),
            (false, Some(from)) => {
                self.ranges.push((from, mark.at));
                self.begun = None;
            }
            // Begun twice, or ended without a beginning.
            _ => {}
        }
    }

    fn finish(mut self) -> Ranges {
        self.ranges.extend(self.begun.map(|from| (from, Duration::MAX)));
        self.ranges
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_begin_and_end() {
        let text = "1.0\tbegin\tlog in\n2\tend\tlog in\n3\tend\tother\n4\tbegin\tlog in\n4.5\tbegin\tlog in\n5\tend\tlo";
        let marks = Marks::parse(text.as_bytes());
        let ms = Duration::from_millis;
        assert_eq!(marks.names(), ["log in", "other"]);
        assert_eq!(marks.ranges("log in"), [(ms(1), ms(2)), (ms(4), Duration::MAX)]);
        assert_eq!(marks.ranges("other"), []);
        assert_eq!(marks.trouble(), None);
        assert_eq!(Marks::parse(b""), Marks::default());
        let parts = [("log in", marks.ranges("log in")), ("other", Vec::new())];
        assert_eq!(marks.parts(), parts);
        let first = marks.at_most(3);
        assert_eq!((first.ranges("log in").len(), first.names().len()), (1, 2));
        assert_eq!(first.trouble(), Some(&MarksTrouble::TooMany { kept: 3, more: 2 }));
        assert_eq!(first.clone().at_most(3), first);
    }

    #[test]
    fn marks_that_are_wrong() {
        for (line, problem) in [
            ("", MarkProblem::Fields),
            ("1\tbegin", MarkProblem::Fields),
            ("x\tbegin\tn", MarkProblem::Time),
            ("1\tBegin\tn", MarkProblem::What),
            ("1\tbegin\t", MarkProblem::Name),
            ("1\tbegin\ta\tb", MarkProblem::Name),
        ] {
            let marks = Marks::parse(format!("1\tbegin\tn\n{line}\n2\tend\tn\nx\n").as_bytes());
            assert_eq!(marks.trouble(), Some(&MarksTrouble::Line { line: 2, problem, more: 1 }), "{line}");
            // The others are there.
            assert_eq!(marks.ranges("n").len(), 1);
        }
        let text = MarksTrouble::Line { line: 2, problem: MarkProblem::Text, more: 1 };
        assert_eq!(Marks::parse(b"1\tend\tn\n1\tend\t\xff\n\n").trouble(), Some(&text));
        assert_eq!(text.to_string(), "line 2 is no text; wrong lines besides: 1");
        assert_eq!(Mark::new(Duration::ZERO, "a\nb", true), Err(MarkProblem::Name));
    }

    proptest! {
        #[test]
        fn marks_come_back(marks in prop::collection::vec((any::<u64>(), any::<bool>(), "[^\\p{Cc}]{1,20}"), 0..6)) {
            let marks: Vec<Mark> = marks
                .into_iter()
                .map(|(at, begins, name)| Mark { at: Duration::from_nanos(at), begins, name })
                .collect();
            let lines: Vec<String> = marks.iter().map(|mark| format!("{mark}\n")).collect();
            prop_assert_eq!(Marks::parse(lines.concat().as_bytes()), Marks { marks, trouble: None });
        }
    }
}
