//! Conditions on events, as people write them.
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
//! What the field holds decides what is compared: a number with a number (`0x1f` and `1.5` are numbers too), a truth with
//! `true` or `false`, everything else as text, with regard to case. An event that lacks the field matches nothing
//! but `= null`. `level` also takes names. `stack` holds each frame's name: one that matches is enough.

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

/// What a field is compared with.
#[derive(Debug, Clone)]
enum Operand {
    Null,
    Text { text: String, number: Option<Number> },
    Regex(Regex),
}

/// A number as it stands in a filter. Integers are compared exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Int(i128),
    Real(f64),
}

/// What is wrong with a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (column {})", self.column())]
#[non_exhaustive]
pub struct FilterError {
    /// What is wrong.
    pub message: String,
    /// Byte offset of the wrong word in the text.
    pub offset: usize,
    /// Its length in bytes; 0 at the end of the text.
    pub length: usize,
    /// The text.
    pub text: String,
}

impl FilterError {
    /// The number of the wrong character, from 1.
    pub fn column(&self) -> usize {
        self.text.get(..self.offset).map_or(0, |before| before.chars().count()) + 1
    }

    /// The text with the wrong word marked: `provider >>>is<<< X`.
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
