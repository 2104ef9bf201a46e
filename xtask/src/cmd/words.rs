//! `cargo xtask words [--list]`: counts words and names that the project avoids.
//!
//! The rules are those of CONTRIBUTING.md, "Words", that a program can check. A count may fall but not rise: a change
//! that lowers one lowers its limit in [`RULES`] too.

use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// A rule: its name, the number of lines that may break it, and whether a line does.
struct Rule {
    name: &'static str,
    limit: usize,
    is_broken: fn(&Line<'_>) -> bool,
}

const RULES: [Rule; 5] = [
    Rule {
        name: "a doc comment starts with \"The same\": say what the item is, or link to the other one",
        limit: 8,
        is_broken: |line| line.doc().is_some_and(|doc| doc.starts_with("The same")),
    },
    Rule {
        name: "an indefinite person (whoever, nobody, …): name the user, the process or the peer",
        limit: 154,
        is_broken: |line| line.has(&["whoever", "nobody", "somebody", "anybody", "everybody"]),
    },
    Rule {
        name: "we, us, ours: name runtap, the process or the user",
        limit: 82,
        is_broken: |line| line.has(&["we", "us", "ours"]),
    },
    Rule {
        name: "dial: connect",
        limit: 52,
        is_broken: |line| line.has(&["dial", "dials", "dialed", "dialled", "dialing", "dialling"]),
    },
    Rule {
        name: "a public item with a name that says nothing (State, Kind, …)",
        limit: 5,
        is_broken: |line| line.is_vague_item(),
    },
];

/// Pages that quote other programs, or list past changes.
const EXCLUDED: [&str; 3] = ["CHANGELOG.md", "docs/conformance.md", "xtask/src/cmd/words.rs"];

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

    /// Whether the prose of the line has one of these words. In Rust, prose is comments and strings.
    fn has(&self, words: &[&str]) -> bool {
        self.prose().any(|part| {
            let mut all = part.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            all.any(|word| words.contains(&word.to_lowercase().as_str()))
        })
    }

    fn prose(&self) -> impl Iterator<Item = &'a str> {
        let (code, comment) = match self.text.split_once("//") {
            Some((code, comment)) if self.is_rust => (code, comment),
            _ if self.is_rust => (self.text, ""),
            _ => ("", self.text),
        };
        // Every other part is between quotation marks.
        code.split('"').skip(1).step_by(2).chain([comment])
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

fn count(ws: &Workspace, lists: bool) -> Result<Outcome> {
    let mut counts = [0; RULES.len()];
    let files = ws.files(&["*.rs", "*.md"])?;
    for file in files.iter().filter(|file| !EXCLUDED.contains(&file.as_str())) {
        let path = ws.root().join(file);
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
        for (number, text) in (1..).zip(text.lines()) {
            let line = Line { text, is_rust };
            for (rule, count) in RULES.iter().zip(&mut counts) {
                if (rule.is_broken)(&line) {
                    *count += 1;
                    if lists {
                        output::note(&format!("{file}:{number}: {}", rule.name));
                    }
                }
            }
        }
    }
    let mut is_above = false;
    for (rule, count) in RULES.iter().zip(counts) {
        output::note(&format!("{count} of at most {}: {}", rule.limit, rule.name));
        is_above |= count > rule.limit;
    }
    if is_above {
        bail!("more lines than before break a rule: `cargo xtask words --list` shows them");
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
        assert_eq!(broken("let nobody = \"us\";", true), [2]);
        assert_eq!(broken("Tools dial the socket.", false), [3]);
        assert_eq!(broken("pub struct Kind<T>(T);", true), [4]);
        assert_eq!(broken("pub struct KindInfo; // A dialog with users.", true), [0; 0]);
    }
}
