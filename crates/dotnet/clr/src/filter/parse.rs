//! Parses conditions.

use regex_lite::Regex;
use strsim::levenshtein;

use super::{Comparison, Field, FilterError, Node, Number, Op, Operand};
use crate::record::Member;

/// The maximum nesting of parentheses and `not`.
const MAX_DEPTH: u32 = 100;

pub(super) fn parse(text: &str) -> Result<Node, FilterError> {
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0 };
    let node = parser.or(0)?;
    match parser.peek() {
        Token { kind: TokenKind::End, .. } => Ok(node),
        token => Err(parser.wrong(&token, "expected 'and' or 'or'")),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    kind: TokenKind,
    offset: usize,
    length: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TokenKind {
    /// A word, with quotes removed.
    Word {
        text: String,
        /// Whether it starts with a quote, so that it is never a keyword.
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
                if c == '(' { TokenKind::Open } else { TokenKind::Close }
            }
            '=' => {
                // Accept '==' as in most programming languages.
                followed_by('=');
                TokenKind::Op(Op::Equal)
            }
            '~' => {
                chars.next();
                TokenKind::Op(Op::Matches)
            }
            '<' => TokenKind::Op(if followed_by('=') { Op::AtMost } else { Op::Less }),
            '>' => TokenKind::Op(if followed_by('=') { Op::AtLeast } else { Op::More }),
            '!' => {
                if !followed_by('=') {
                    let message = "'!' is only valid in '!='; use 'not' in front of a condition".to_owned();
                    return Err(FilterError { message, offset, length: 1, text: text.to_owned() });
                }
                TokenKind::Op(Op::NotEqual)
            }
            _ => word(text, &mut chars)?,
        };
        let end = chars.peek().map_or(text.len(), |(offset, _)| *offset);
        tokens.push(Token { kind, offset, length: end - offset });
    }
    Ok(tokens)
}

/// Parses a word up to the next space, parenthesis or operator. It may have quoted parts.
fn word(
    text: &str,
    chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
) -> Result<TokenKind, FilterError> {
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
                // Only the quote can be escaped: regular expressions have backslashes of their own.
                Some((_, '\\')) => {
                    let escaped = chars.next_if(|(_, next)| *next == c);
                    word.push(escaped.map_or('\\', |(_, c)| c));
                }
                Some((_, c)) => word.push(c),
                None => {
                    let message = format!("missing closing {c}");
                    let (length, text) = (text.len() - offset, text.to_owned());
                    return Err(FilterError { message, offset, length, text });
                }
            }
        }
    }
    Ok(TokenKind::Word { text: word, quoted })
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    next: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Token {
        let end = Token { kind: TokenKind::End, offset: self.text.len(), length: 0 };
        self.tokens.get(self.next).cloned().unwrap_or(end)
    }

    fn take(&mut self) -> Token {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn take_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek().kind, TokenKind::Word { text, quoted: false } if text.eq_ignore_ascii_case(keyword));
        self.next += usize::from(found);
        found
    }

    fn wrong(&self, token: &Token, expected: &str) -> FilterError {
        let found = self.text.get(token.offset..token.offset + token.length).unwrap_or_default();
        let message = match token.kind {
            TokenKind::End => format!("{expected}, but the filter ends"),
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
        if self.peek().kind != TokenKind::Open {
            return self.comparison().map(Node::Compare);
        }
        self.take();
        let node = self.or(depth + 1)?;
        match self.take() {
            Token { kind: TokenKind::Close, .. } => Ok(node),
            token => Err(self.wrong(&token, "expected 'and', 'or' or ')'")),
        }
    }

    fn comparison(&mut self) -> Result<Comparison, FilterError> {
        let token = self.take();
        let field = match &token.kind {
            TokenKind::Word { text, .. } => self.field(&token, text)?,
            _ => return Err(self.wrong(&token, "expected a field")),
        };
        let token = self.take();
        let TokenKind::Op(op) = token.kind else {
            return Err(self.wrong(&token, "expected an operator (= != < <= > >= ~)"));
        };
        let token = self.take();
        let TokenKind::Word { text, quoted } = &token.kind else {
            return Err(self.wrong(&token, "expected a value (quote it if it contains any of ()=<>!~)"));
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
            format!("unknown field '{name}'; did you mean '{near}'?")
        } else {
            let known: Vec<&str> = known.collect();
            format!("unknown field '{name}'; valid fields: {}", known.join(", "))
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
                Err(error) => fail(format!("invalid regular expression '{text}': {error}")),
            };
        }
        if text == "null" && !quoted {
            return match op {
                Op::Equal | Op::NotEqual => Ok(Operand::Null),
                _ => fail("null can't be compared with less or greater; use = or !=".to_owned()),
            };
        }
        let mut number = number(text);
        if let Field::Member(member) = field {
            if *member == Member::Level {
                number = number.or_else(|| level(text));
            }
            if member.is_number() && number.is_none() {
                return fail(format!("'{}' is a number, but '{text}' is not", member.name()));
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
