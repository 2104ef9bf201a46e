//! Command lines that are rejected before any application is started, and the errors.

use std::path::Path;

use runtap_mtp::FindError;
use runtap_mtp::suite::dotnet_options::ignored_options;
use runtap_text::Output;

use super::usage;
use crate::cli::Test;

/// Finds options that have no effect together, or that are in the wrong place.
pub(super) fn check(options: &Test, output: Output) -> anyhow::Result<()> {
    let ignored = ignored_options(&options.without_meaning);
    for note in ignored.map_err(|error| usage(error.to_string(), error.replacement.to_owned()))? {
        output.note(note);
    }
    let unused = [
        ("--summary", options.summary),
        ("--report", !options.report.is_empty()),
        ("--collect-artifacts", options.collect_artifacts.is_some()),
    ];
    for option in unused.into_iter().filter_map(|(option, is_given)| is_given.then_some(option)) {
        if options.list_tests.is_some() {
            return Err(usage(format!("{option} applies to results, but --list-tests runs no test"), None));
        }
        if options.help {
            output.note(format_args!("ignoring {option}: with --help, no test is run"));
        }
    }
    for word in options.arguments.iter().filter_map(|word| word.to_str()) {
        let (does, own) = match word {
            "--list-tests" => ("only lists its tests", "runtap test PATH --list-tests"),
            "--help" | "-h" | "-?" => ("only shows its options", "runtap test PATH --help"),
            "--info" => ("only describes itself", "run the application itself: PATH --info"),
            _ => continue,
        };
        let message = format!("with '{word}' after '--', an application {does}");
        return Err(usage(message, own.to_owned()));
    }
    Ok(())
}

/// Explains why no application was found, with a hint.
pub(super) fn no_application(error: &FindError, options: &Test, root: &Path) -> anyhow::Error {
    let taken = options.filter_uid.iter().find(|uid| root.join(uid).is_file());
    if let (FindError::Nothing, Some(path)) = (error, taken) {
        return usage(
            format!("no test application specified: --filter-uid takes all words after it, including {path}"),
            format!("Put the path first: runtap test {path} --filter-uid UID…"),
        );
    }
    usage(error.to_string(), error.hint().map(str::to_owned))
}
