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
use runtap_wire::filter::Expression;

use crate::record::Member;

pub use runtap_wire::filter::FilterError;

/// A condition on events.
#[derive(Debug, Clone)]
pub struct Filter {
    root: Expression<Comparison>,
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

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        parse::parse(text).map(|root| Self { root })
    }
}
