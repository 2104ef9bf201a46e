//! Every command that the documentation shows is one that the program takes: in the help, the README and docs/.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory, Parser};

use super::Cli;

/// The words of a line as a shell sees them, up to a comment, a pipe or the next command. `None` if it calls something
/// else.
fn words(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    if !line.starts_with("runtap ") {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(end), letter) if letter == end => quote = None,
            (Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '&' | ';') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => {
                words.extend(word.take());
                // Two blanks part a command from what is said of it.
                if letters.as_str().starts_with(' ') {
                    break;
                }
            }
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// Where a command stands, and its words.
type Shown = Vec<(String, Vec<String>)>;

fn in_help(command: &Command, name: &str, shown: &mut Shown) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    shown.extend(help.lines().filter_map(words).map(|words| (format!("{name} --help"), words)));
    for verb in command.get_subcommands() {
        in_help(verb, &format!("{name} {}", verb.get_name()), shown);
    }
}

/// The commands in the code blocks of a page.
fn in_page(path: &Path, shown: &mut Shown) {
    let text = fs::read_to_string(path).unwrap();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            shown.extend(words(line).map(|words| (path.display().to_string(), words)));
        }
    }
}

#[test]
fn every_command_that_is_shown_is_taken() {
    let mut shown = Shown::new();
    in_help(&Cli::command(), "runtap", &mut shown);
    let in_help = shown.len();
    assert!(in_help > 50, "{in_help}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for page in
        pages.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|it| it == "md"))
    {
        in_page(&page, &mut shown);
    }
    assert!(shown.len() > in_help + 40, "{} in help, {} in all", in_help, shown.len());
    for (place, words) in shown {
        // A verb with a list of its own is shown without one too: `runtap help VERB`.
        if let Err(error) = Cli::try_parse_from(&words) {
            assert!(!error.use_stderr(), "{place}: {words:?}\n{error}");
        }
    }
}

#[test]
fn words_are_those_of_a_shell() {
    let split = |line| words(line).map(|words| words.join("|"));
    assert_eq!(split("  runtap a 'b c' \"d \\\" e\" | jq .x").as_deref(), Some("runtap|a|b c|d \" e"));
    assert_eq!(split("sudo runtap a   what it does").as_deref(), Some("runtap|a"));
    assert_eq!(split("runtap a # b").as_deref(), Some("runtap|a"));
    assert_eq!(split("runtap -o x.y#z '' &").as_deref(), Some("runtap|-o|x.y#z|"));
    assert_eq!(split("dotnet app.dll"), None);
}
