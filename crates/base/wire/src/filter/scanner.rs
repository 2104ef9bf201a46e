//! The words, quotes and operators of a filter.

use super::{FilterError, Syntax};

/// A word and its location.
#[derive(Debug)]
pub struct Word {
    /// The text without quotes.
    pub text: String,
    /// Whether the word starts with a quote; it is then never a keyword.
    pub quoted: bool,
    /// The offset in the filter, in bytes.
    pub offset: usize,
    /// The length in the filter, in bytes.
    pub length: usize,
}

/// The text of a filter and the current position.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    syntax: Syntax,
}

impl Syntax {
    /// Whether a word can be written without quotes.
    pub fn is_plain(&self, word: &str) -> bool {
        !word.is_empty()
            && !word
                .contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'') || self.special.contains(c))
            && keyword(word).is_none()
    }
}

/// Returns the keyword `and`, `or` or `not`, which is not case-sensitive.
fn keyword(word: &str) -> Option<&'static str> {
    ["and", "or", "not"].into_iter().find(|keyword| word.eq_ignore_ascii_case(keyword))
}

impl Word {
    /// Whether the word is `and`, `or` or `not`.
    pub fn is_keyword(&self) -> bool {
        !self.quoted && keyword(&self.text).is_some()
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, syntax: Syntax) -> Self {
        Self { text, at: 0, syntax }
    }

    /// Returns the position in bytes.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the text from the position on.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the next character.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Consumes the next character.
    pub fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Consumes white space.
    pub fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Consumes this text if it comes next.
    pub fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    /// Consumes this keyword if it comes next, after optional white space.
    pub fn take_keyword(&mut self, wanted: &str) -> bool {
        let mut ahead = self.clone();
        let found =
            matches!(ahead.word(), Ok(Some(word)) if !word.quoted && keyword(&word.text) == Some(wanted));
        if found {
            *self = ahead;
        }
        found
    }

    /// Consumes the first of these operators that comes next, after optional white space, and returns its value.
    pub fn operator<T: Copy>(&mut self, operators: &[(&str, T)]) -> Option<T> {
        let mut ahead = self.clone();
        ahead.skip_blanks();
        let (_, value) = operators.iter().find(|(text, _)| ahead.take(text))?;
        *self = ahead;
        Some(*value)
    }

    fn word_ends(&self) -> bool {
        let mut chars = self.rest().chars();
        match chars.next() {
            None => true,
            Some(c) if self.syntax.before_equals.contains(c) => chars.next() == Some('='),
            Some(c) => c.is_whitespace() || self.syntax.special.contains(c),
        }
    }

    /// Reads a word: characters up to the next white space or special character, with quoted parts. `None` if there is
    /// none.
    ///
    /// # Errors
    /// A closing quote is missing.
    pub fn word(&mut self) -> Result<Option<Word>, FilterError> {
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
    ///
    /// # Errors
    /// The closing quote is missing.
    pub fn quoted(&mut self, into: &mut String) -> Result<(), FilterError> {
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

    /// Creates an error about a part of the text.
    pub fn error(&self, message: String, offset: usize, length: usize) -> FilterError {
        FilterError { message, offset, length, text: self.text.to_owned() }
    }

    /// Creates the error that something else was expected here.
    pub fn expected(&mut self, expected: &str) -> FilterError {
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
