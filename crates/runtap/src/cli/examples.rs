//! Tests of the help texts, and of the commands shown in the help, the README and docs/.

use std::fs;

use clap::{Command, CommandFactory, Parser};
use runtap_testkit::shown::{in_page, words};
use runtap_testkit::workspace_root;

use super::Cli;

/// Commands shown in texts: the place of each and its words.
type ShownCommands = Vec<(String, Vec<String>)>;

fn collect_from_help(command: &Command, name: &str, shown: &mut ShownCommands) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    shown.extend(help.lines().filter_map(words).map(|words| (format!("{name} --help"), words)));
    for verb in command.get_subcommands() {
        collect_from_help(verb, &format!("{name} {}", verb.get_name()), shown);
    }
}

/// Returns the command of the program with the options of all verbs.
fn built_command() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[test]
fn help_lists_every_verb_once_with_its_description() {
    let mut command = built_command();
    let help = command.render_help().to_string();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let line = format!("  {:<13}  {about}\n", verb.get_name());
        assert_eq!(help.matches(&line).count(), 1, "{line}{help}");
    }
}

fn check_paragraphs(command: &Command, name: &str) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for (line, next) in help.lines().zip(help.lines().skip(1)) {
        let wrapped = [line, next].iter().all(|line| !line.is_empty() && !line.starts_with(' '));
        assert!(!wrapped, "{name} has a newline within a paragraph: {line}\n{next}");
    }
    for line in help.lines().filter(|line| line.starts_with(' ')) {
        assert!(line.chars().count() <= 90, "{name} has a long example: {line}");
    }
    for verb in command.get_subcommands() {
        check_paragraphs(verb, &format!("{name} {}", verb.get_name()));
    }
}

/// clap wraps paragraphs at the width of the terminal.
#[test]
fn paragraphs_of_help_have_no_newlines() {
    check_paragraphs(&built_command(), "runtap");
}

#[test]
fn every_shown_command_is_valid() {
    let mut shown = ShownCommands::new();
    let all = built_command();
    collect_from_help(&all, "runtap", &mut shown);
    let in_help = shown.len();
    assert!(in_help > 50, "{in_help}");
    let root = workspace_root();
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    for page in
        pages.chain([root.join("README.md")]).filter(|path| path.extension().is_some_and(|it| it == "md"))
    {
        shown.extend(in_page(&page).into_iter().map(|words| (page.display().to_string(), words)));
    }
    assert!(shown.len() > in_help + 40, "{} in help, {} in all", in_help, shown.len());
    for (place, words) in shown {
        // `runtap help VERB` is parsed as an error that prints help.
        if let Err(error) = Cli::try_parse_from(&words) {
            assert!(!error.use_stderr(), "{place}: {words:?}\n{error}");
        }
    }
}
