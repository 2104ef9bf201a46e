//! The parser of filters.

use regex_lite::Regex;

use super::lex::{Scanner, Word};
use super::{Comparison, Field, FilterError, Node, Op, Property};
use crate::plan::nearest::nearest;

/// The maximum nesting of parentheses and `not`.
const MAX_DEPTH: u32 = 100;

pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let mut parser = Parser { scanner: Scanner::new(text) };
    let node = parser.or(0)?;
    parser.scanner.skip_blanks();
    if parser.scanner.rest().is_empty() {
        return Ok(node);
    }
    Err(parser.scanner.expected("expected 'and' or 'or'"))
}

struct Parser<'a> {
    scanner: Scanner<'a>,
}

impl Parser<'_> {
    fn or(&mut self, depth: u32) -> Result<Node, FilterError> {
        let first = self.and(depth)?;
        let mut others = Vec::new();
        while self.joined("or", "||", "|") {
            others.push(self.and(depth)?);
        }
        Ok(join(first, others, Node::Or))
    }

    fn and(&mut self, depth: u32) -> Result<Node, FilterError> {
        let first = self.not(depth)?;
        let mut others = Vec::new();
        while self.joined("and", "&&", "&") {
            others.push(self.not(depth)?);
        }
        Ok(join(first, others, Node::And))
    }

    fn joined(&mut self, word: &str, twice: &str, once: &str) -> bool {
        self.scanner.skip_blanks();
        self.scanner.take(twice) || self.scanner.take(once) || self.scanner.take_keyword(word)
    }

    fn not(&mut self, depth: u32) -> Result<Node, FilterError> {
        self.scanner.skip_blanks();
        if depth > MAX_DEPTH {
            return Err(self.scanner.expected("expected fewer parentheses"));
        }
        if self.scanner.take("!") || self.scanner.take_keyword("not") {
            return Ok(Node::Not(Box::new(self.not(depth + 1)?)));
        }
        if !self.scanner.take("(") {
            return self.comparison();
        }
        let node = self.or(depth + 1)?;
        self.scanner.skip_blanks();
        if self.scanner.take(")") {
            return Ok(node);
        }
        Err(self.scanner.expected("expected 'and', 'or' or ')'"))
    }

    fn comparison(&mut self) -> Result<Node, FilterError> {
        if self.scanner.take("trait[") {
            let key = self.key()?;
            let Some((op, negated)) = self.scanner.operator() else {
                return Err(self.scanner.expected("expected an operator (= != ~ !~ ^= $= *=)"));
            };
            return self.value(Field::Trait(key), op, negated);
        }
        let before = self.scanner.clone();
        let word = match self.scanner.word()? {
            Some(word) if word.quoted || super::lex::keyword(&word.text).is_none() => word,
            _ => {
                self.scanner = before;
                return Err(self.scanner.expected("expected a field or a text"));
            }
        };
        let Some((op, negated)) = self.scanner.operator() else {
            return Ok(Node::Text(word.text));
        };
        if let Some((_, field)) = Field::NAMED.into_iter().find(|(name, _)| *name == word.text) {
            return self.value(field, op, negated);
        }
        if let Some(key) = word.text.strip_prefix("trait:") {
            return self.value(Field::Trait(key.to_owned()), op, negated);
        }
        let property = Property::ALL.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(&word.text));
        match property {
            Some((_, property)) => self.property(property, op, negated),
            None => Err(self.unknown(&word)),
        }
    }

    /// Reads the key of a trait and the closing bracket.
    fn key(&mut self) -> Result<String, FilterError> {
        self.scanner.skip_blanks();
        let mut key = String::new();
        if matches!(self.scanner.peek(), Some('"' | '\'')) {
            self.scanner.quoted(&mut key)?;
        } else {
            let end = self.scanner.rest().find(']').unwrap_or_default();
            let raw = self.scanner.rest().get(..end).unwrap_or_default();
            self.scanner.take(raw);
            raw.trim_end().clone_into(&mut key);
            if key.is_empty() {
                return Err(self.scanner.expected("expected the key of a trait and ']'"));
            }
        }
        self.scanner.skip_blanks();
        if self.scanner.take("]") { Ok(key) } else { Err(self.scanner.expected("expected ']'")) }
    }

    fn unknown(&self, word: &Word) -> FilterError {
        let name = &word.text;
        let fields = Field::NAMED.iter().map(|(name, _)| *name);
        let known: Vec<&str> = fields.chain(["trait[KEY]"]).collect();
        let properties = Property::ALL.iter().map(|(name, _)| *name);
        let message = match nearest(name, known.iter().copied().chain(properties)) {
            Some(near) => format!("unknown field '{name}'; did you mean '{near}'?"),
            None => format!("unknown field '{name}'; valid fields: {}", known.join(", ")),
        };
        self.scanner.error(message, word.offset, word.length)
    }

    fn value(&mut self, field: Field, op: Op, negated: bool) -> Result<Node, FilterError> {
        let Some(word) = self.scanner.word()? else {
            return Err(self.scanner.expected("expected a value (quote it if it contains any of ()&|=!~)"));
        };
        let regex = match op {
            Op::Matches => Some(Regex::new(&word.text).map_err(|error| {
                let message = format!("'{}' is not a regular expression: {error}", word.text);
                self.scanner.error(message, word.offset, word.length)
            })?),
            _ => None,
        };
        Ok(Node::Compare(Comparison { field, op, negated, value: word.text, regex, property: None }))
    }

    fn property(&mut self, property: Property, op: Op, negated: bool) -> Result<Node, FilterError> {
        let op = match op {
            Op::Equal => Op::Equal,
            // For `dotnet test`, '~' means "contains".
            Op::Matches => Op::Contains,
            Op::Begins | Op::Ends | Op::Contains => {
                let at = self.scanner.at();
                let message =
                    "properties of 'dotnet test --filter' support only the operators = != ~ !~".to_owned();
                return Err(self.scanner.error(message, at - 2, 2));
            }
        };
        let Some(word) = self.scanner.property_value()? else {
            return Err(self.scanner.expected("expected a value"));
        };
        let field = property.field();
        let (value, property) = (word.text, Some(property));
        Ok(Node::Compare(Comparison { field, op, negated, value, regex: None, property }))
    }
}

fn join(first: Node, mut others: Vec<Node>, with: impl FnOnce(Vec<Node>) -> Node) -> Node {
    if others.is_empty() {
        return first;
    }
    others.insert(0, first);
    with(others)
}
