//! Every command that the documentation shows is one that the program takes: in the help, the README and docs/.

use std::fs;

use clap::{Command, CommandFactory, Parser};
use runtap_testkit::shown::{in_page, words};
use runtap_testkit::workspace_root;

use super::Cli;

/// Where a command stands, and its words.
type Shown = Vec<(String, Vec<String>)>;

fn in_help(command: &Command, name: &str, shown: &mut Shown) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    shown.extend(help.lines().filter_map(words).map(|words| (format!("{name} --help"), words)));
    for verb in command.get_subcommands() {
        in_help(verb, &format!("{name} {}", verb.get_name()), shown);
    }
}

#[test]
fn every_command_that_is_shown_is_taken() {
    let mut shown = Shown::new();
    let mut all = Cli::command();
    // Some verbs have no options before.
    all.build();
    in_help(&all, "runtap", &mut shown);
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
        // A verb with a list of its own is shown without one too: `runtap help VERB`.
        if let Err(error) = Cli::try_parse_from(&words) {
            assert!(!error.use_stderr(), "{place}: {words:?}\n{error}");
        }
    }
}
