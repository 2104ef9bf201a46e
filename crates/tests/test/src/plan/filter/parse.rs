//! The parser of filters.

use regex_lite::Regex;

use runtap_wire::filter::{Expression, Scanner, Syntax, Word};

use super::{Comparison, Condition, Field, FilterError, Node, Op, Property};
use runtap_wire::nearest;

/// Characters that must be quoted, besides white space and quotes.
pub(super) const SYNTAX: Syntax = Syntax { special: "()&|=!~", before_equals: "^$*", has_symbols: true };

/// The operators, and whether each is negated.
const OPERATORS: [(&str, (Op, bool)); 8] = [
    // '==' is familiar to programmers.
    ("==", (Op::Equal, false)),
    ("=", (Op::Equal, false)),
    ("!=", (Op::Equal, true)),
    ("~", (Op::Matches, false)),
    ("!~", (Op::Matches, true)),
    ("^=", (Op::Begins, false)),
    ("$=", (Op::Ends, false)),
    ("*=", (Op::Contains, false)),
];

pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    Expression::parse(text, SYNTAX, condition)
}

fn condition(scanner: &mut Scanner<'_>) -> Result<Condition, FilterError> {
    if scanner.take("trait[") {
        let key = key(scanner)?;
        let Some((op, negated)) = scanner.operator(&OPERATORS) else {
            return Err(scanner.expected("expected an operator (= != ~ !~ ^= $= *=)"));
        };
        return value(scanner, Field::Trait(key), op, negated);
    }
    let before = scanner.clone();
    let word = match scanner.word()? {
        Some(word) if !word.is_keyword() => word,
        _ => {
            *scanner = before;
            return Err(scanner.expected("expected a field or a text"));
        }
    };
    let Some((op, negated)) = scanner.operator(&OPERATORS) else {
        return Ok(Condition::Text(word.text));
    };
    if let Some((_, field)) = Field::NAMED.into_iter().find(|(name, _)| *name == word.text) {
        return value(scanner, field, op, negated);
    }
    if let Some(key) = word.text.strip_prefix("trait:") {
        return value(scanner, Field::Trait(key.to_owned()), op, negated);
    }
    let property = Property::ALL.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(&word.text));
    match property {
        Some((_, property)) => property_comparison(scanner, property, op, negated),
        None => Err(unknown(scanner, &word)),
    }
}

/// Reads the key of a trait and the closing bracket.
fn key(scanner: &mut Scanner<'_>) -> Result<String, FilterError> {
    scanner.skip_blanks();
    let mut key = String::new();
    if matches!(scanner.peek(), Some('"' | '\'')) {
        scanner.quoted(&mut key)?;
    } else {
        let end = scanner.rest().find(']').unwrap_or_default();
        let raw = scanner.rest().get(..end).unwrap_or_default();
        scanner.take(raw);
        raw.trim_end().clone_into(&mut key);
        if key.is_empty() {
            return Err(scanner.expected("expected the key of a trait and ']'"));
        }
    }
    scanner.skip_blanks();
    if scanner.take("]") { Ok(key) } else { Err(scanner.expected("expected ']'")) }
}

fn unknown(scanner: &Scanner<'_>, word: &Word) -> FilterError {
    let name = &word.text;
    let fields = Field::NAMED.iter().map(|(name, _)| *name);
    let known: Vec<&str> = fields.chain(["trait[KEY]"]).collect();
    let properties = Property::ALL.iter().map(|(name, _)| *name);
    let message = match nearest(name, known.iter().copied().chain(properties)) {
        Some(near) => format!("unknown field '{name}'; did you mean '{near}'?"),
        None => format!("unknown field '{name}'; valid fields: {}", known.join(", ")),
    };
    scanner.error(message, word.offset, word.length)
}

fn value(scanner: &mut Scanner<'_>, field: Field, op: Op, negated: bool) -> Result<Condition, FilterError> {
    let Some(word) = scanner.word()? else {
        return Err(scanner.expected("expected a value (quote it if it contains any of ()&|=!~)"));
    };
    let regex = match op {
        Op::Matches => Some(Regex::new(&word.text).map_err(|error| {
            let message = format!("'{}' is not a regular expression: {error}", word.text);
            scanner.error(message, word.offset, word.length)
        })?),
        _ => None,
    };
    Ok(Condition::Compare(Comparison { field, op, negated, value: word.text, regex, property: None }))
}

fn property_comparison(
    scanner: &mut Scanner<'_>,
    property: Property,
    op: Op,
    negated: bool,
) -> Result<Condition, FilterError> {
    let op = match op {
        Op::Equal => Op::Equal,
        // For `dotnet test`, '~' means "contains".
        Op::Matches => Op::Contains,
        Op::Begins | Op::Ends | Op::Contains => {
            let at = scanner.at();
            let message =
                "properties of 'dotnet test --filter' support only the operators = != ~ !~".to_owned();
            return Err(scanner.error(message, at - 2, 2));
        }
    };
    let Some(word) = property_value(scanner)? else {
        return Err(scanner.expected("expected a value"));
    };
    let field = property.field();
    let (value, property) = (word.text, Some(property));
    Ok(Condition::Compare(Comparison { field, op, negated, value, regex: None, property }))
}

/// Reads the value of a property of `dotnet test --filter`: it may contain white space, and a backslash escapes a
/// special character.
fn property_value(scanner: &mut Scanner<'_>) -> Result<Option<Word>, FilterError> {
    scanner.skip_blanks();
    if matches!(scanner.peek(), Some('"' | '\'')) {
        return scanner.word();
    }
    let offset = scanner.at();
    let mut text = String::new();
    // The end of the value if only white space follows.
    let (mut end, mut length) = (scanner.clone(), 0);
    while let Some(c) = scanner.peek().filter(|c| !"&|()".contains(*c)) {
        if c.is_whitespace() && ["and", "or"].into_iter().any(|word| scanner.clone().take_keyword(word)) {
            break;
        }
        scanner.bump();
        let escaped =
            scanner.peek().filter(|next| c == '\\' && (*next == '\\' || SYNTAX.special.contains(*next)));
        if escaped.is_some() {
            scanner.bump();
        }
        text.push(escaped.unwrap_or(c));
        if escaped.is_some() || !c.is_whitespace() {
            (end, length) = (scanner.clone(), text.len());
        }
    }
    *scanner = end;
    text.truncate(length);
    let length = scanner.at() - offset;
    Ok((length > 0).then_some(Word { text, quoted: false, offset, length }))
}
