//! Conditions on events, as typed by users.
//!
//! ```text
//! filter     := or
//! or         := and ("or" and)*
//! and        := not ("and" not)*
//! not        := "not" not | "(" or ")" | comparison
//! comparison := FIELD OP VALUE
//! FIELD      := ts_ns time provider name id version level keywords opcode thread capture_thread processor process
//!               activity related_activity stack, or payload.NAME (payload.OUTER.INNER, payload."any name")
//! OP         := = != < <= > >= ~            (~: VALUE is a regular expression that matches a part of the text)
//! VALUE      := word | "text" | 'text' | null
//! ```
//!
//! The type of the field determines the comparison: numbers are compared with numbers (`0x1f` and `1.5` are numbers too), Booleans
//! with `true` or `false`, everything else as case-sensitive text. An event that lacks the field matches only `= null`. `level` also
//! accepts names. `stack` matches if the name of any frame does.

mod eval;
mod parse;

use regex_lite::Regex;
use thiserror::Error;

use crate::record::Member;

/// A condition on events.
#[derive(Debug, Clone)]
pub struct Filter {
    root: Node,
}

#[derive(Debug, Clone)]
enum Node {
    Or(Vec<Self>),
    And(Vec<Self>),
    Not(Box<Self>),
    Compare(Comparison),
}

#[derive(Debug, Clone)]
struct Comparison {
    field: Field,
    op: Op,
    value: Operand,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Member(Member),
    Payload(String),
    Stack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Matches,
}

/// The value with which a field is compared.
#[derive(Debug, Clone)]
enum Operand {
    Null,
    Text { text: String, number: Option<Number> },
    Regex(Regex),
}

/// A number in a filter. Integers are compared exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Int(i128),
    Real(f64),
}

/// A syntax error in a filter, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (column {})", self.column())]
#[non_exhaustive]
pub struct FilterError {
    /// The error message.
    pub message: String,
    /// The byte offset of the invalid token in the text.
    pub offset: usize,
    /// The length of the token in bytes. 0 at the end of the text.
    pub length: usize,
    /// The text of the filter.
    pub text: String,
}

impl FilterError {
    /// Returns the column of the invalid token in characters, starting at 1.
    pub fn column(&self) -> usize {
        self.text.get(..self.offset).map_or(0, |before| before.chars().count()) + 1
    }

    /// Returns the text with the invalid token marked: `provider >>>is<<< X`.
    pub fn marked(&self) -> String {
        let end = self.offset + self.length;
        let part = |from, to| self.text.get(from..to).unwrap_or_default();
        format!("{}>>>{}<<<{}", part(0, self.offset), part(self.offset, end), part(end, self.text.len()))
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(|root| Self { root })
    }
}
