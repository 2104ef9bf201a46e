//! What the applications' tables state, compared with what arrives: runs, lists and help, on .NET 8 and 10.

use runtap_mtp::{Mode, Module, ModuleFailure, RunEvent, RunSpec, TestInfo, TestOutcome, TestResult, code};
use runtap_testkit::{RealRuntime, Skip, expected_outcomes, test_application};

use crate::{APPLICATIONS, events, failures, found, or_skip, orchard, results, spec};

/// A line of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Row {
    uid: String,
    name: String,
    outcome: String,
    namespace: String,
    type_name: String,
    method: String,
    parameters: String,
    traits: String,
    /// Empty where the application does not know it.
    file: String,
    line: String,
}

fn rows(folder: &str, table: &str) -> Result<Vec<Row>, Skip> {
    let lines = expected_outcomes(folder, table)?;
    let (heading, lines) = lines.split_first().unwrap();
    let column = |name: &str| heading.iter().position(|one| one == name);
    let row = |line: &Vec<String>| {
        let of = |name| column(name).and_then(|at| line.get(at)).map_or(String::new(), |text| unescape(text));
        Row {
            uid: of("uid"),
            name: of("display_name"),
            outcome: of("outcome"),
            namespace: of("namespace"),
            type_name: of("type"),
            method: of("method"),
            parameters: of("parameters"),
            traits: of("traits"),
            file: of("file"),
            line: of("line"),
        }
    };
    Ok(lines.iter().map(row).collect())
}

/// A column of a table: `\\`, `\t`, `\n`, `\r`, `\uXXXX`; a lone surrogate is U+FFFD on the wire.
fn unescape(text: &str) -> String {
    let mut units = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            units.extend(c.encode_utf16(&mut [0; 2]).iter());
            continue;
        }
        units.push(match chars.next().unwrap() {
            't' => 9,
            'n' => 10,
            'r' => 13,
            'u' => u16::from_str_radix(&chars.by_ref().take(4).collect::<String>(), 16).unwrap(),
            other => u16::try_from(u32::from(other)).unwrap(),
        });
    }
    String::from_utf16_lossy(&units)
}

/// An id that can be compared: xunit's depend on the path of the file.
fn id(uid: &str, folder: &str) -> String {
    if folder == "library-xunit" { String::new() } else { uid.to_owned() }
}

/// Id, name and outcome of each row that has a result, sorted. Those that never end begin, and that is all.
pub(crate) fn expected(folder: &str, table: &str) -> Result<Vec<[String; 3]>, Skip> {
    let ending = rows(folder, table)?.into_iter().filter(|row| row.outcome != "noend");
    let mut all: Vec<_> = ending.map(|row| [id(&row.uid, folder), row.name, row.outcome]).collect();
    all.sort();
    Ok(all)
}

/// Returns id, name and outcome of each received result.
pub(crate) fn outcomes(events: &[RunEvent], folder: &str) -> Vec<[String; 3]> {
    let results = results(events).into_iter();
    let of = |result: &TestResult| {
        [id(&result.uid, folder), result.name.clone(), result.execution.state.name().to_owned()]
    };
    // xunit cleans up after a time-out, sometimes.
    let mut all: Vec<_> =
        results.map(of).filter(|[_, name, _]| !name.starts_with("[Test Cleanup Failure")).collect();
    all.sort();
    all
}

/// What a list tells of a test, in the words of the tables.
fn described(test: &TestInfo, folder: &str) -> Row {
    let traits: Vec<_> = test.traits.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Row {
        uid: id(&test.uid, folder),
        name: test.name.clone(),
        outcome: String::new(),
        namespace: text(&test.namespace),
        type_name: text(&test.type_name),
        method: text(&test.method),
        parameters: test.parameter_types.join(","),
        traits: traits.join(";"),
        file: text(&test.file).rsplit('/').next().unwrap().to_owned(),
        line: test.line.map(|line| line.to_string()).unwrap_or_default(),
    }
}

fn runtimes() -> Result<[RealRuntime; 2], Skip> {
    Ok([RealRuntime::available(8)?, RealRuntime::available(10)?])
}

#[test]
fn every_application_has_the_outcomes_of_its_table() {
    or_skip(|| {
        for runtime in runtimes()? {
            for (application, file, folder, table) in APPLICATIONS {
                let (outcome, events) = events(&spec(&runtime, application, file, &[])?);
                let at = format!("{application} on .NET {}", runtime.major());
                assert_eq!(outcomes(&events, folder), expected(folder, table)?, "{at}");
                assert_eq!(outcome.exit_code, code::TESTS_FAILED, "{at}");
                assert_eq!(failures(&events), failures_of(application), "{at}");
            }
        }
        Ok(())
    });
}

/// A case of the orchard's begins and does not end. The oldest does not say what begins.
pub(crate) fn failures_of(application: &str) -> Vec<ModuleFailure> {
    let endless = "1 started test has no result: NeverEnds";
    let is_told = application.starts_with("orchard") && application != "orchard-1.8.4";
    is_told.then(|| ModuleFailure::NotRun(endless.to_owned())).into_iter().collect()
}

#[test]
fn every_suite_has_the_outcomes_of_its_table() {
    or_skip(|| {
        for suite in ["odd", "attempts", "artifacts", "dups", "flaky:1"] {
            let table = format!("expected-{}.tsv", suite.split(':').next().unwrap());
            let (outcome, events) = events(&orchard(suite)?);
            assert_eq!(outcomes(&events, "orchard"), expected("orchard", &table)?, "{suite}");
            assert_eq!(outcome.exit_code, code::TESTS_FAILED, "{suite}");
        }
        Ok(())
    });
}

#[test]
fn every_application_lists_the_tests_of_its_table() {
    or_skip(|| {
        for runtime in runtimes()? {
            for (application, file, folder, table) in APPLICATIONS {
                let mut spec = spec(&runtime, application, file, &[])?;
                spec.mode = Mode::Discover;
                let (outcome, events) = events(&spec);
                let mut seen: Vec<_> = found(&events).iter().map(|test| described(test, folder)).collect();
                let mut expected = rows(folder, table)?;
                // Before 1.9, the platform tells ids and names. Where sources are is in a list where symbols are.
                let is_old = application == "orchard-1.8.4";
                for row in &mut expected {
                    row.uid = id(&row.uid, folder);
                    row.outcome.clear();
                    // Where a method is is told with it, or not at all.
                    if row.method.is_empty() {
                        row.namespace.clear();
                        row.type_name.clear();
                    }
                }
                for row in seen.iter_mut().chain(&mut expected) {
                    row.file.clear();
                    row.line.clear();
                    // In which order, the framework decides.
                    let mut traits: Vec<_> = row.traits.split(';').collect();
                    traits.sort_unstable();
                    row.traits = traits.join(";");
                    if is_old {
                        let [uid, name] = [&row.uid, &row.name].map(String::clone);
                        *row = Row { uid, name, ..Row::default() };
                    }
                }
                let key = |row: &Row| (row.uid.clone(), row.name.clone());
                seen.sort_by_key(key);
                expected.sort_by_key(key);
                let at = format!("{application} on .NET {}", runtime.major());
                for (seen, expected) in seen.iter().zip(&expected) {
                    assert_eq!(seen, expected, "{at}");
                }
                assert_eq!(seen.len(), expected.len(), "{at}");
                assert_eq!((outcome.exit_code, failures(&events)), (0, vec![]), "{at}");
            }
        }
        Ok(())
    });
}

fn option(event: &RunEvent) -> Option<&str> {
    if let RunEvent::Option { option, .. } = event { Some(&option.name) } else { None }
}

#[test]
fn every_application_tells_its_options() {
    or_skip(|| {
        for runtime in runtimes()? {
            for (application, file, ..) in APPLICATIONS {
                let mut spec = spec(&runtime, application, file, &[])?;
                spec.mode = Mode::Help;
                let (outcome, events) = events(&spec);
                let options: Vec<_> = events.iter().filter_map(option).collect();
                let at = format!("{application} on .NET {}", runtime.major());
                assert!(options.len() > 15, "{at}: {options:?}");
                for known in ["list-tests", "timeout", "results-directory"] {
                    assert!(options.contains(&known), "{at}: {options:?}");
                }
                // The application's own.
                assert_eq!(options.contains(&"suite"), application.starts_with("orchard"), "{at}");
                assert_eq!(outcome.exit_code, 0, "{at}");
            }
        }
        Ok(())
    });
}

#[test]
fn a_program_with_a_host_of_its_own_is_run_as_it_is() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        let program = test_application("orchard-2.5.2")?.join("orchard");
        let mut spec = RunSpec::new(vec![Module::new(program)]);
        spec.application.environment.push(("DOTNET_ROOT".into(), runtime.root().into()));
        let (outcome, events) = events(&spec);
        assert_eq!(outcomes(&events, "orchard"), expected("orchard", "expected-core.tsv")?);
        assert_eq!(outcome.exit_code, code::TESTS_FAILED);
        Ok(())
    });
}

#[test]
fn a_test_that_hangs_is_told_by_the_controller_that_ends_its_host() {
    or_skip(|| {
        let runtime = RealRuntime::available(10)?;
        let arguments = ["--suite", "fast:2+hang", "--watch", "--watch-limit", "10000"];
        let (outcome, events) = events(&spec(&runtime, "orchard-2.5.2", "orchard.dll", &arguments)?);
        let passed = results(&events).iter().filter(|one| one.execution.state == TestOutcome::Passed).count();
        let errors: Vec<_> =
            results(&events).into_iter().filter(|one| one.execution.state == TestOutcome::Error).collect();
        assert_eq!((passed, errors.len()), (2, 1), "{events:?}");
        assert_eq!(outcome.totals.error, 1);
        assert_eq!(outcome.exit_code, code::TESTS_FAILED, "{:?}", failures(&events));
        Ok(())
    });
}
