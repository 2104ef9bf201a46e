//! Parses the arguments of subcommands: `--flag`, `--option N` and one word from a list, as declared by the subcommand.
//! Other positional arguments are not supported; use a separate subcommand instead.

use std::fmt;

use anyhow::Result;

use crate::cmd::Command;

/// The arguments after the subcommand's name.
#[derive(Debug, Default, PartialEq)]
pub struct Args {
    given: Vec<(String, Option<u64>)>,
}

/// An error in the command line, as opposed to a failure of the subcommand.
#[derive(Debug)]
pub struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

impl Args {
    /// Accepts only what `command.usage` declares: `[--all]` is a flag, `[--seconds N]` an option with a number,
    /// `[a|b]` a choice of words.
    pub fn parse(command: &Command, words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut words = words.into_iter();
        let mut given: Vec<(String, Option<u64>)> = Vec::new();
        while let Some(word) = words.next() {
            let value = match declared(command.usage, &word) {
                Some(Kind::Flag) => None,
                Some(Kind::Word) => {
                    if let Some((first, _)) = given.iter().find(|(name, _)| !name.starts_with("--")) {
                        return Err(UsageError(format!("`{first}` or `{word}`, not both")).into());
                    }
                    None
                }
                Some(Kind::Number) => {
                    let number = words.next().and_then(|text| text.parse().ok());
                    Some(number.ok_or_else(|| UsageError(format!("{word} needs a number")))?)
                }
                None => {
                    let usage = format!("cargo xtask {} {}", command.name, command.usage);
                    return Err(UsageError(format!(
                        "unknown argument `{word}`; usage: {}",
                        usage.trim_end()
                    ))
                    .into());
                }
            };
            given.push((word, value));
        }
        Ok(Self { given })
    }

    /// Returns whether a flag was given.
    pub fn has(&self, flag: &str) -> bool {
        self.given.iter().any(|(name, _)| name == flag)
    }

    /// Returns the chosen word.
    pub fn word(&self) -> Option<&str> {
        self.given.iter().map(|(name, _)| name.as_str()).find(|name| !name.starts_with("--"))
    }

    /// Returns the number of an option. `None` if it was not given.
    pub fn number(&self, option: &str) -> Option<u64> {
        self.given.iter().rev().find(|(name, _)| name == option).and_then(|(_, value)| *value)
    }
}

enum Kind {
    Flag,
    Number,
    Word,
}

fn declared(usage: &str, word: &str) -> Option<Kind> {
    usage.split(['[', ']']).find_map(|part| match part.split_once(' ') {
        Some((name, "N")) if name == word => Some(Kind::Number),
        None if part == word && word.starts_with("--") => Some(Kind::Flag),
        None if part.contains('|') && part.split('|').any(|choice| choice == word) => Some(Kind::Word),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command { name: "try", usage: "[--all] [--seconds N] [fast|slow]", about: "", run: |_, _| Ok(()) }
    }

    fn parse(words: &[&str]) -> Result<Args> {
        Args::parse(&command(), words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn declared_arguments_are_accepted() {
        let args = parse(&["--seconds", "7", "--all"]).unwrap();
        assert!(args.has("--all"));
        assert_eq!(args.number("--seconds"), Some(7));
        assert_eq!(args.word(), None);
        assert_eq!(parse(&["slow", "--all"]).unwrap().word(), Some("slow"));
    }

    #[test]
    fn other_arguments_are_rejected() {
        let no_number = [&["--seconds"][..], &["--seconds", "soon"]];
        let unknown = [&["--every"][..], &["all"], &["N"], &["fast|slow"], &["|"], &[""], &["fast", "slow"]];
        for words in no_number.into_iter().chain(unknown) {
            let error = parse(words).unwrap_err();
            assert!(error.is::<UsageError>(), "{words:?}: {error}");
        }
    }
}
