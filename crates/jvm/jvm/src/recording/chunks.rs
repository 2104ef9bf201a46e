//! The times at which the bytes of a stream arrived.
//!
//! `.chunks.tsv` files have a row for each read: `204.125631<TAB>4096` means 4,096 bytes, 204.125631 milliseconds
//! after HQ started to listen; `933.9<TAB>EOF` is the end of the stream. A last row without a line end was
//! truncated and is ignored; any other invalid row is an [error](RowProblem).

use std::fmt;
use std::io::{self, BufRead, Read as _};
use std::time::Duration;

use thiserror::Error;

/// The maximum length of a row: 20 digits, a point, 6 digits, a tab, 20 digits, and a line end.
const MAX_LENGTH: u64 = 64;

/// A row of the index of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// Bytes arrived.
    Bytes {
        /// The time since HQ started to listen.
        at: Duration,
        /// The number of bytes, at least one.
        bytes: u64,
    },
    /// The stream ended.
    End {
        /// The time since HQ started to listen.
        at: Duration,
    },
}

/// A problem of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RowProblem {
    /// The row is longer than any valid row.
    #[error("is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The row has no tab.
    #[error("has no tab between time and bytes")]
    NoTab,
    /// The time is not `MILLISECONDS` or `MILLISECONDS.FRACTION`, with at most six digits in the fraction.
    #[error("field 'time': is not a number of milliseconds")]
    Time,
    /// The size is neither a positive number nor `EOF`.
    #[error("field 'bytes': is neither a positive number nor EOF")]
    Bytes,
    /// The row follows the row of the end.
    #[error("follows the end")]
    AfterEnd,
}

impl Row {
    /// Returns the time of the row, since HQ started to listen.
    pub fn at(self) -> Duration {
        match self {
            Self::Bytes { at, .. } | Self::End { at } => at,
        }
    }

    /// Parses a row, without its line end.
    ///
    /// # Errors
    /// Fails if the row is invalid.
    pub fn parse(line: &[u8]) -> Result<Self, RowProblem> {
        let mut fields = line.splitn(2, |byte| *byte == b'\t');
        let (Some(time), Some(bytes)) = (fields.next(), fields.next()) else { return Err(RowProblem::NoTab) };
        let at = parse_milliseconds(time).ok_or(RowProblem::Time)?;
        if bytes == b"EOF" {
            return Ok(Self::End { at });
        }
        let bytes = number(bytes).filter(|bytes| *bytes > 0).ok_or(RowProblem::Bytes)?;
        Ok(Self::Bytes { at, bytes })
    }
}

impl fmt::Display for Row {
    /// Formats the row without the line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t", Milliseconds(self.at()))?;
        match self {
            Self::Bytes { bytes, .. } => bytes.fmt(f),
            Self::End { .. } => f.write_str("EOF"),
        }
    }
}

/// A time in milliseconds with six decimals: whole nanoseconds.
pub(crate) struct Milliseconds(pub(crate) Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0.as_millis(), self.0.subsec_nanos() % 1_000_000)
    }
}

/// Parses a time in milliseconds with at most six decimals; `None` if it is invalid.
pub(crate) fn parse_milliseconds(text: &[u8]) -> Option<Duration> {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let whole = number(parts.next()?)?;
    let nanoseconds = match parts.next() {
        None => 0,
        Some(digits) if digits.len() <= 6 => {
            let missing = u32::try_from(6 - digits.len()).ok()?;
            number(digits)?.checked_mul(10_u64.pow(missing))?
        }
        Some(_) => return None,
    };
    Some(Duration::from_millis(whole) + Duration::from_nanos(nanoseconds))
}

/// Parses a number that consists of digits only, at least one.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A reader of the rows of a file.
#[derive(Debug)]
pub struct Rows<R> {
    inner: R,
    line: u64,
    ended: bool,
    is_truncated: bool,
}

/// An error that occurs when a row is read.
#[derive(Debug, Error)]
pub(crate) enum RowsError {
    #[error("line {line}: {problem}")]
    Row { line: u64, problem: RowProblem },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<R: BufRead> Rows<R> {
    /// Creates a reader of the rows in `inner`.
    pub fn new(inner: R) -> Self {
        Self { inner, line: 0, ended: false, is_truncated: false }
    }

    /// Returns whether the last row was truncated.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns whether the row of the end was read.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads the next row. `None` if there is none, or if it is truncated.
    pub(crate) fn read(&mut self) -> Result<Option<Row>, RowsError> {
        let mut line = Vec::new();
        let mut limited = (&mut self.inner).take(MAX_LENGTH + 1);
        limited.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.line += 1;
        let wrong = |problem| RowsError::Row { line: self.line, problem };
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            if line.len() as u64 > MAX_LENGTH {
                return Err(wrong(RowProblem::TooLong));
            }
            self.is_truncated = true;
            return Ok(None);
        }
        if self.ended {
            return Err(wrong(RowProblem::AfterEnd));
        }
        let row = Row::parse(&line).map_err(wrong)?;
        self.ended = matches!(row, Row::End { .. });
        Ok(Some(row))
    }

    /// Appends all remaining rows, up to the first invalid one. Returns the line number, from 1, and the problem of
    /// that one.
    ///
    /// # Errors
    /// Returns the errors of the reader.
    pub fn read_all(&mut self, rows: &mut Vec<Row>) -> io::Result<Option<(u64, RowProblem)>> {
        loop {
            match self.read() {
                Ok(Some(row)) => rows.push(row),
                Ok(None) => return Ok(None),
                Err(RowsError::Row { line, problem }) => return Ok(Some((line, problem))),
                Err(RowsError::Io(error)) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &[u8]) -> (Vec<Row>, Option<(u64, RowProblem)>, bool) {
        let (mut rows, mut all) = (Rows::new(text), Vec::new());
        let wrong = rows.read_all(&mut all).expect("memory can be read");
        (all, wrong, rows.is_truncated())
    }

    #[test]
    fn golden_rows() {
        let at = |ns| Duration::from_nanos(ns);
        let rows = vec![Row::Bytes { at: at(204_100_000), bytes: 2 }, Row::End { at: at(933_900_001) }];
        assert_eq!(all(b"204.1\t2\n933.900001\tEOF\n"), (rows.clone(), None, false));
        assert_eq!(
            rows.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["204.100000\t2", "933.900001\tEOF"]
        );
        assert_eq!(all(b"7\t5\n8\t1"), (vec![Row::Bytes { at: at(7_000_000), bytes: 5 }], None, true));
    }

    #[test]
    fn invalid_rows_are_rejected() {
        for (line, problem) in [
            (&b"\n"[..], RowProblem::NoTab),
            (b"1 2\n", RowProblem::NoTab),
            (b"\t2\n", RowProblem::Time),
            (b"-1\t2\n", RowProblem::Time),
            (b"1.\t2\n", RowProblem::Time),
            (b"1.0000001\t2\n", RowProblem::Time),
            (b"99999999999999999999\t2\n", RowProblem::Time),
            (b"1\t0\n", RowProblem::Bytes),
            (b"1\teof\n", RowProblem::Bytes),
            (b"1\t2\r\n", RowProblem::Bytes),
            (&[b'1'; 70], RowProblem::TooLong),
        ] {
            let text = [b"1\t1\n", line].concat();
            let (rows, wrong, _) = all(&text);
            assert_eq!((rows.len(), wrong), (1, Some((2, problem))), "{}", line.escape_ascii());
        }
        assert_eq!(all(b"1\tEOF\n2\t2\n").1, Some((2, RowProblem::AfterEnd)));
    }

    proptest! {
        #[test]
        fn rows_round_trip_and_any_prefix_has_its_complete_rows(
            rows in prop::collection::vec((any::<u64>(), 1..=u64::MAX), 0..8), end in prop::option::of(any::<u64>()), cut: prop::sample::Index
        ) {
            let at = |ns| Duration::from_nanos(ns);
            let mut all_rows: Vec<Row> = rows.into_iter().map(|(ns, bytes)| Row::Bytes { at: at(ns), bytes }).collect();
            all_rows.extend(end.map(|ns| Row::End { at: at(ns) }));
            let lines: Vec<String> = all_rows.iter().map(|row| format!("{row}\n")).collect();
            let text = lines.concat();
            prop_assert_eq!(all(text.as_bytes()), (all_rows.clone(), None, false));
            let prefix = &text.as_bytes()[..cut.index(text.len() + 1)];
            let whole = prefix.split(|byte| *byte == b'\n').count() - 1;
            let is_truncated = prefix.last().is_some_and(|byte| *byte != b'\n');
            prop_assert_eq!(all(prefix), (all_rows[..whole].to_vec(), None, is_truncated));
        }

        #[test]
        fn a_parsed_row_is_equal_after_formatting(line in prop_oneof![any::<Vec<u8>>(), "[0-9.]{0,9}\t([0-9]{0,4}|EOF)".prop_map(String::into_bytes)]) {
            if let Ok(row) = Row::parse(&line) {
                prop_assert_eq!(Row::parse(row.to_string().as_bytes()), Ok(row));
            }
        }
    }
}
