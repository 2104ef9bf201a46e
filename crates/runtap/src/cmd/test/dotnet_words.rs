//! Options of `dotnet test` that `runtap test` has no use for: what builds, or was built, is not its business. Those without a
//! meaning here are taken with a note, so that a command line of a script goes on working; those with one are refused with
//! what does the same.

use std::ffi::OsString;
use std::path::Path;

use super::usage;
use crate::output::Output;

/// The option by which they get through the parser; nobody writes it.
pub(crate) const UNUSED: &str = "--option-of-dotnet-test";

/// What is made of an option.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// It is left out; why that changes nothing.
    Note(&'static str),
    /// It is refused; what to write instead.
    Refusal(&'static str),
}

/// An option: its names, whether a value follows, and what is made of it.
struct Known(&'static [&'static str], bool, Fate);

const NOTHING_IS_BUILT: Fate = Fate::Note("nothing is built here");
const NO_PROFILE: Fate = Fate::Note("no launch profile is used here");
const WHAT_WAS_BUILT: Fate = Fate::Refusal(
    "name what was built, by a file or a pattern: runtap test 'bin/Release/net10.0/**/*.Tests.dll'",
);

const FOR_APPLICATIONS: Fate = Fate::Refusal(
    "it is the application's own option: put it after '--', as in runtap test PATH -- --coverage",
);

const KNOWN: &[Known] = &[
    Known(&["--no-build", "--no-restore", "--no-dependencies", "--no-incremental"], false, NOTHING_IS_BUILT),
    Known(&["--nologo", "--disable-build-servers", "--interactive", "--force"], false, NOTHING_IS_BUILT),
    Known(&["-bl", "-binaryLogger", "--binaryLogger"], false, NOTHING_IS_BUILT),
    Known(&["-p", "--property"], true, NOTHING_IS_BUILT),
    Known(
        &["--verbosity", "-verbosity"],
        true,
        Fate::Note("nothing is built here; --output detailed says more of tests"),
    ),
    Known(&["--no-launch-profile", "--no-launch-profile-arguments"], false, NO_PROFILE),
    Known(&["--launch-profile", "-lp"], true, NO_PROFILE),
    Known(
        &["--no-artifact-post-processing"],
        false,
        Fate::Note("files of applications are left as they are"),
    ),
    Known(
        &["--results-directory-layout"],
        true,
        Fate::Note(
            "applications put their files into --results-directory as they like; \
             --collect-artifacts copies them into a directory for each",
        ),
    ),
    Known(&["-c", "--configuration", "-f", "--framework", "-a", "--arch"], true, WHAT_WAS_BUILT),
    Known(&["-r", "--runtime", "--os", "--artifacts-path"], true, WHAT_WAS_BUILT),
    Known(&["--use-current-runtime", "--ucr"], false, WHAT_WAS_BUILT),
    Known(&["--project", "--solution"], true, WHAT_WAS_BUILT),
    // Those of `dotnet test` with VSTest, which people have in their scripts too.
    Known(&["-l", "--logger"], true, Fate::Refusal("--report trx=FILE, or junit, html, ctrf, jsonl, github")),
    Known(
        &["--collect"],
        true,
        Fate::Refusal("the application's own option, after '--': runtap test PATH -- --coverage"),
    ),
    Known(
        &["-s", "--settings"],
        true,
        Fate::Refusal("the application's own option, after '--': runtap test PATH -- --settings FILE"),
    ),
    Known(
        &["--blame", "--blame-crash", "--blame-hang"],
        false,
        Fate::Refusal(
            "nothing is needed for that: the tests that ran when an application died are named. \
             --timeout-per-test TIME ends those that hang",
        ),
    ),
    Known(&["--blame-hang-timeout"], true, Fate::Refusal("--timeout-per-test TIME")),
    Known(&["-d", "--diag"], true, Fate::Refusal("--diagnostic-output-directory DIR")),
    // Of extensions that applications are built with: here the runner does it for all of them.
    Known(&["--report-trx"], false, Fate::Refusal("--report trx, for one file of all applications")),
    Known(&["--report-trx-filename"], true, Fate::Refusal("--report trx=FILE")),
    Known(
        &["--report-junit", "--report-ctrf", "--report-html"],
        false,
        Fate::Refusal("--report junit, ctrf or html"),
    ),
    Known(
        &["--report-junit-filename", "--report-ctrf-filename", "--report-html-filename"],
        true,
        Fate::Refusal("--report junit=FILE, ctrf=FILE or html=FILE"),
    ),
    Known(&["--retry-failed-tests"], true, Fate::Refusal("--retries N, which needs no extension")),
    Known(
        &["--retry-failed-tests-max-percentage", "--retry-failed-tests-max-tests"],
        true,
        Fate::Refusal("--retries N with --max-fail N, which stops a run of too many failures"),
    ),
    Known(&["--hangdump", "--crashdump", "--coverage"], false, FOR_APPLICATIONS),
    Known(&["--hangdump-timeout"], true, Fate::Refusal("--timeout-per-test TIME")),
    Known(&["--test-adapter-path"], true, Fate::Refusal("an application brings its adapters itself")),
];

/// What `MSBuild` calls its degrees of verbosity.
const DEGREES: [&str; 10] =
    ["q", "quiet", "m", "minimal", "n", "normal", "d", "detailed", "diag", "diagnostic"];

/// Replaces them, in the words of a whole command line, by what the parser knows.
pub(crate) fn familiar(words: &mut Vec<OsString>) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let behind = words.split_off(end);
    let mut given = std::mem::take(words).into_iter().peekable();
    words.extend(given.by_ref().take(2));
    while let Some(word) = given.next() {
        let text = word.to_str().unwrap_or_default();
        // `-p:X`, `--property=X`
        let (name, value) = match text.split_once([':', '=']) {
            Some((name, value)) if name.starts_with('-') => (name, Some(value)),
            _ => (text, None),
        };
        let known = KNOWN.iter().find(|Known(names, ..)| names.contains(&name));
        let is_degree = |word: &str| DEGREES.contains(&word) && !Path::new(word).exists();
        match known {
            Some(Known(_, has_value, _)) => {
                words.push(format!("{UNUSED}={name}").into());
                if *has_value && value.is_none() {
                    given.next_if(|next| !next.to_string_lossy().starts_with('-'));
                }
            }
            None if text == "-?" => words.push("--help".into()),
            None if name == "-v" && value.is_some() => words.push(format!("{UNUSED}=--verbosity").into()),
            None if text == "-v" && given.next_if(|it| it.to_str().is_some_and(is_degree)).is_some() => {
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

/// How much is shown, by the states of `--show-test-results`.
fn detail(states: &str) -> &'static str {
    let states: Vec<_> = states.split([',', ';']).map(|state| state.trim().to_ascii_lowercase()).collect();
    let wants = |wanted: &str| states.iter().any(|state| state == wanted);
    match () {
        () if wants("all") || wants("passed") => "detailed",
        () if wants("skipped") => "normal",
        () => "minimal",
    }
}

/// Says what becomes of them.
pub(super) fn tell(given: &[String], output: Output) -> anyhow::Result<()> {
    let mut said = Vec::new();
    for name in given {
        let fate = KNOWN.iter().find(|Known(names, ..)| names.contains(&name.as_str()));
        match fate {
            Some(Known(_, _, Fate::Refusal(instead))) => {
                let message = format!("'{name}' of dotnet test is no option of runtap test");
                return Err(usage(message, (*instead).to_owned()));
            }
            Some(Known(_, _, Fate::Note(why))) if !said.contains(&name) => {
                output.note(format_args!("{name} is not used: {why}"));
                said.push(name);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(line: &str) -> String {
        let mut words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        familiar(&mut words);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ").replace(UNUSED, "U")
    }

    #[test]
    fn what_builds_is_taken_out_with_its_value() {
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
            assert_eq!(after(given), expected);
        }
    }
}
