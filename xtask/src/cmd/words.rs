//! `cargo xtask words [--list]`: finds words and names that the project avoids.
//!
//! The rules are those of CONTRIBUTING.md, "Words", that a program can check. No line may break them, except in the
//! paths of [`ALLOWED`]: there the number of lines may fall but not rise.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// A rule: its name, and whether a line breaks it.
struct Rule {
    name: &'static str,
    is_broken: fn(&Line<'_>) -> bool,
}

const RULES: [Rule; 5] = [
    Rule {
        name: "a doc comment starts with \"The same\": say what the item is, or link to the other one",
        is_broken: |line| line.doc().is_some_and(|doc| doc.starts_with("The same")),
    },
    Rule {
        name: "an indefinite person (whoever, nobody, …): name the user, the process or the peer",
        is_broken: |line| line.has(&["whoever", "nobody", "somebody", "anybody", "everybody"]),
    },
    Rule {
        name: "we, us, ours: name runtap, the process or the user",
        is_broken: |line| line.has(&["we", "us", "ours"]),
    },
    Rule {
        name: "dial: connect",
        is_broken: |line| line.has(&["dial", "dials", "dialed", "dialled", "dialing", "dialling"]),
    },
    Rule {
        name: "a public item with a name that says nothing (State, Kind, …)",
        is_broken: |line| line.is_vague_item(),
    },
];

/// The paths in which lines may break the rules: the start of the path, the number of lines, and the reason.
const ALLOWED: [(&str, usize, &str); 2] = [
    ("xtask/src/cmd/words.rs", 7, "the words, and tests of this check"),
    ("crates/runtap/tests/", 2, "quotes messages"),
];

/// Names that say nothing by themselves.
const VAGUE: [&str; 6] = ["State", "Kind", "Place", "What", "Item", "Thing"];

/// A line of a file.
struct Line<'a> {
    text: &'a str,
    is_rust: bool,
}

impl<'a> Line<'a> {
    /// Returns the text of a doc comment.
    fn doc(&self) -> Option<&'a str> {
        let line = self.text.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        self.is_rust.then(|| doc.trim_start())
    }

    /// Whether the prose of the line has one of these words. Words in quotes, in backquotes, and in paths or options are
    /// names, and so is `nobody` after `user`.
    fn has(&self, avoided: &[&str]) -> bool {
        self.prose().any(|part| {
            let mut previous = String::new();
            part.split_whitespace().any(|word| {
                let word = word
                    .trim_start_matches(['(', '*', '_'])
                    .trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '*', '_']);
                let word = word.to_lowercase();
                let word = word.trim_end_matches("'s");
                let is_name = word == "nobody" && previous == "user";
                word.clone_into(&mut previous);
                !is_name && avoided.contains(&word)
            })
        })
    }

    /// Returns the prose of the line: in Rust, comments and strings of more than one word.
    fn prose(&self) -> impl Iterator<Item = &'a str> {
        let (code, comment) = match self.text.split_once("//") {
            Some((code, comment)) if self.is_rust => (code, comment),
            _ if self.is_rust => (self.text, ""),
            _ => ("", self.text),
        };
        // Every other part is between quotation marks.
        code.split('"').skip(1).step_by(2).filter(|string| string.contains(' ')).chain([comment])
    }

    fn is_vague_item(&self) -> bool {
        let mut words = self.text.split_whitespace();
        let is_item = words.next() == Some("pub")
            && words.next().is_some_and(|kind| ["struct", "enum", "trait", "type"].contains(&kind));
        let name = words.next().unwrap_or_default();
        let name = name.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        self.is_rust && is_item && VAGUE.contains(&name)
    }
}

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    count(ws, args.has("--list")).map(drop)
}

pub(crate) fn check(ws: &Workspace) -> Result<Outcome> {
    count(ws, false)
}

/// Lists the lines that break a rule; those of [`ALLOWED`] on request.
fn count(ws: &Workspace, lists_allowed: bool) -> Result<Outcome> {
    let mut counts = [0; ALLOWED.len()];
    let mut findings = 0;
    for file in ws.files(&["*.rs", "*.md"])? {
        let allowed = ALLOWED.iter().position(|(path, ..)| file.starts_with(path));
        let path = ws.root().join(&file);
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        for (number, text) in (1..).zip(text.lines()) {
            let line = Line { text, is_rust };
            for rule in RULES.iter().filter(|rule| (rule.is_broken)(&line)) {
                *allowed.map_or(&mut findings, |entry| &mut counts[entry]) += 1;
                if allowed.is_none() || lists_allowed {
                    output::note(&format!("{file}:{number}: {}", rule.name));
                }
            }
        }
    }
    let mut is_above = false;
    for ((path, limit, reason), count) in ALLOWED.iter().zip(counts) {
        output::note(&format!("{path}: {count} of at most {limit} lines ({reason})"));
        is_above |= count > *limit;
    }
    if findings > 0 || is_above {
        bail!("{findings} lines, and the paths above their limit, break a rule (--list shows all)");
    }
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str, is_rust: bool) -> Vec<usize> {
        let line = Line { text, is_rust };
        (0..RULES.len()).filter(|rule| (RULES[*rule].is_broken)(&line)).collect()
    }

    #[test]
    fn rules_apply_to_prose() {
        assert_eq!(broken("    /// The same of two files.", true), [0]);
        assert_eq!(broken("let nobody = 1; // Nobody listens.", true), [1]);
        assert_eq!(broken("let nobody = \"of us\";", true), [2]);
        assert_eq!(broken("Tools dial the socket.", false), [3]);
        assert_eq!(broken("pub struct Kind<T>(T);", true), [4]);
        assert_eq!(broken("pub struct KindInfo; // A dialog with users.", true), [0; 0]);
    }

    #[test]
    fn names_are_no_prose() {
        for text in
            ["as user nobody", "as the user `nobody`, or 'us'", "/out/nobody.png", "{ours} and --dial-in 1s"]
        {
            assert_eq!(broken(text, false), [0; 0], "{text}");
        }
        assert_eq!(broken("let unit = [\"us\", \"ms\"];", true), [0; 0]);
        assert_eq!(broken("the user is nobody's (whoever)", false), [1]);
    }
}
