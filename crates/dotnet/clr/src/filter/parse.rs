//! Parses conditions.

use regex_lite::Regex;
use runtap_wire::filter::{Expression, Scanner, Syntax, Word};
use runtap_wire::nearest;

use super::{Comparison, Field, FilterError, Number, Op, Operand};
use crate::record::Member;

const SYNTAX: Syntax = Syntax { special: "()=<>!~", before_equals: "", has_symbols: false };

const OPERATORS: [(&str, Op); 8] = [
    // '==' is familiar to programmers.
    ("==", Op::Equal),
    ("=", Op::Equal),
    ("!=", Op::NotEqual),
    ("<=", Op::AtMost),
    ("<", Op::Less),
    (">=", Op::AtLeast),
    (">", Op::More),
    ("~", Op::Matches),
];

pub(super) fn parse(text: &str) -> Result<Expression<Comparison>, FilterError> {
    Expression::parse(text, SYNTAX, comparison)
}

fn comparison(scanner: &mut Scanner<'_>) -> Result<Comparison, FilterError> {
    let before = scanner.clone();
    let Some(word) = scanner.word()?.filter(|word| !word.is_keyword()) else {
        *scanner = before;
        return Err(expected(scanner, "expected a field"));
    };
    let field = field(scanner, &word)?;
    let Some(op) = scanner.operator(&OPERATORS) else {
        return Err(expected(scanner, "expected an operator (= != < <= > >= ~)"));
    };
    let Some(word) = scanner.word()? else {
        return Err(expected(scanner, "expected a value (quote it if it contains any of ()=<>!~)"));
    };
    let value =
        operand(&field, op, &word).map_err(|message| scanner.error(message, word.offset, word.length))?;
    Ok(Comparison { field, op, value })
}

/// Creates the error that something else was expected here. `!` alone is a common mistake.
fn expected(scanner: &mut Scanner<'_>, expected: &str) -> FilterError {
    scanner.skip_blanks();
    if scanner.peek() != Some('!') || scanner.rest().starts_with("!=") {
        return scanner.expected(expected);
    }
    let message = "'!' is only valid in '!='; use 'not' in front of a condition".to_owned();
    scanner.error(message, scanner.at(), 1)
}

fn field(scanner: &Scanner<'_>, word: &Word) -> Result<Field, FilterError> {
    let name = &word.text;
    if let Some(member) = Member::named(name) {
        return Ok(Field::Member(member));
    }
    if let Some(path) = name.strip_prefix("payload.").filter(|path| !path.is_empty()) {
        return Ok(Field::Payload(path.to_owned()));
    }
    if name == "stack" {
        return Ok(Field::Stack);
    }
    let known = Member::ALL.iter().map(|member| member.name()).chain(["stack", "payload.NAME"]);
    let message = if let Some(near) = nearest(name, known.clone()) {
        format!("unknown field '{name}'; did you mean '{near}'?")
    } else {
        let known: Vec<&str> = known.collect();
        format!("unknown field '{name}'; valid fields: {}", known.join(", "))
    };
    Err(scanner.error(message, word.offset, word.length))
}

/// Returns the value of a comparison, or why the field has no such value.
fn operand(field: &Field, op: Op, word: &Word) -> Result<Operand, String> {
    let text = &word.text;
    if op == Op::Matches {
        return Regex::new(text)
            .map(Operand::Regex)
            .map_err(|error| format!("invalid regular expression '{text}': {error}"));
    }
    if text == "null" && !word.quoted {
        return match op {
            Op::Equal | Op::NotEqual => Ok(Operand::Null),
            _ => Err("null can't be compared with less or greater; use = or !=".to_owned()),
        };
    }
    let mut number = number(text);
    if let Field::Member(member) = field {
        if *member == Member::Level {
            number = number.or_else(|| level(text));
        }
        if member.is_number() && number.is_none() {
            return Err(format!("'{}' is a number, but '{text}' is not", member.name()));
        }
    }
    Ok(Operand::Text { text: text.to_owned(), number })
}

fn number(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let signed = |n: i128| if negative { -n } else { n };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok().map(|n| Number::Int(signed(n.into())));
    }
    // Check for a digit first, because 'inf' and 'nan' are words.
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let whole = digits.parse::<u64>().ok().map(|n| Number::Int(signed(n.into())));
    whole.or_else(|| text.parse().ok().map(Number::Real))
}

fn level(text: &str) -> Option<Number> {
    let names: [&[&str]; 6] = [
        &["logalways", "always"],
        &["critical"],
        &["error"],
        &["warning"],
        &["informational", "info"],
        &["verbose"],
    ];
    let n = names.iter().position(|names| names.iter().any(|name| text.eq_ignore_ascii_case(name)))?;
    Some(Number::Int(i128::try_from(n).ok()?))
}
