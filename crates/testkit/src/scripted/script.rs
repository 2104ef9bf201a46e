//! Parses the text of a scenario into lines, blocks and parts.

use std::collections::BTreeMap;

use super::PlayError;
use super::words::{Word, split};

/// A scenario: the part of the first process, and named parts for others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// The parts by name; the first one has an empty name.
    pub parts: BTreeMap<String, Vec<Node>>,
}

/// A line or a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// A line with an action.
    Line(Line),
    /// `repeat N` … `done`.
    Repeat(Line, Vec<Self>),
    /// `if …` … `else` … `fi`.
    If(Line, Vec<Self>, Vec<Self>),
}

/// `[LINK:] VERB WORDS…`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Line number, starting at 1.
    pub number: usize,
    /// Of which connection.
    pub link: String,
    /// What is done.
    pub verb: String,
    /// With what.
    pub words: Vec<Word>,
}

impl Script {
    pub(super) fn parse(text: &str) -> Result<Self, PlayError> {
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            lines.extend(self::line(number, line).map_err(|error| error.at(number))?);
        }
        let mut lines = lines.into_iter().peekable();
        let mut parts = BTreeMap::new();
        let mut name = String::new();
        loop {
            let nodes = block(&mut lines, &["part"])?;
            if parts.insert(name, nodes).is_some() {
                return Err("two parts have one name".to_owned().into());
            }
            let Some(line) = lines.next() else { return Ok(Self { parts }) };
            name = match line.words.as_slice() {
                [Word::Plain(name)] if !name.is_empty() => name.clone(),
                _ => return Err(PlayError::from("part NAME".to_owned()).at(line.number)),
            };
        }
    }
}

fn line(number: usize, text: &str) -> Result<Option<Line>, PlayError> {
    let mut words = split(text)?.into_iter();
    let mut link = "a".to_owned();
    let verb = loop {
        match words.next() {
            None => return Ok(None),
            Some(Word::Plain(word)) => match word.strip_suffix(':') {
                Some(name) if !name.is_empty() => name.clone_into(&mut link),
                _ => break word,
            },
            Some(_) => return Err("a line begins with a verb".to_owned().into()),
        }
    };
    Ok(Some(Line { number, link, verb, words: words.collect() }))
}

type Lines = std::iter::Peekable<std::vec::IntoIter<Line>>;

/// Parses nodes up to one of these words, which is not consumed, or up to the end or a `part` if permitted.
fn block(lines: &mut Lines, until: &[&str]) -> Result<Vec<Node>, PlayError> {
    let mut nodes = Vec::new();
    while let Some(line) = lines.next_if(|line| !until.contains(&line.verb.as_str())) {
        let number = line.number;
        let close = |lines: &mut Lines, word: &str| match lines.next() {
            Some(line) if line.verb == word => Ok(()),
            _ => Err(PlayError::from(format!("{word} is missing")).at(number)),
        };
        nodes.push(match line.verb.as_str() {
            "repeat" => {
                let body = block(lines, &["done", "part"])?;
                close(lines, "done")?;
                Node::Repeat(line, body)
            }
            "if" => {
                let then = block(lines, &["else", "fi", "part"])?;
                let otherwise = match lines.next_if(|line| line.verb == "else") {
                    Some(_) => block(lines, &["fi", "part"])?,
                    None => Vec::new(),
                };
                close(lines, "fi")?;
                Node::If(line, then, otherwise)
            }
            "done" | "else" | "fi" => {
                return Err(PlayError::from(format!("{} closes nothing", line.verb)).at(number));
            }
            _ => Node::Line(line),
        });
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs(nodes: &[Node]) -> String {
        let one = |node: &Node| match node {
            Node::Line(line) => format!("{}:{}", line.link, line.verb),
            Node::Repeat(_, body) => format!("({})*", verbs(body)),
            Node::If(_, then, otherwise) => format!("({} | {})", verbs(then), verbs(otherwise)),
        };
        nodes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn blocks_and_parts() {
        let text =
            "handshake\nrepeat 3\nb: pass t{n}\nif run\nend\nelse\nfi\ndone # here\n\npart child\nexit 1\n";
        let script = Script::parse(text).unwrap();
        assert_eq!(verbs(&script.parts[""]), "a:handshake (b:pass (a:end | ))*");
        assert_eq!(verbs(&script.parts["child"]), "a:exit");
        for (wrong, why) in [
            ("\nrepeat 3\n", "line 2: done is missing"),
            ("if run\ndone\nfi", "line 2: done closes nothing"),
            ("fi", "line 1: fi closes nothing"),
            ("if run\npart x\nfi", "line 1: fi is missing"),
            ("part", "line 1: part NAME"),
            ("k=v", "line 1: a line begins with a verb"),
            ("part a\npart a", "two parts have one name"),
        ] {
            assert_eq!(Script::parse(wrong).unwrap_err().to_string(), why, "{wrong}");
        }
    }
}
