//! From text to a condition.

use regex_lite::Regex;
use strsim::levenshtein;

use super::{Comparison, Field, FilterError, Node, Number, Op, Operand};
use crate::record::Member;

/// Deepest nesting of parentheses and `not`.
const MAX_DEPTH: u32 = 100;

pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0 };
    let node = parser.or(0)?;
    match parser.peek() {
        Token { kind: Kind::End, .. } => Ok(node),
        token => Err(parser.wrong(&token, "expected 'and' or 'or'")),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    kind: Kind,
    offset: usize,
    length: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// A word; quoted parts are taken as they are.
    Word {
        text: String,
        /// Whether it was quoted from its first letter on: then it is never a keyword.
        quoted: bool,
    },
    Op(Op),
    Open,
    Close,
    End,
}

fn tokens(text: &str) -> Result<Vec<Token>, FilterError> {
    let mut tokens = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((offset, c)) = chars.peek().copied() {
        let mut followed_by = |wanted: char| {
            chars.next();
            chars.next_if(|(_, c)| *c == wanted).is_some()
        };
        let kind = match c {
            c if c.is_whitespace() => {
                chars.next();
                continue;
            }
            '(' | ')' => {
                chars.next();
                if c == '(' { Kind::Open } else { Kind::Close }
            }
            '=' => {
                // '==' is what programmers write.
                followed_by('=');
                Kind::Op(Op::Equal)
            }
            '~' => {
                chars.next();
                Kind::Op(Op::Matches)
            }
            '<' => Kind::Op(if followed_by('=') { Op::AtMost } else { Op::Less }),
            '>' => Kind::Op(if followed_by('=') { Op::AtLeast } else { Op::More }),
            '!' => {
                if !followed_by('=') {
                    let message = "'!' stands only in '!='; write 'not' in front of a condition".to_owned();
                    return Err(FilterError { message, offset, length: 1, text: text.to_owned() });
                }
                Kind::Op(Op::NotEqual)
            }
            _ => word(text, &mut chars)?,
        };
        let end = chars.peek().map_or(text.len(), |(offset, _)| *offset);
        tokens.push(Token { kind, offset, length: end - offset });
    }
    Ok(tokens)
}

/// A word: letters up to the next blank, parenthesis or operator, with quoted parts in it.
fn word(text: &str, chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>) -> Result<Kind, FilterError> {
    let mut word = String::new();
    let quoted = chars.peek().is_some_and(|(_, c)| matches!(c, '"' | '\''));
    while let Some((offset, c)) = chars.next_if(|(_, c)| !c.is_whitespace() && !"()=<>!~".contains(*c)) {
        if !matches!(c, '"' | '\'') {
            word.push(c);
            continue;
        }
        loop {
            match chars.next() {
                Some((_, end)) if end == c => break,
                // Only what would end the text can be escaped: regular expressions have backslashes of their own.
                Some((_, '\\')) => {
                    let escaped = chars.next_if(|(_, next)| *next == c);
                    word.push(escaped.map_or('\\', |(_, c)| c));
                }
                Some((_, c)) => word.push(c),
                None => {
                    let message = format!("the text is not ended by {c}");
                    let (length, text) = (text.len() - offset, text.to_owned());
                    return Err(FilterError { message, offset, length, text });
                }
            }
        }
    }
    Ok(Kind::Word { text: word, quoted })
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Token {
        let end = Token { kind: Kind::End, offset: self.text.len(), length: 0 };
        self.tokens.get(self.next).cloned().unwrap_or(end)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek().kind, Kind::Word { text, quoted: false } if text.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn wrong(&self, token: &Token, expected: &str) -> FilterError {
        let found = self.text.get(token.offset..token.offset + token.length).unwrap_or_default();
        let message = match token.kind {
            Kind::End => format!("{expected}, and the filter ends"),
            _ => format!("{expected}, found '{found}'"),
        };
        FilterError { message, offset: token.offset, length: token.length, text: self.text.to_owned() }
    }

    fn or(&mut self, depth: u32) -> Result<Node, FilterError> {
        let mut nodes = vec![self.and(depth)?];
        while self.take_keyword("or") {
            nodes.push(self.and(depth)?);
        }
        Ok(if nodes.len() > 1 { Node::Or(nodes) } else { nodes.swap_remove(0) })
    }

    fn and(&mut self, depth: u32) -> Result<Node, FilterError> {
        let mut nodes = vec![self.not(depth)?];
        while self.take_keyword("and") {
            nodes.push(self.not(depth)?);
        }
        Ok(if nodes.len() > 1 { Node::And(nodes) } else { nodes.swap_remove(0) })
    }

    fn not(&mut self, depth: u32) -> Result<Node, FilterError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(&self.peek(), "expected fewer parentheses"));
        }
        if self.take_keyword("not") {
            return Ok(Node::Not(Box::new(self.not(depth + 1)?)));
        }
        if self.peek().kind != Kind::Open {
            return self.comparison().map(Node::Compare);
        }
        self.take();
        let node = self.or(depth + 1)?;
        match self.take() {
            Token { kind: Kind::Close, .. } => Ok(node),
            token => Err(self.wrong(&token, "expected 'and', 'or' or ')'")),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, FilterError> {
        let token = self.take();
        let field = match &token.kind {
            Kind::Word { text, .. } => self.field(&token, text)?,
            _ => return Err(self.wrong(&token, "expected a field")),
        };
        let token = self.take();
        let Kind::Op(op) = token.kind else {
            return Err(self.wrong(&token, "expected an operator (= != < <= > >= ~)"));
        };
        let token = self.take();
        let Kind::Word { text, quoted } = &token.kind else {
            return Err(self.wrong(&token, "expected a value (in quotes if it has one of ()=<>!~)"));
        };
        let value = self.operand(&token, &field, op, text, *quoted)?;
        Ok(Comparison { field, op, value })
    }

    fn field(&self, token: &Token, name: &str) -> Result<Field, FilterError> {
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
        let near = known
            .clone()
            .min_by_key(|known| levenshtein(known, name))
            .filter(|near| levenshtein(near, name) <= 2);
        let message = if let Some(near) = near {
            format!("there is no field '{name}'; is it '{near}'?")
        } else {
            let known: Vec<&str> = known.collect();
            format!("there is no field '{name}'; there are {}", known.join(", "))
        };
        Err(FilterError { message, offset: token.offset, length: token.length, text: self.text.to_owned() })
    }

    fn operand(
        &self,
        token: &Token,
        field: &Field,
        op: Op,
        text: &str,
        quoted: bool,
    ) -> Result<Operand, FilterError> {
        let fail = |message: String| {
            let Token { offset, length, .. } = *token;
            Err(FilterError { message, offset, length, text: self.text.to_owned() })
        };
        if op == Op::Matches {
            return match Regex::new(text) {
                Ok(regex) => Ok(Operand::Regex(regex)),
                Err(error) => fail(format!("'{text}' is no regular expression: {error}")),
            };
        }
        if text == "null" && !quoted {
            return match op {
                Op::Equal | Op::NotEqual => Ok(Operand::Null),
                _ => fail("nothing is less or more than null; use = or !=".to_owned()),
            };
        }
        let mut number = number(text);
        if let Field::Member(member) = field {
            if *member == Member::Level {
                number = number.or_else(|| level(text));
            }
            if member.is_number() && number.is_none() {
                return fail(format!("'{}' is a number, '{text}' is none", member.name()));
            }
        }
        Ok(Operand::Text { text: text.to_owned(), number })
    }
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
    // Digits first: 'inf' and 'nan' are words.
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
