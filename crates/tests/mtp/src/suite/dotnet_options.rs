//! Options of `dotnet test` that `runtap test` does not support, such as those about building. Options that would have no
//! effect are accepted with a note, so that existing command lines keep working; others are rejected with the equivalent
//! option.

use std::ffi::OsString;
use std::path::Path;

/// The internal option that carries the name of an option of `dotnet test` through a parser of command lines.
pub const UNUSED: &str = "--option-of-dotnet-test";

/// The treatment of an option.
#[derive(Debug, Clone, Copy)]
enum Treatment {
    /// Ignored, with the reason why ignoring the option changes nothing.
    Ignore(&'static str),
    /// Rejected, with the replacement.
    Reject(&'static str),
}

/// An option: its names, whether a value follows, and its treatment.
struct DotnetOption(&'static [&'static str], bool, Treatment);

const NOTHING_IS_BUILT: Treatment = Treatment::Ignore("nothing is built here");
const NO_PROFILE: Treatment = Treatment::Ignore("no launch profile is used here");
const NAME_THE_OUTPUT: Treatment = Treatment::Reject(
    "specify the built application as a file or a pattern: runtap test 'bin/Release/net10.0/**/*.Tests.dll'",
);

const FOR_APPLICATIONS: Treatment =
    Treatment::Reject("put this option of the application after '--': runtap test PATH -- --coverage");

const DOTNET_OPTIONS: &[DotnetOption] = &[
    DotnetOption(
        &["--no-build", "--no-restore", "--no-dependencies", "--no-incremental"],
        false,
        NOTHING_IS_BUILT,
    ),
    DotnetOption(
        &["--nologo", "--disable-build-servers", "--interactive", "--force"],
        false,
        NOTHING_IS_BUILT,
    ),
    DotnetOption(&["-bl", "-binaryLogger", "--binaryLogger"], false, NOTHING_IS_BUILT),
    DotnetOption(&["-p", "--property"], true, NOTHING_IS_BUILT),
    DotnetOption(
        &["--verbosity", "-verbosity"],
        true,
        Treatment::Ignore("nothing is built here; --output detailed shows more about tests"),
    ),
    DotnetOption(&["--no-launch-profile", "--no-launch-profile-arguments"], false, NO_PROFILE),
    DotnetOption(&["--launch-profile", "-lp"], true, NO_PROFILE),
    DotnetOption(
        &["--no-artifact-post-processing"],
        false,
        Treatment::Ignore("files of applications are left as they are"),
    ),
    DotnetOption(
        &["--results-directory-layout"],
        true,
        Treatment::Ignore(
            "applications choose where they write in --results-directory; \
             --collect-artifacts copies the files into a directory for each application",
        ),
    ),
    DotnetOption(&["-c", "--configuration", "-f", "--framework", "-a", "--arch"], true, NAME_THE_OUTPUT),
    DotnetOption(&["-r", "--runtime", "--os", "--artifacts-path"], true, NAME_THE_OUTPUT),
    DotnetOption(&["--use-current-runtime", "--ucr"], false, NAME_THE_OUTPUT),
    DotnetOption(&["--project", "--solution"], true, NAME_THE_OUTPUT),
    // Options of `dotnet test` with VSTest, which are common in scripts too.
    DotnetOption(
        &["-l", "--logger"],
        true,
        Treatment::Reject("--report trx=FILE, or junit, html, ctrf, jsonl, github"),
    ),
    DotnetOption(
        &["--collect"],
        true,
        Treatment::Reject("put this option of the application after '--': runtap test PATH -- --coverage"),
    ),
    DotnetOption(
        &["-s", "--settings"],
        true,
        Treatment::Reject(
            "put this option of the application after '--': runtap test PATH -- --settings FILE",
        ),
    ),
    DotnetOption(
        &["--blame", "--blame-crash", "--blame-hang"],
        false,
        Treatment::Reject(
            "not needed: runtap names the tests that were running when an application crashed. \
             --timeout-per-test TIME stops tests that hang",
        ),
    ),
    DotnetOption(&["--blame-hang-timeout"], true, Treatment::Reject("--timeout-per-test TIME")),
    DotnetOption(&["-d", "--diag"], true, Treatment::Reject("--diagnostic-output-directory DIR")),
    // Options of extensions that applications may include; this runner has these functions for all applications.
    DotnetOption(
        &["--report-trx"],
        false,
        Treatment::Reject("--report trx, for one file of all applications"),
    ),
    DotnetOption(&["--report-trx-filename"], true, Treatment::Reject("--report trx=FILE")),
    DotnetOption(
        &["--report-junit", "--report-ctrf", "--report-html"],
        false,
        Treatment::Reject("--report junit, ctrf or html"),
    ),
    DotnetOption(
        &["--report-junit-filename", "--report-ctrf-filename", "--report-html-filename"],
        true,
        Treatment::Reject("--report junit=FILE, ctrf=FILE or html=FILE"),
    ),
    DotnetOption(&["--retry-failed-tests"], true, Treatment::Reject("--retries N, which needs no extension")),
    DotnetOption(
        &["--retry-failed-tests-max-percentage", "--retry-failed-tests-max-tests"],
        true,
        Treatment::Reject("--retries N with --max-fail N, which stops a run of too many failures"),
    ),
    DotnetOption(&["--hangdump", "--crashdump", "--coverage"], false, FOR_APPLICATIONS),
    DotnetOption(&["--hangdump-timeout"], true, Treatment::Reject("--timeout-per-test TIME")),
    DotnetOption(&["--test-adapter-path"], true, Treatment::Reject("an application contains its adapters")),
];

/// The verbosity levels of `MSBuild`.
const VERBOSITY_LEVELS: [&str; 10] =
    ["q", "quiet", "m", "minimal", "n", "normal", "d", "detailed", "diag", "diagnostic"];

/// Replaces these options in a complete command line by options that the parser knows.
pub fn normalize_args(words: &mut Vec<OsString>) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let behind = words.split_off(end);
    let mut given = std::mem::take(words).into_iter().peekable();
    words.extend(given.by_ref().take(2));
    while let Some(word) = given.next() {
        let text = word.to_str().unwrap_or_default();
        // Values may be attached: `-p:X`, `--property=X`.
        let (name, value) = match text.split_once([':', '=']) {
            Some((name, value)) if name.starts_with('-') => (name, Some(value)),
            _ => (text, None),
        };
        let known = DOTNET_OPTIONS.iter().find(|DotnetOption(names, ..)| names.contains(&name));
        let is_verbosity = |word: &str| VERBOSITY_LEVELS.contains(&word) && !Path::new(word).exists();
        match known {
            Some(DotnetOption(_, has_value, _)) => {
                words.push(format!("{UNUSED}={name}").into());
                if *has_value && value.is_none() {
                    given.next_if(|next| !next.to_string_lossy().starts_with('-'));
                }
            }
            None if text == "-?" => words.push("--help".into()),
            None if name == "-v" && value.is_some() => words.push(format!("{UNUSED}=--verbosity").into()),
            None if text == "-v" && given.next_if(|it| it.to_str().is_some_and(is_verbosity)).is_some() => {
                words.push(format!("{UNUSED}=--verbosity").into());
            }
            None if name == "--show-test-results" => {
                let states = if let Some(value) = value {
                    value.to_owned()
                } else {
                    let next = given.next_if(|next| !next.to_string_lossy().starts_with('-'));
                    next.unwrap_or_default().to_string_lossy().into_owned()
                };
                words.push(format!("--output={}", detail(&states)).into());
            }
            None => words.push(word),
        }
    }
    words.extend(behind);
}

/// Returns the output level for the states of `--show-test-results`.
fn detail(states: &str) -> &'static str {
    let states: Vec<_> = states.split([',', ';']).map(|state| state.trim().to_ascii_lowercase()).collect();
    let wants = |wanted: &str| states.iter().any(|state| state == wanted);
    match () {
        () if wants("all") || wants("passed") => "detailed",
        () if wants("skipped") => "normal",
        () => "minimal",
    }
}

/// An option of `dotnet test` that a run rejects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' of dotnet test is not an option of runtap test")]
pub struct RejectedOption {
    /// The option.
    pub name: String,
    /// What serves instead.
    pub replacement: &'static str,
}

/// Returns a note for each ignored option among these names, or an error for the first rejected one.
///
/// # Errors
/// An option is rejected.
pub fn ignored_options(names: &[String]) -> Result<Vec<String>, RejectedOption> {
    let (mut notes, mut reported) = (Vec::new(), Vec::new());
    for name in names {
        let known = DOTNET_OPTIONS.iter().find(|DotnetOption(names, ..)| names.contains(&name.as_str()));
        match known {
            Some(DotnetOption(_, _, Treatment::Reject(replacement))) => {
                return Err(RejectedOption { name: name.clone(), replacement });
            }
            Some(DotnetOption(_, _, Treatment::Ignore(why))) if !reported.contains(&name) => {
                notes.push(format!("ignoring {name}: {why}"));
                reported.push(name);
            }
            _ => {}
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(line: &str) -> String {
        let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        normalize_args(&mut words);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ").replace(UNUSED, "U")
    }

    #[test]
    fn build_options_are_removed_with_their_values() {
        for (given, expected) in [
            ("runtap test --no-build a.dll", "runtap test U=--no-build a.dll"),
            ("runtap test -c Release a.dll", "runtap test U=-c a.dll"),
            ("runtap test --framework=net8.0 a.dll", "runtap test U=--framework a.dll"),
            ("runtap test -p:A=B -p C=D a.dll", "runtap test U=-p U=-p a.dll"),
            ("runtap test -bl:x.binlog -bl a.dll", "runtap test U=-bl U=-bl a.dll"),
            ("runtap test -v minimal a.dll", "runtap test U=--verbosity a.dll"),
            ("runtap test -v:m a.dll --verbosity q", "runtap test U=--verbosity a.dll U=--verbosity"),
            ("runtap test -v a.dll -vv", "runtap test -v a.dll -vv"),
            ("runtap test -? a.dll", "runtap test --help a.dll"),
            ("runtap test --show-test-results failed,skipped a", "runtap test --output=normal a"),
            ("runtap test --show-test-results=all a", "runtap test --output=detailed a"),
            ("runtap test --show-test-results none", "runtap test --output=minimal"),
            ("runtap test a.dll -- --no-build -v m", "runtap test a.dll -- --no-build -v m"),
            ("runtap test a --report-trx --report trx", "runtap test a U=--report-trx --report trx"),
            ("runtap test --retry-failed-tests 2 a", "runtap test U=--retry-failed-tests a"),
            ("runtap test --nologo --project A.csproj", "runtap test U=--nologo U=--project"),
        ] {
            assert_eq!(normalized(given), expected);
        }
    }
}
