//! `runtap completions SHELL`, and the values that shells complete: process ids, names and files.
//!
//! Other users choose the names of processes and files, and bash inserts completions unquoted, so that `$(…)` would run
//! with the next Enter. Names with special characters are therefore not offered; process ids are. Descriptions are one
//! line without field separators or control characters.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{Arg, Command, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use runtap_discover::Process;
use runtap_jvm::coverage::Format as Coverage;
use runtap_os::output::is_plain_word;
use runtap_record::providers::CLR_KEYWORDS;
use runtap_target::{UserFilter, local_name, running};
use runtap_text::{Output, one_line};

use crate::cli::Completions;
use crate::exit::usage;

/// The maximum length of a description in characters.
const MAX_DESCRIPTION_CHARS: usize = 200;

pub(super) fn run(options: &Completions, output: Output) -> anyhow::Result<u8> {
    let shells = Shells::builtins();
    let shell = shells.completer(&options.shell).ok_or_else(|| {
        usage(format!("'{}' is not a shell that completions are available for", options.shell))
    })?;
    let mut script = Vec::new();
    shell.write_registration("COMPLETE", "runtap", "runtap", "runtap", &mut script)?;
    output.text(String::from_utf8(script)?)?;
    Ok(crate::exit::OK)
}

/// Completes `-p`.
pub(crate) fn pids(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fits = |process: &Process| process.pid.to_string().starts_with(&*current);
    let candidate = |process: Process| {
        let help = format!("{} {}", local_name(&process), process.command_line.join(" "));
        CompletionCandidate::new(process.pid.to_string())
            .help(Some(one_line(&help, MAX_DESCRIPTION_CHARS).into()))
    };
    running::dotnet().into_iter().filter(fits).map(candidate).collect()
}

/// Returns the value of `--user` in the words of the command line so far.
fn user_option(words: impl IntoIterator<Item = OsString>) -> Option<String> {
    let mut words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = words.next() {
        match word.strip_prefix("--user") {
            Some("") => return words.next(),
            Some(value) if value.starts_with('=') => return value.strip_prefix('=').map(str::to_owned),
            _ => {}
        }
    }
    None
}

/// Completes `-n`, only with names of processes that the option would select.
pub(crate) fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let user = user_option(std::env::args_os());
    safe_words(current, running::names(UserFilter(user.as_deref())))
}

/// Completes `--user`.
pub(crate) fn users(current: &OsStr) -> Vec<CompletionCandidate> {
    safe_words(current, running::users())
}

/// Returns the words that start with `current` and contain no characters special to a shell.
fn safe_words(current: &OsStr, words: Vec<String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = words.into_iter().filter(|word| word.starts_with(&*current) && is_plain_word(word));
    fitting.map(CompletionCandidate::new).collect()
}

/// Completes a bare target. Names that are numbers are left out, because they would be parsed as process ids.
pub(crate) fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut candidates = pids(current);
    let is_word = |name: &CompletionCandidate| {
        let name = name.get_value().to_str();
        name.is_some_and(|name| !name.chars().all(|c| c.is_ascii_digit()))
    };
    candidates.extend(names(current).into_iter().filter(is_word));
    candidates
}

/// Completes the last word of `--profile A,B`.
pub(crate) fn profiles(current: &OsStr) -> Vec<CompletionCandidate> {
    let all = runtap_record::providers::PROFILES.iter().map(|profile| (profile.name, Some(profile.about)));
    complete_last_word(current, ',', all)
}

/// Completes the last word of `--clrevents gc+jit`.
pub(crate) fn clr_events(current: &OsStr) -> Vec<CompletionCandidate> {
    complete_last_word(current, '+', CLR_KEYWORDS.iter().map(|keyword| (keyword.name, None)))
}

/// Completes `test --report FORMAT[=FILE]`.
pub(crate) fn test_reports(current: &OsStr) -> Vec<CompletionCandidate> {
    complete_format_and_file(current, runtap_mtp::suite::report::names())
}

/// Completes `jvm report --coverage FORMAT[=FILE]`.
pub(crate) fn coverage_files(current: &OsStr) -> Vec<CompletionCandidate> {
    complete_format_and_file(current, Coverage::ALL.into_iter().map(|format| (format.name(), None)))
}

fn complete_format_and_file(
    current: &OsStr,
    formats: impl Iterator<Item = (&'static str, Option<&'static str>)>,
) -> Vec<CompletionCandidate> {
    let Some((format, file)) = current.to_str().and_then(|text| text.split_once('=')) else {
        return complete_last_word(current, '=', formats);
    };
    // An unknown format has no completions.
    let known = formats.filter(|(name, _)| *name == format);
    known
        .flat_map(|(name, _)| {
            paths(OsStr::new(file)).into_iter().map(move |it| it.add_prefix(format!("{name}=")))
        })
        .collect()
}

/// Completes the last word of a list; each candidate contains the preceding words.
fn complete_last_word(
    current: &OsStr,
    separator: char,
    words: impl Iterator<Item = (&'static str, Option<&'static str>)>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let (before, last) = current.rfind(separator).map_or(("", &*current), |at| current.split_at(at + 1));
    let fitting = words.filter(|(word, _)| word.starts_with(last));
    let candidate = |(word, about): (&str, Option<&'static str>)| {
        CompletionCandidate::new(format!("{before}{word}")).help(about.map(Into::into))
    };
    fitting.map(candidate).collect()
}

/// Replaces the engine's completion of paths, which offers names with characters special to shells.
pub(crate) fn guarded(mut command: Command) -> Command {
    // Subcommands have their arguments only after the build.
    command.build();
    with_safe_paths(command)
}

fn with_safe_paths(command: Command) -> Command {
    let guarded_path = |arg: Arg| {
        if arg.get::<ArgValueCompleter>().is_some() {
            return arg;
        }
        match arg.get_value_hint() {
            ValueHint::Unknown | ValueHint::Other => arg,
            ValueHint::DirPath => arg.add(ArgValueCompleter::new(folders)),
            _ => arg.add(ArgValueCompleter::new(paths)),
        }
    };
    command.mut_args(guarded_path).mut_subcommands(with_safe_paths)
}

/// Completes a path.
fn paths(current: &OsStr) -> Vec<CompletionCandidate> {
    retain_safe_paths(PathCompleter::any().complete(current))
}

/// Completes the path of a directory.
fn folders(current: &OsStr) -> Vec<CompletionCandidate> {
    retain_safe_paths(PathCompleter::dir().complete(current))
}

/// Completes a recording: files with the extension of a recording, and directories.
pub(crate) fn recordings(current: &OsStr) -> Vec<CompletionCandidate> {
    let is_recording = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "nettrace" || extension == "netperf")
    };
    retain_safe_paths(PathCompleter::any().filter(is_recording).complete(current))
}

/// Removes the paths with characters special to a shell.
fn retain_safe_paths(mut paths: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    paths.retain(|candidate| {
        let path = candidate.get_value().to_string_lossy();
        path.split('/').all(|name| name.is_empty() || matches!(name, "." | ".." | "~") || is_plain_word(name))
    });
    paths
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_last_word_of_a_list_is_completed() {
        let values = |found: Vec<CompletionCandidate>| -> Vec<String> {
            found.iter().map(|candidate| candidate.get_value().to_str().unwrap().to_owned()).collect()
        };
        let clr = |text: &str| values(clr_events(OsStr::new(text)));
        assert_eq!(clr("exc"), ["exception"]);
        assert_eq!(clr("gc+jit+exc"), ["gc+jit+exception"]);
        assert_eq!(clr("").len(), CLR_KEYWORDS.len());
        assert_eq!(clr("gc+x"), [] as [&str; 0]);
        let profile = |text: &str| values(profiles(OsStr::new(text)));
        assert_eq!(profile("gc-v"), ["gc-verbose"]);
        assert_eq!(profile("gc-verbose,data"), ["gc-verbose,database"]);
    }

    #[test]
    fn formats_and_their_files_are_completed() {
        let folder = tempfile::Builder::new().prefix("plain").tempdir().unwrap();
        std::fs::write(folder.path().join("a.xml"), "").unwrap();
        let values = |found: Vec<CompletionCandidate>| -> Vec<String> {
            found.iter().map(|candidate| candidate.get_value().to_str().unwrap().to_owned()).collect()
        };
        let report = |text: &str| values(test_reports(OsStr::new(text)));
        assert_eq!(report("").len(), 7);
        assert_eq!(report("j"), ["junit", "junit10", "jsonl"]);
        assert_eq!(report("gi"), ["github"]);
        let path = format!("{}/a", folder.path().display());
        assert_eq!(report(&format!("junit={path}")), [format!("junit={path}.xml")]);
        assert_eq!(report(&format!("pdf={path}")), [] as [&str; 0]);
        assert_eq!(values(coverage_files(OsStr::new("l"))), ["lcov"]);
    }

    #[test]
    fn paths_with_shell_characters_are_never_offered() {
        let folder = tempfile::Builder::new().prefix("plain").tempdir().unwrap();
        for name in ["plain.nettrace", "x$(touch pwned).nettrace", "a b.nettrace", "x;y.nettrace"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let current = format!("{}/", folder.path().display());
        let mut asked = 0;
        let mut waiting = vec![guarded(crate::cli::Cli::command())];
        while let Some(command) = waiting.pop() {
            waiting.extend(command.get_subcommands().cloned());
            for arg in command.get_arguments() {
                if matches!(arg.get_value_hint(), ValueHint::Unknown | ValueHint::Other) {
                    continue;
                }
                let complete = arg.get::<ArgValueCompleter>().expect("runtap completes paths");
                for candidate in complete.complete(OsStr::new(&current)) {
                    let path = candidate.get_value().to_str().unwrap();
                    assert_eq!(
                        path,
                        format!("{current}plain.nettrace"),
                        "{} {}",
                        command.get_name(),
                        arg.get_id()
                    );
                }
                asked += 1;
            }
        }
        assert!(asked > 40, "{asked}");
    }

    #[test]
    fn user_option_is_found_in_the_words() {
        let user = |line: &str| user_option(line.split(' ').map(OsString::from));
        assert_eq!(user("runtap -- runtap info -n x"), None);
        assert_eq!(user("runtap -- runtap info --user ann -n x").as_deref(), Some("ann"));
        assert_eq!(user("runtap info --user=33 -n").as_deref(), Some("33"));
        assert_eq!(user("runtap info --users ann"), None);
        assert_eq!(user("runtap info --user"), None);
    }
}
