//! The language of filters: conditions joined by `and`, `or`, `not` and parentheses.
//!
//! ```text
//! filter := and ("or" and)*
//! and    := not ("and" not)*
//! not    := "not" not | "(" filter ")" | condition
//! ```
//!
//! Keywords are not case-sensitive. The caller parses the conditions, with the words of a [`Scanner`].
//!
//! ```
//! use runtap_wire::filter::{Expression, FilterError, Scanner, Syntax};
//!
//! let syntax = Syntax { special: "()=", before_equals: "", has_symbols: false };
//! let word = |scanner: &mut Scanner<'_>| match scanner.word()? {
//!     Some(word) if !word.is_keyword() => Ok(word.text),
//!     _ => Err(scanner.expected("expected a word")),
//! };
//! let filter = Expression::parse("red or not (green and blue)", syntax, word)?;
//! assert_eq!(filter.evaluate(&|color| Some(color == "green")), Some(true));
//! let error = Expression::parse("red or", syntax, word).unwrap_err();
//! assert_eq!(error.to_string(), "expected a word, but the filter ends (column 7)");
//! # Ok::<(), FilterError>(())
//! ```

mod scanner;

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

pub use self::scanner::{Scanner, Word};

/// The maximum nesting of parentheses and `not`.
const MAX_DEPTH: u32 = 100;

/// The characters that have a meaning in a filter.
#[derive(Debug, Clone, Copy)]
pub struct Syntax {
    /// The characters that end a word, unless they are quoted.
    pub special: &'static str,
    /// The characters that end a word if `=` follows.
    pub before_equals: &'static str,
    /// Whether `&`, `|` and `!` may replace `and`, `or` and `not`.
    pub has_symbols: bool,
}

/// A condition, or several that are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression<C> {
    /// Any of at least two.
    Or(Vec<Self>),
    /// All of at least two.
    And(Vec<Self>),
    /// The opposite.
    Not(Box<Self>),
    /// A single condition.
    Condition(C),
}

/// An error in a filter, with its location.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (column {})", self.column())]
#[non_exhaustive]
pub struct FilterError {
    /// The message.
    pub message: String,
    /// The offset of the invalid word in the text, in bytes.
    pub offset: usize,
    /// The length of the invalid word in bytes; 0 at the end of the text.
    pub length: usize,
    /// The text of the filter.
    pub text: String,
}

impl FilterError {
    /// Returns the column of the invalid word in characters, starting at 1.
    pub fn column(&self) -> usize {
        self.text.get(..self.offset).map_or(0, |before| before.chars().count()) + 1
    }

    /// Returns the text on one line, and on the next line a `^` under each invalid character, at least one.
    pub fn caret(&self) -> String {
        let line: String = self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let wrong = self.text.get(self.offset..self.offset + self.length).unwrap_or_default();
        let carets = wrong.chars().count().max(1);
        format!("{line}\n{}{}", " ".repeat(self.column() - 1), "^".repeat(carets))
    }
}

impl<C> Expression<C> {
    /// Parses a filter. `condition` parses a single condition, which starts at the position of the scanner.
    ///
    /// # Errors
    /// The text is not a filter: the first error with its location.
    pub fn parse(
        text: &str,
        syntax: Syntax,
        condition: impl FnMut(&mut Scanner<'_>) -> Result<C, FilterError>,
    ) -> Result<Self, FilterError> {
        let mut parser =
            Parser { scanner: Scanner::new(text, syntax), has_symbols: syntax.has_symbols, condition };
        let expression = parser.or(0)?;
        parser.scanner.skip_blanks();
        if parser.scanner.rest().is_empty() {
            return Ok(expression);
        }
        Err(parser.scanner.expected("expected 'and' or 'or'"))
    }

    /// Evaluates the filter. `None` if the result depends on conditions whose result is `None`, unknown.
    pub fn evaluate(&self, condition: &impl Fn(&C) -> Option<bool>) -> Option<bool> {
        // One expression with this result decides; otherwise an unknown one makes the result unknown.
        let decided_by = |expressions: &[Self], decides: bool| {
            let mut result = Some(!decides);
            for expression in expressions {
                match expression.evaluate(condition) {
                    Some(value) if value == decides => return Some(decides),
                    None => result = None,
                    Some(_) => {}
                }
            }
            result
        };
        match self {
            Self::Or(expressions) => decided_by(expressions, true),
            Self::And(expressions) => decided_by(expressions, false),
            Self::Not(expression) => expression.evaluate(condition).map(|value| !value),
            Self::Condition(single) => condition(single),
        }
    }

    /// Calls `visit` with all conditions, in the order of the text.
    pub fn each<'a>(&'a self, visit: &mut impl FnMut(&'a C)) {
        match self {
            Self::Or(expressions) | Self::And(expressions) => {
                for expression in expressions {
                    expression.each(visit);
                }
            }
            Self::Not(expression) => expression.each(visit),
            Self::Condition(condition) => visit(condition),
        }
    }
}

impl<C: Display> Display for Expression<C> {
    /// Formats the filter as text that parses to an equal filter, if the conditions do.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Or(parts) => write_joined(f, parts, " or ", |part| matches!(part, Self::Or(_))),
            Self::And(parts) => {
                write_joined(f, parts, " and ", |part| matches!(part, Self::Or(_) | Self::And(_)))
            }
            Self::Not(part) => match **part {
                Self::Or(_) | Self::And(_) => write!(f, "not ({part})"),
                _ => write!(f, "not {part}"),
            },
            Self::Condition(condition) => condition.fmt(f),
        }
    }
}

fn write_joined<C: Display>(
    f: &mut Formatter<'_>,
    parts: &[Expression<C>],
    between: &str,
    needs_parentheses: impl Fn(&Expression<C>) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        if needs_parentheses(part) {
            write!(f, "({part})")?;
        } else {
            part.fmt(f)?;
        }
    }
    Ok(())
}

struct Parser<'a, F> {
    scanner: Scanner<'a>,
    has_symbols: bool,
    condition: F,
}

impl<C, F: FnMut(&mut Scanner<'_>) -> Result<C, FilterError>> Parser<'_, F> {
    fn or(&mut self, depth: u32) -> Result<Expression<C>, FilterError> {
        self.joined("or", ["||", "|"], depth, Self::and, Expression::Or)
    }

    fn and(&mut self, depth: u32) -> Result<Expression<C>, FilterError> {
        self.joined("and", ["&&", "&"], depth, Self::not, Expression::And)
    }

    /// Parses parts between which a keyword or one of its symbols stands.
    fn joined(
        &mut self,
        keyword: &str,
        symbols: [&str; 2],
        depth: u32,
        part: fn(&mut Self, u32) -> Result<Expression<C>, FilterError>,
        join: fn(Vec<Expression<C>>) -> Expression<C>,
    ) -> Result<Expression<C>, FilterError> {
        let mut parts = vec![part(self, depth)?];
        loop {
            self.scanner.skip_blanks();
            let is_symbol = self.has_symbols && symbols.into_iter().any(|symbol| self.scanner.take(symbol));
            if !is_symbol && !self.scanner.take_keyword(keyword) {
                return Ok(if parts.len() > 1 { join(parts) } else { parts.swap_remove(0) });
            }
            parts.push(part(self, depth)?);
        }
    }

    fn not(&mut self, depth: u32) -> Result<Expression<C>, FilterError> {
        self.scanner.skip_blanks();
        if depth > MAX_DEPTH {
            return Err(self.scanner.expected("expected fewer parentheses"));
        }
        if (self.has_symbols && self.scanner.take("!")) || self.scanner.take_keyword("not") {
            return Ok(Expression::Not(Box::new(self.not(depth + 1)?)));
        }
        if !self.scanner.take("(") {
            return (self.condition)(&mut self.scanner).map(Expression::Condition);
        }
        let inner = self.or(depth + 1)?;
        self.scanner.skip_blanks();
        if self.scanner.take(")") {
            return Ok(inner);
        }
        Err(self.scanner.expected("expected 'and', 'or' or ')'"))
    }
}
