//! Every format reports a run that did not complete successfully, even if no test has failed.

use std::io;

use crate::{run, written};
use runtap_test_report::{Attempt, Format, Memory, Module, Run, Source, TestResult, github, trouble};

fn passed(name: &str) -> TestResult {
    TestResult {
        uid: name.to_owned(),
        name: name.to_owned(),
        last: Attempt::default(),
        ..TestResult::default()
    }
}

/// A test that passed, in a module that ended so, in a run that ended so.
fn ended(exit_code: i32, interrupted: Option<&str>, error: Option<&str>) -> Memory {
    let interrupted = interrupted.map(str::to_owned);
    let run = Run { exit_code, interrupted, ..run::sample().run().clone() };
    let module = Module { error: error.map(str::to_owned), ..Module::new("/bin/shop.dll") };
    Memory::new(run, [(module, vec![passed("One")])])
}

fn github(source: &impl Source) -> [String; 2] {
    let text = |write: &dyn Fn(&mut Vec<u8>) -> io::Result<()>| {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let options = github::Options::new("/src");
    [text(&|w| github::annotations(source, w, &options)), text(&|w| github::summary(source, w))]
}

#[test]
fn a_good_run_has_nothing_of_it() {
    let run = ended(0, None, None);
    assert_eq!(trouble(&run).unwrap(), None);
    assert!(
        written(Format::Junit, &run)
            .contains("<testsuites name=\"runtap\" tests=\"1\" failures=\"0\" errors=\"0\"")
    );
    assert!(written(Format::Trx, &run).contains("<ResultSummary outcome=\"Completed\">"));
    assert!(written(Format::Ctrf, &run).contains("\"tests\":1,\"passed\":1,\"failed\":0"));
    assert!(written(Format::Html, &run).contains("<title>1 test passed · "));
    let [annotations, summary] = github(&run);
    assert_eq!(annotations, "");
    assert!(summary.starts_with("## ✅ 1 test passed"));
}

/// Beside the test that passed, one row that failed: defined, entered and counted once.
fn trx_has_a_failed_row(trx: &str, name: &str, message: &str) {
    let rows: Vec<_> = trx.split("<UnitTestResult ").skip(1).collect();
    let failed: Vec<_> = rows.iter().filter(|row| row.contains(" outcome=\"Failed\" testListId=")).collect();
    assert_eq!((rows.len(), failed.len()), (2, 1), "{trx}");
    assert!(failed[0].contains(&format!(" testName=\"{name}\"")), "{trx}");
    assert!(failed[0].contains(&format!("<Message>{message}</Message>")), "{trx}");
    let id = failed[0].split_once(" testId=\"").unwrap().1.split('"').next().unwrap();
    assert!(trx.contains(&format!("<UnitTest name=\"{name}\" ")), "{trx}");
    assert_eq!(trx.matches(&format!("<TestEntry testId=\"{id}\"")).count(), 1, "{trx}");
    assert!(trx.contains("total=\"2\" executed=\"2\" passed=\"1\" failed=\"1\""), "{trx}");
}

#[test]
fn a_module_that_was_stopped_is_an_error_and_its_run_aborted() {
    let told = "was stopped before it had run all of its tests";
    let run = ended(3, Some("by a signal"), Some(told));
    assert_eq!(trouble(&run).unwrap(), None, "the module tells");
    let junit = written(Format::Junit, &run);
    assert!(junit.contains("tests=\"2\" failures=\"0\" errors=\"1\""), "{junit}");
    assert!(junit.contains(&format!("<error message=\"{told}\" type=\"error\"/>")), "{junit}");
    let trx = written(Format::Trx, &run);
    assert!(trx.contains("<ResultSummary outcome=\"Aborted\">"), "{trx}");
    assert!(trx.contains("<Text>the run was interrupted: by a signal</Text>"), "{trx}");
    assert!(trx.contains(&format!("<Text>shop: {told}</Text>")), "{trx}");
    trx_has_a_failed_row(&trx, "test application shop", told);
    let ctrf = written(Format::Ctrf, &run);
    assert!(ctrf.contains("\"tests\":2,\"passed\":1,\"failed\":1"), "{ctrf}");
    assert!(ctrf.contains("\"name\":\"test application shop\",\"status\":\"failed\""), "{ctrf}");
    let html = written(Format::Html, &run);
    assert!(html.contains("<title>test run was interrupted · ") && html.contains(told), "{html}");
    let [annotations, summary] = github(&run);
    assert_eq!(annotations, format!("::error title=test application shop::{told}\n"));
    assert!(summary.starts_with("## ❌ 1 test application did not complete successfully"), "{summary}");
    assert!(
        summary.contains("**Interrupted:** by a signal")
            && summary.contains("### shop did not complete successfully")
    );
}

#[test]
fn a_run_is_an_error_itself_if_no_module_is() {
    for (run, told) in [
        (ended(3, Some("by a signal"), None), "the run was interrupted: by a signal"),
        (ended(9, None, None), "the run ended with exit code 9: fewer tests than expected"),
        (ended(42, None, None), "the run ended with exit code 42"),
    ] {
        assert_eq!(trouble(&run).unwrap().as_deref(), Some(told));
        let junit = written(Format::Junit, &run);
        assert!(junit.contains("tests=\"2\" failures=\"0\" errors=\"1\""), "{junit}");
        assert!(junit.contains("<testcase name=\"test run\" classname=\"runtap\""), "{junit}");
        assert!(junit.contains(&format!("<error message=\"{told}\"")), "{junit}");
        let trx = written(Format::Trx, &run);
        assert!(trx.contains(&format!("<Text>{told}</Text>")), "{trx}");
        trx_has_a_failed_row(&trx, "test run", told);
        let ctrf = written(Format::Ctrf, &run);
        assert!(ctrf.contains("\"tests\":2,\"passed\":1,\"failed\":1") && ctrf.contains(told), "{ctrf}");
        assert!(written(Format::Html, &run).contains(&format!("\"trouble\":\"{told}\"")));
        let [annotations, summary] = github(&run);
        assert_eq!(annotations, format!("::error title=test run::{told}\n"));
        assert!(summary.starts_with("## ❌ "), "{summary}");
    }
}
