//! The lexer of filters: words, quotes and escapes.

use super::{FilterError, Op};

/// Characters that end a word and must be quoted, besides white space, quotes and the operators that start with `^`,
/// `$` or `*`.
const SPECIAL: &str = "()&|=!~";

/// Returns whether a word can be written without quotes.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'') || SPECIAL.contains(c))
        && keyword(text).is_none()
}

/// Returns the keyword `and`, `or` or `not`, which is not case-sensitive.
pub(super) fn keyword(word: &str) -> Option<&'static str> {
    ["and", "or", "not"].into_iter().find(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// A word and its location.
#[derive(Debug)]
pub(super) struct Word {
    /// The text without quotes.
    pub(super) text: String,
    /// Whether the word starts with a quote; it is then never a keyword.
    pub(super) quoted: bool,
    pub(super) offset: usize,
    pub(super) length: usize,
}

/// The text and the current position.
#[derive(Debug, Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Consumes this text if it comes next.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    /// Consumes this keyword if it comes next, after optional white space.
    pub(super) fn take_keyword(&mut self, wanted: &str) -> bool {
        self.skip_blanks();
        let mut ahead = self.clone();
        let found =
            matches!(ahead.word(), Ok(Some(word)) if !word.quoted && keyword(&word.text) == Some(wanted));
        if found {
            *self = ahead;
        }
        found
    }

    /// Consumes an operator if one comes next, after optional white space. Returns the operator and whether it is
    /// negated.
    pub(super) fn operator(&mut self) -> Option<(Op, bool)> {
        const OPERATORS: [(&str, Op, bool); 8] = [
            // '==' is familiar to programmers.
            ("==", Op::Equal, false),
            ("=", Op::Equal, false),
            ("!=", Op::Equal, true),
            ("~", Op::Matches, false),
            ("!~", Op::Matches, true),
            ("^=", Op::Begins, false),
            ("$=", Op::Ends, false),
            ("*=", Op::Contains, false),
        ];
        let mut ahead = self.clone();
        ahead.skip_blanks();
        let (_, op, negated) = OPERATORS.into_iter().find(|(text, ..)| ahead.take(text))?;
        *self = ahead;
        Some((op, negated))
    }

    fn word_ends(&self) -> bool {
        let mut chars = self.rest().chars();
        match chars.next() {
            None => true,
            Some('^' | '$' | '*') => chars.next() == Some('='),
            Some(c) => c.is_whitespace() || SPECIAL.contains(c),
        }
    }

    /// Reads a word: characters up to the next white space or special character, with quoted parts. `None` if there is
    /// none.
    pub(super) fn word(&mut self) -> Result<Option<Word>, FilterError> {
        self.skip_blanks();
        let offset = self.at;
        let quoted = matches!(self.peek(), Some('"' | '\''));
        let mut text = String::new();
        while !self.word_ends() {
            match self.peek() {
                Some('"' | '\'') => self.quoted(&mut text)?,
                _ => text.extend(self.bump()),
            }
        }
        let length = self.at - offset;
        Ok((length > 0).then_some(Word { text, quoted, offset, length }))
    }

    /// Reads a quoted part, starting at its first quote.
    pub(super) fn quoted(&mut self, into: &mut String) -> Result<(), FilterError> {
        let offset = self.at;
        let quote = self.bump();
        loop {
            match self.bump() {
                end if end == quote => return Ok(()),
                // Only quotes can be escaped, because regular expressions contain backslashes.
                Some('\\') if self.peek() == quote => into.extend(self.bump()),
                Some(c) => into.push(c),
                None => {
                    let message = format!("missing closing {}", quote.unwrap_or('"'));
                    return Err(self.error(message, offset, self.at - offset));
                }
            }
        }
    }

    /// Reads the value of a property of `dotnet test --filter`: it may contain white space, and a backslash escapes a
    /// special character.
    pub(super) fn property_value(&mut self) -> Result<Option<Word>, FilterError> {
        self.skip_blanks();
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.word();
        }
        let offset = self.at;
        let mut text = String::new();
        // The end of the value if only white space follows.
        let (mut end, mut length) = (offset, 0);
        while let Some(c) = self.peek().filter(|c| !"&|()".contains(*c)) {
            if c.is_whitespace() && ["and", "or"].into_iter().any(|word| self.clone().take_keyword(word)) {
                break;
            }
            self.bump();
            let escaped = self.peek().filter(|next| c == '\\' && (*next == '\\' || SPECIAL.contains(*next)));
            if escaped.is_some() {
                self.bump();
            }
            text.push(escaped.unwrap_or(c));
            if escaped.is_some() || !c.is_whitespace() {
                (end, length) = (self.at, text.len());
            }
        }
        self.at = end;
        text.truncate(length);
        Ok((end > offset).then_some(Word { text, quoted: false, offset, length: end - offset }))
    }

    pub(super) fn error(&self, message: String, offset: usize, length: usize) -> FilterError {
        FilterError { message, offset, length, text: self.text.to_owned() }
    }

    /// Creates the error that something else was expected here.
    pub(super) fn expected(&mut self, expected: &str) -> FilterError {
        self.skip_blanks();
        let offset = self.at;
        // An unterminated word does not matter here.
        let length = match self.clone().word() {
            Ok(Some(word)) => word.length,
            Ok(None) => self.peek().map_or(0, char::len_utf8),
            Err(error) => error.offset + error.length - offset,
        };
        let message = match self.text.get(offset..offset + length) {
            Some(found) if !found.is_empty() => format!("{expected}, found '{found}'"),
            _ => format!("{expected}, but the filter ends"),
        };
        self.error(message, offset, length)
    }
}
