//! Words of a filter. Owns: where a word ends, quotes and escapes. Refuses to: know fields.

use super::{FilterError, Op};

/// What ends a word and has to be quoted, besides blanks, quotes and the operators that begin with `^`, `$` or `*`.
const SPECIAL: &str = "()&|=!~";

/// Whether a word would be read as it is.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'') || SPECIAL.contains(c))
        && keyword(text).is_none()
}

/// `and`, `or` and `not` in any case.
pub(super) fn keyword(word: &str) -> Option<&'static str> {
    ["and", "or", "not"].into_iter().find(|keyword| word.eq_ignore_ascii_case(keyword))
}

/// A word and where it is.
#[derive(Debug)]
pub(super) struct Word {
    /// Without quotes.
    pub(super) text: String,
    /// Whether it was quoted from its first letter on: then it is never a keyword.
    pub(super) quoted: bool,
    pub(super) offset: usize,
    pub(super) length: usize,
}

/// The text and how far it has been read.
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

    /// Reads this text, if it comes next.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    /// Reads this keyword, if it comes next, behind any blanks.
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

    /// Reads an operator, if one comes next, behind any blanks: the operator, and whether it is negated.
    pub(super) fn operator(&mut self) -> Option<(Op, bool)> {
        const OPERATORS: [(&str, Op, bool); 8] = [
            // '==' is what programmers write.
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

    /// A word: letters up to the next blank or special character, with quoted parts in it. `None` if there is none.
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

    /// A quoted part, from its first quote on.
    pub(super) fn quoted(&mut self, into: &mut String) -> Result<(), FilterError> {
        let offset = self.at;
        let quote = self.bump();
        loop {
            match self.bump() {
                end if end == quote => return Ok(()),
                // Only what would end the text can be escaped: regular expressions have backslashes of their own.
                Some('\\') if self.peek() == quote => into.extend(self.bump()),
                Some(c) => into.push(c),
                None => {
                    let message = format!("the text is not ended by {}", quote.unwrap_or('"'));
                    return Err(self.error(message, offset, self.at - offset));
                }
            }
        }
    }

    /// The value of a property of `dotnet test --filter`: it may contain blanks, and a backslash takes away the meaning
    /// of a special character.
    pub(super) fn property_value(&mut self) -> Result<Option<Word>, FilterError> {
        self.skip_blanks();
        if matches!(self.peek(), Some('"' | '\'')) {
            return self.word();
        }
        let offset = self.at;
        let mut text = String::new();
        // Where the value ends in both texts if only blanks follow.
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

    /// The error that something else was expected here.
    pub(super) fn expected(&mut self, expected: &str) -> FilterError {
        self.skip_blanks();
        let offset = self.at;
        // An unusual end of the word does not matter here.
        let length = match self.clone().word() {
            Ok(Some(word)) => word.length,
            Ok(None) => self.peek().map_or(0, char::len_utf8),
            Err(error) => error.offset + error.length - offset,
        };
        let message = match self.text.get(offset..offset + length) {
            Some(found) if !found.is_empty() => format!("{expected}, found '{found}'"),
            _ => format!("{expected}, and the filter ends"),
        };
        self.error(message, offset, length)
    }
}
