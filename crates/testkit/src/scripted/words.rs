//! Splits lines of a scenario into words: `verb word key=value key="with blanks" !absent @1000xA`.

use std::collections::BTreeSet;

use super::PlayError;

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// A plain word or a quoted text.
    Plain(String),
    /// `key=value`.
    Pair(String, String),
    /// `!key`: the field is absent rather than empty.
    Absent(String),
}

/// Splits a line. A `#` at the start of a word starts a comment.
pub(super) fn split(line: &str) -> Result<Vec<Word>, PlayError> {
    let mut letters = line.chars().peekable();
    let mut words = Vec::new();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        match letters.peek() {
            None | Some('#') => return Ok(words),
            Some(_) => words.push(word(&mut letters)?),
        }
    }
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn word(letters: &mut Letters<'_>) -> Result<Word, PlayError> {
    let mut key = None;
    let mut text = String::new();
    // A quoted `@` or `!` has no special meaning.
    let (mut bare_start, mut any) = (true, false);
    while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
        match letter {
            '"' => {
                bare_start &= any;
                quoted(letters, &mut text)?;
            }
            '=' if key.is_none() && bare_start && is_key(&text) => {
                key = Some(std::mem::take(&mut text));
                (bare_start, any) = (true, false);
                continue;
            }
            other => text.push(other),
        }
        any = true;
    }
    if bare_start && key.is_none() && text.len() > 1 && text.starts_with('!') {
        return Ok(Word::Absent(text.split_off(1)));
    }
    if bare_start && let Some(repeated) = repeated(&text) {
        text = repeated;
    }
    Ok(match key {
        Some(key) => Word::Pair(key, text),
        None => Word::Plain(text),
    })
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

/// Expands `@1000xA` to a thousand times `A`.
fn repeated(text: &str) -> Option<String> {
    let (count, what) = text.strip_prefix('@')?.split_once('x')?;
    Some(what.repeat(count.parse().ok()?))
}

/// Reads the text after a quotation mark, up to the next one.
fn quoted(letters: &mut Letters<'_>, text: &mut String) -> Result<(), PlayError> {
    loop {
        match letters.next().ok_or("a quotation mark has no partner")? {
            '"' => return Ok(()),
            '\\' => text.push(escaped(letters)?),
            letter => text.push(letter),
        }
    }
}

fn escaped(letters: &mut Letters<'_>) -> Result<char, PlayError> {
    Ok(match letters.next().ok_or("a backslash at the end")? {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        '0' => '\0',
        'e' => '\x1b',
        'u' => {
            let mut digits = String::new();
            if letters.next() == Some('{') {
                digits.extend(letters.by_ref().take_while(|letter| *letter != '}'));
            }
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            code.ok_or_else(|| format!("\\u{{{digits}}} is no character"))?
        }
        letter @ ('"' | '\\') => letter,
        other => return Err(format!("\\{other} means nothing").into()),
    })
}

/// The words after a verb. Words that are not consumed are an error.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    plain: Vec<String>,
    pairs: Vec<(String, String)>,
    absent: Vec<String>,
    used: BTreeSet<String>,
}

impl Arguments {
    /// Creates arguments from words, with `put_in` replacing `{n}`.
    pub(super) fn new(words: &[Word], put_in: impl Fn(&str) -> String) -> Self {
        let mut this = Self::default();
        for word in words {
            match word {
                Word::Plain(text) => this.plain.push(put_in(text)),
                Word::Pair(key, value) => this.pairs.push((key.clone(), put_in(value))),
                Word::Absent(key) => this.absent.push(key.clone()),
            }
        }
        this.plain.reverse();
        this
    }

    /// Creates arguments for a test in a list of tests.
    pub(super) fn of_test(uid: &str, count: Option<String>, name: Option<String>) -> Self {
        let pairs = [("count", count), ("name", name)];
        let pairs = pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Self { plain: vec![uid.to_owned()], pairs: pairs.collect(), ..Self::default() }
    }

    /// Consumes the next plain word, if any.
    pub(super) fn next(&mut self) -> Option<String> {
        self.plain.pop()
    }

    /// Consumes the next plain word, which must exist.
    pub(super) fn need(&mut self, what: &str) -> Result<String, PlayError> {
        self.next().ok_or_else(|| format!("{what} is missing").into())
    }

    /// Consumes all remaining plain words.
    pub(super) fn rest(&mut self) -> Vec<String> {
        let mut rest = std::mem::take(&mut self.plain);
        rest.reverse();
        rest
    }

    /// Consumes the value of a key, if present.
    pub(super) fn get(&mut self, key: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(known, _)| known == key)?;
        Some(self.pairs.remove(at).1)
    }

    /// Consumes the value of a key as a number, if present.
    pub(super) fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, PlayError> {
        let value = self.get(key);
        let number = |text: String| {
            text.parse().map_err(|_no_number| PlayError::from(format!("{key}={text}: no such number")))
        };
        value.map(number).transpose()
    }

    /// Returns the text of a field: the given one, `None` for `!key`, otherwise `usual`.
    pub(super) fn field(&mut self, key: &str, usual: Option<&str>) -> Option<String> {
        if self.is_absent(key) {
            return None;
        }
        self.get(key).or_else(|| usual.map(str::to_owned))
    }

    /// Consumes `!key` and returns whether it was present.
    pub(super) fn is_absent(&mut self, key: &str) -> bool {
        let is = self.absent.iter().any(|absent| absent == key);
        if is {
            self.used.insert(key.to_owned());
        }
        is
    }

    /// Consumes a plain word and returns whether it was present.
    pub(super) fn flag(&mut self, word: &str) -> bool {
        let before = self.plain.len();
        self.plain.retain(|text| text != word);
        self.plain.len() < before
    }

    /// Consumes all remaining pairs.
    pub(super) fn pairs(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.pairs)
    }

    /// Consumes all remaining absent keys.
    pub(super) fn absents(&mut self) -> Vec<String> {
        std::mem::take(&mut self.absent)
    }

    /// Fails if any words remain.
    pub(super) fn finish(self) -> Result<(), PlayError> {
        let plain = self.plain.into_iter().next_back();
        let pair = self.pairs.into_iter().next().map(|(key, _)| format!("{key}="));
        let absent =
            self.absent.into_iter().find(|key| !self.used.contains(key)).map(|key| format!("!{key}"));
        match plain.or(pair).or(absent) {
            Some(word) => Err(format!("{word:?} has no meaning here").into()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_into_words() {
        let plain = |text: &str| Word::Plain(text.to_owned());
        let pair = |key: &str, value: &str| Word::Pair(key.to_owned(), value.to_owned());
        assert_eq!(
            split(r#"  pass t1 name="a \"b\"\n=c" key=x=y !uid # a comment"#).unwrap(),
            [
                plain("pass"),
                plain("t1"),
                pair("name", "a \"b\"\n=c"),
                pair("key", "x=y"),
                Word::Absent("uid".into())
            ]
        );
        assert_eq!(
            split(r#"@3xab k=@2x"c " "@2xa" "!a" "" a#b \u"\u{202e}\e\0""#).unwrap(),
            [
                plain("ababab"),
                pair("k", "c c "),
                plain("@2xa"),
                plain("!a"),
                plain(""),
                plain("a#b"),
                plain("\\u\u{202e}\x1b\0")
            ]
        );
        assert_eq!(split("# all of it"), Ok(vec![]));
        for wrong in ["\"a", r#""\q""#, r#""\u{d800}""#, "\"\\"] {
            split(wrong).unwrap_err();
        }
    }

    #[test]
    fn words_that_are_not_consumed_are_errors() {
        let arguments = || Arguments::new(&split("a b k=v{n} !x").unwrap(), |text| text.replace("{n}", "7"));
        let mut all = arguments();
        assert_eq!((all.next().as_deref(), all.field("k", None).as_deref()), (Some("a"), Some("v7")));
        assert_eq!(
            (all.field("x", Some("usual")), all.field("y", Some("usual"))),
            (None, Some("usual".into()))
        );
        assert!(all.flag("b") && !all.flag("c"));
        assert_eq!(all.finish(), Ok(()));
        let mut some = arguments();
        some.rest();
        assert_eq!(some.clone().finish().unwrap_err().to_string(), "\"k=\" has no meaning here");
        some.get("k");
        assert_eq!(some.finish().unwrap_err().to_string(), "\"!x\" has no meaning here");
        assert!(arguments().number::<u8>("k").is_err());
    }
}
