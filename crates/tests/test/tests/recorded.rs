//! Output of real commands: cargo 1.95, nextest 0.9, go 1.19, node 20, pytest 9.2 on small suites of known outcomes.

mod told;

use runtap_test::TestOutcome;
use runtap_test::formats::{Case, Event, Format, MAX_NAME_BYTES, MAX_SUITE_BYTES, Parser};

use told::{cases, problems, read, told};

#[track_caller]
fn case<'a>(events: &'a [Event], uid: &str) -> &'a Case {
    cases(events).into_iter().find(|case| case.uid == uid).unwrap_or_else(|| panic!("{uid}: {events:#?}"))
}

use TestOutcome::{Error, Failed, Passed, Skipped};

#[test]
fn cargo_test() {
    let events = read(Format::Libtest, include_bytes!("fixtures/libtest.txt"));
    let expected = [
        ("shop::tests::doubles", Passed),
        ("shop::tests::slow", Skipped),
        ("shop::tests::panics", Passed),
        ("shop::tests::fails_by_result", Failed),
        ("shop::tests::overflows", Failed),
        ("whole::doubles", Passed),
        ("shop (doc)::src/lib.rs - (line 3)", Passed),
    ];
    assert_eq!(told(&events), expected);
    assert_eq!(problems(&events), [""; 0]);
    assert_eq!(case(&events, "shop::tests::slow").reason, "takes a minute");
    let failed = case(&events, "shop::tests::overflows");
    assert_eq!(failed.place, Some(("src/lib.rs".into(), 24)));
    let detail = failed.detail.as_ref().unwrap();
    assert_eq!(detail.message, "assertion `left == right` failed: it wraps\n  left: 144\n right: 255");
    assert_eq!(detail.kind, "panic");
    assert!(failed.stdout.starts_with("before the check\n"));
    assert_eq!(
        case(&events, "shop::tests::fails_by_result").detail.as_ref().unwrap().message,
        "\"an error\""
    );
}

#[test]
fn cargo_test_that_lists() {
    let events = read(Format::Libtest, include_bytes!("fixtures/libtest-list.txt"));
    let listed: Vec<_> = events
        .iter()
        .map(|event| match event {
            Event::Listed(case) => case.uid.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(listed.len(), 7);
    assert_eq!((listed[0], listed[5]), ("shop::tests::doubles", "whole::doubles"));
    assert_eq!(listed[6], "shop (doc)::src/lib.rs - (line 3)");
}

#[test]
fn libtest_json() {
    let events = read(Format::LibtestJson, include_bytes!("fixtures/libtest.json"));
    let expected = [
        ("tests::doubles", Passed),
        ("tests::fails_by_result", Failed),
        ("tests::panics", Passed),
        ("tests::overflows", Failed),
        ("tests::slow", Skipped),
    ];
    assert_eq!(told(&events), expected);
    assert_eq!(problems(&events), [""; 0]);
    assert_eq!(case(&events, "tests::slow").reason, "takes a minute");
    let failed = case(&events, "tests::overflows");
    assert_eq!(
        (failed.place.clone(), failed.duration.unwrap().as_nanos()),
        (Some(("src/lib.rs".into(), 24)), 59_622)
    );
    assert!(matches!(&events[0], Event::Started { uid, .. } if uid == "tests::doubles"));
}

#[test]
fn nextest() {
    let events = read(Format::Nextest, include_bytes!("fixtures/nextest.json"));
    let mut all = told(&events);
    all.sort_by_key(|(uid, _)| *uid);
    let expected = [
        ("shop::shop$tests::doubles", Passed),
        ("shop::shop$tests::fails_by_result", Failed),
        ("shop::shop$tests::overflows", Failed),
        ("shop::shop$tests::panics", Passed),
        ("shop::shop$tests::slow", Skipped),
        ("shop::whole$doubles", Passed),
    ];
    assert_eq!(all, expected);
    assert_eq!(problems(&events), [""; 0]);
    let failed = case(&events, "shop::shop$tests::overflows");
    assert_eq!((failed.name.as_str(), &*failed.suite), ("tests::overflows", "shop::shop"));
}

#[test]
fn go_test() {
    let events = read(Format::GoJson, include_bytes!("fixtures/go.json"));
    let expected = [
        ("example.org/shop.TestAdds", Passed),
        ("example.org/shop.TestOverflows", Failed),
        ("example.org/shop.TestSkipped", Skipped),
        ("example.org/shop.TestTable/one", Passed),
        ("example.org/shop.TestTable/two_words", Failed),
        ("example.org/shop.TestTable", Failed),
        ("example.org/shop.TestPanics", Failed),
    ];
    let mut all = told(&events);
    let mut sorted = expected;
    all.sort_by_key(|(uid, _)| *uid);
    sorted.sort_by_key(|(uid, _)| *uid);
    assert_eq!(all, sorted);
    // The panic of the last one has ended the package.
    assert_eq!(
        problems(&events),
        ["the package example.org/shop ended without a verdict about its tests: some may not have run"]
    );
    let failed = case(&events, "example.org/shop.TestOverflows");
    assert_eq!(failed.place, Some(("shop_test.go".into(), 4)));
    assert_eq!(failed.detail.as_ref().unwrap().message, "got 44,\nwant 255");
    assert_eq!(failed.stdout, "some output\n    shop_test.go:4: got 44,\n        want 255\n");
    assert_eq!(case(&events, "example.org/shop.TestSkipped").reason, "no tape drive");
    let panicked = case(&events, "example.org/shop.TestPanics").detail.as_ref().unwrap();
    assert!(panicked.message.starts_with("runtime error: invalid memory address"), "{panicked:?}");
    assert!(panicked.stack.starts_with("goroutine "), "{panicked:?}");
}

#[test]
fn go_test_that_does_not_compile() {
    let old = "FAIL\texample.org/shop [build failed]\n";
    let new = concat!(
        r#"{"ImportPath":"example.org/shop [t]","Action":"build-output","Output":"./shop_test.go:3:31: undefined: x\n"}"#,
        "\n",
        r#"{"ImportPath":"example.org/shop [t]","Action":"build-fail"}"#,
        "\n",
        r#"{"Action":"start","Package":"example.org/other"}"#,
        "\n",
        r#"{"Action":"output","Package":"example.org/other","Output":"exit status 3\n"}"#,
        "\n",
        r#"{"Action":"fail","Package":"example.org/other","Elapsed":0.1}"#,
        "\n",
    );
    assert_eq!(told(&read(Format::GoJson, old.as_bytes())), [("example.org/shop", Error)]);
    let events = read(Format::GoJson, new.as_bytes());
    assert_eq!(told(&events), [("example.org/other", Error), ("example.org/shop [t]", Error)]);
    let message = &case(&events, "example.org/shop [t]").detail.as_ref().unwrap().message;
    assert_eq!(message, "build failed\n./shop_test.go:3:31: undefined: x");
    assert_eq!(problems(&events), [""; 0]);
    // The packages that need the build name it: one failed package is one error.
    let of_package = |name: &str| {
        [
            format!(r#"{{"Action":"start","Package":"{name}"}}"#),
            format!(r#"{{"Action":"output","Package":"{name}","Output":"FAIL\t{name} [build failed]\n"}}"#),
            format!(
                r#"{{"Action":"fail","Package":"{name}","Elapsed":0,"FailedBuild":"example.org/shop [t]"}}"#
            ),
            String::new(),
        ]
        .join("\n")
    };
    let [shop, user] = ["example.org/shop", "example.org/user"];
    let events = read(Format::GoJson, (new.to_owned() + &of_package(shop) + &of_package(user)).as_bytes());
    assert_eq!(told(&events), [("example.org/other", Error), (shop, Error), (user, Error)]);
    let message = |name: &str| case(&events, name).detail.as_ref().unwrap().message.clone();
    assert_eq!(message(shop), "build failed\n./shop_test.go:3:31: undefined: x");
    assert_eq!(message(user), "build failed\nexample.org/shop needs it too and has its output");
    assert_eq!(problems(&events), [""; 0]);
}

#[test]
fn node_test() {
    let events = read(Format::Tap, include_bytes!("fixtures/node.tap"));
    let expected = [
        ("cart > adds", Passed),
        ("cart > overflows # odd", Failed),
        ("cart > is skipped", Skipped),
        ("cart > is planned", Skipped),
        ("outer > inner", Passed),
        ("outer", Passed),
        ("throws", Failed),
    ];
    assert_eq!(told(&events), expected);
    assert_eq!(problems(&events), [""; 0]);
    assert_eq!(case(&events, "cart > is skipped").reason, "no tape drive");
    assert_eq!(case(&events, "cart > is planned").reason, "todo");
    let failed = case(&events, "cart > overflows # odd");
    assert_eq!(failed.place, Some(("/src/a.test.js".into(), 5)));
    assert_eq!(failed.duration.unwrap().as_nanos(), 1_445_359);
    let detail = failed.detail.as_ref().unwrap();
    assert_eq!(detail.message, "Expected values to be strictly equal:\n\n1 !== 2");
    assert_eq!(detail.kind, "AssertionError");
    assert!(detail.stack.starts_with("TestContext.<anonymous> (/src/a.test.js:5:40)\n"), "{detail:?}");
    assert_eq!(case(&events, "throws").detail.as_ref().unwrap().message, "two\nlines");
}

#[test]
fn plain_tap() {
    let text = "TAP version 14\n1..4\nok 1 - a\nnot ok\nok 3 c # skip no disk\n# text\nok 4 - a\n";
    let events = read(Format::Tap, text.as_bytes());
    assert_eq!(told(&events), [("a", Passed), ("test 2", Failed), ("c", Skipped), ("a#2", Passed)]);
    assert_eq!(problems(&events), [""; 0]);
    let cut = read(Format::Tap, b"1..3\nok 1 - a\n");
    assert_eq!(problems(&cut), ["the command ended after 1 of 3 tests"]);
    let cut = read(Format::Tap, b"ok 1 - a\nBail out! no disk\n");
    assert_eq!(problems(&cut), ["the tests were aborted: no disk"]);
    let cut = read(Format::Tap, b"ok 1 - a\n");
    assert_eq!(problems(&cut), ["the plan is missing: the output may be truncated"]);
}

#[test]
fn pytest() {
    let events = read(Format::Junit, include_bytes!("fixtures/pytest.xml"));
    let expected = [
        ("test_shop.TestCart.test_adds", Passed),
        ("test_shop.test_overflows", Failed),
        ("test_shop.test_skipped", Skipped),
        ("test_shop.test_fixture", Error),
        ("test_shop.test_doubles[1]", Passed),
        ("test_shop.test_doubles[2]", Failed),
    ];
    assert_eq!(told(&events), expected);
    assert_eq!(problems(&events), [""; 0]);
    let failed = case(&events, "test_shop.test_overflows");
    assert_eq!(failed.place, Some(("test_shop.py".into(), 11)));
    let detail = failed.detail.as_ref().unwrap();
    assert_eq!(detail.message, "AssertionError: <it wraps>\nassert (300 % 256) == 255");
    assert_eq!(detail.kind, "AssertionError");
    assert!(detail.stack.ends_with("test_shop.py:11: AssertionError"));
    assert!(failed.stdout.contains("before & after\n") && failed.stderr.contains("oops\n"), "{failed:?}");
    assert_eq!(case(&events, "test_shop.test_skipped").reason, "no tape drive");
    let broken = case(&events, "test_shop.test_fixture").detail.as_ref().unwrap();
    assert_eq!(broken.message, "failed on setup with \"OSError: no disk\"");
}

#[test]
fn junit_of_others() {
    let text = "<testsuite name='a.b'><properties/><testcase name='same' time='1,234.5' file='x.js' line='7'/>\
                <testcase name='same'><skipped><![CDATA[ later ]]></skipped></testcase>\
                <testcase classname='C' name='m'><error type='E'>first line\nsecond</error></testcase></testsuite>";
    let events = read(Format::Junit, text.as_bytes());
    assert_eq!(told(&events), [("a.b.same", Passed), ("a.b.same#2", Skipped), ("C.m", Error)]);
    let first = case(&events, "a.b.same");
    assert_eq!(
        (first.place.clone(), first.duration.unwrap().as_millis()),
        (Some(("x.js".into(), 7)), 1_234_500)
    );
    assert_eq!(case(&events, "a.b.same#2").reason, "later");
    let detail = case(&events, "C.m").detail.as_ref().unwrap();
    assert_eq!((detail.message.as_str(), detail.kind.as_str()), ("first line", "E"));
    assert_eq!(detail.stack, "first line\nsecond");
}

/// pytest writes both of a test that fails and whose clean-up is skipped.
#[test]
fn a_junit_test_that_has_failed_is_not_skipped() {
    let (failure, skipped) = ("<failure message='no'/>", "<skipped message='later'/>");
    for both in [[failure, skipped], [skipped, failure]] {
        let text = format!("<testsuite><testcase name='a'>{}</testcase></testsuite>", both.concat());
        let events = read(Format::Junit, text.as_bytes());
        assert_eq!(told(&events), [("a", Failed)], "{text}");
        assert_eq!(case(&events, "a").detail.as_ref().unwrap().message, "no");
    }
}

#[test]
fn attributes_and_documents_of_junit_are_bounded() {
    let long = "x".repeat(3 << 20);
    let document = format!(
        "<testsuite name=\"s\"><testcase name=\"a\" classname=\"{long}\"/><testcase name=\"{long}\" classname=\"c\"/><testcase \
         name=\"b\"><failure message=\"{long}\">text</failure></testcase></testsuite>"
    );
    let events = read(Format::Junit, document.as_bytes());
    let cases = cases(&events);
    assert_eq!(cases.len(), 3);
    let longest = |of: fn(&Case) -> usize| cases.iter().map(|&case| of(case)).max();
    assert_eq!(longest(|case| case.name.len()), Some(MAX_NAME_BYTES));
    assert_eq!(longest(|case| case.suite.len()), Some(MAX_SUITE_BYTES));
    assert_eq!(cases[2].detail.as_ref().unwrap().message.len(), 1 << 20);
    assert_eq!(
        problems(&events),
        ["3 attributes of the JUnit document exceeded 1048576 bytes, and were truncated"]
    );

    let mut parser = Parser::new(Format::Junit);
    let piece = vec![b' '; 16 << 20];
    for _ in 0..17 {
        assert!(parser.feed(&piece).is_empty());
    }
    let events: Vec<_> = parser.finish().collect();
    assert_eq!(problems(&events), ["the JUnit document exceeds the maximum of 256 MiB, and was not read"]);
    assert_eq!(events.len(), 1);
}

#[test]
fn files_that_a_junit_document_names() {
    let text = "<testsuite name='s'><testcase name='draws'><system-out>drawn\n[[ATTACHMENT|/out/a&amp;b.png]]\n\
                [[ATTACHMENT|log.txt]]\nthe end [[ATTACHMENT|no.txt]]\n</system-out><system-err>\
                <![CDATA[  [[ATTACHMENT|/out/c.png]]  \n[[ATTACHMENT|log.txt]]\n[[ATTACHMENT|]]]]></system-err></testcase>\
                <testcase name='plain'/></testsuite>";
    let events = read(Format::Junit, text.as_bytes());
    let drawn = case(&events, "s.draws");
    assert_eq!(drawn.artifacts, ["/out/a&b.png", "log.txt", "/out/c.png"]);
    assert_eq!(drawn.stdout, "drawn\nthe end [[ATTACHMENT|no.txt]]\n");
    assert_eq!(drawn.stderr, "[[ATTACHMENT|]]", "it names no file");
    assert_eq!(case(&events, "s.plain").artifacts, [""; 0]);
}

#[test]
fn what_quiet_libtest_leaves_out_is_said() {
    let text = "     Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)\n\nrunning 3 tests\n.iF\nfailures:\n\n\
                ---- tests::b stdout ----\nno\n\n\nfailures:\n    tests::b\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored; 0 \
                measured; 0 filtered out; finished in 0.00s\n";
    let expected = ["shop prints results without names; do not use -q, --quiet or --format terse"];
    let events = read(Format::Libtest, text.as_bytes());
    assert_eq!(problems(&events), expected, "{events:#?}");
    assert!(matches!(events.last(), Some(Event::Unreadable(_))), "it has not died: {events:#?}");
    // With more tests than a line has, a line ends in how many there were.
    let many = format!(
        "running 101 tests\n{}  88/101\n.............\ntest result: ok. 101 passed; 0 failed; 0 ignored\n",
        ".".repeat(88)
    );
    let events = read(Format::Libtest, many.as_bytes());
    let [problem] = problems(&events)[..] else { panic!("{events:#?}") };
    assert!(problem.starts_with("the binary prints results without names"), "{problem}");
    // A test that prints dots is another matter.
    let dots = "running 1 test\n...\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";
    assert_eq!(problems(&read(Format::Libtest, dots.as_bytes())), [""; 0]);
}

#[test]
fn what_dies_in_the_middle_has_not_passed() {
    let whole = include_str!("fixtures/libtest.txt");
    let cut = whole.split("test tests::panics").next().unwrap();
    let events = read(Format::Libtest, cut.as_bytes());
    assert_eq!(problems(&events), ["shop ended after 4 of 5 tests"]);
    assert_eq!(cases(&events).len(), 4, "failures are told without their output");
    let whole = include_str!("fixtures/libtest.json");
    let (cut, _) = whole.split_once(r#"{ "type": "test", "name": "tests::slow""#).unwrap();
    assert_eq!(
        problems(&read(Format::LibtestJson, cut.as_bytes())),
        ["the command ended after 4 tests, within a suite"]
    );
    let whole = include_str!("fixtures/go.json");
    let cut: Vec<_> = whole.lines().take(14).collect();
    let events = read(Format::GoJson, cut.join("\n").as_bytes());
    assert_eq!(problems(&events).len(), 1);
    assert!(problems(&events)[0].contains("while TestSkipped ran"), "{events:?}");
    let whole = include_str!("fixtures/pytest.xml");
    let (cut, _) = whole.split_once("</testsuite>").unwrap();
    assert_eq!(problems(&read(Format::Junit, cut.as_bytes())), ["the JUnit document has no end"]);
    assert_eq!(problems(&read(Format::Junit, b"")), ["there is no JUnit document"]);
    assert!(problems(&read(Format::Junit, b"<a></b>"))[0].starts_with("invalid XML at byte"));
}

#[test]
fn output_of_tests_between_the_lines() {
    let text = "running 2 tests\ntest a ... hello\nworld\nok\ntest b ... ok\n\ntest result: ok. 2 passed\n";
    let events = read(Format::Libtest, text.as_bytes());
    assert_eq!(told(&events), [("a", Passed), ("b", Passed)]);
    assert_eq!(problems(&events), [""; 0]);
    let text = "running 1 test\ntest a ... ";
    assert_eq!(
        problems(&read(Format::Libtest, text.as_bytes())),
        ["the binary ended after 0 of 1 tests, while a ran"]
    );
    let report = "running 1 test\ntest a ... ok <0.250s>\n\ntest result: ok. 1 passed\n";
    let events = read(Format::Libtest, report.as_bytes());
    assert_eq!(case(&events, "a").duration.unwrap().as_millis(), 250);
}

#[test]
fn lines_that_output_has_torn() {
    let all: [&[u8]; 2] = [
        include_bytes!("fixtures/libtest-nocapture.txt"),
        include_bytes!("fixtures/libtest-nocapture-serial.txt"),
    ];
    for text in all {
        let events = read(Format::Libtest, text);
        let mut told = told(&events);
        told.sort_by_key(|(uid, _)| *uid);
        let passed = ["a", "b", "d", "f", "g", "h"].map(|name| (name, Passed));
        let mut expected = [&passed[..], &[("c", Failed), ("e", Skipped)]].concat();
        expected.sort_by_key(|(uid, _)| *uid);
        assert_eq!(told, expected);
        assert_eq!(problems(&events), [""; 0]);
        assert_eq!(case(&events, "e").reason, "later");
    }
    let of =
        |lines: &str, end: &str| read(Format::Libtest, format!("running 2 tests\n{lines}\n{end}").as_bytes());
    let end = "\ntest result: ok. 2 passed\n";
    // Behind the result, and both within a line that begins with a result of its own.
    for (lines, b) in [
        ("test a ... okhello\n\ntest b ... ok", Passed),
        ("test a ... ok <0.003s>\nhello\nhello test b ... ok <0.250s>", Passed),
        ("test a ... hellook\ntest b ... FAILED ok then", Failed),
        ("test a ... ok\nhello test b ... ignored", Skipped),
        // The name and the result are in the middle of different lines.
        ("hellotest a ... \nok\nhellotest b ... hello\nokhello", Passed),
        ("test a ... hellook\n\nhellotest b ... hello\nhello\nFAILED", Failed),
    ] {
        let events = of(lines, end);
        assert_eq!(told(&events), [("a", Passed), ("b", b)], "{lines}");
        assert_eq!(problems(&events), [""; 0], "{lines}");
    }
    // A test may print what looks so: no result is missing.
    let events = of("hello test c ... ok\ntest a ... ok\nhello test d ... FAILED\ntest b ... ok", end);
    assert_eq!(told(&events), [("a", Passed), ("b", Passed)]);
    // The binary ends in the middle of a test that has printed such a word: it has not passed.
    for lines in ["test a ... ok\ntest b ... looks ok", "test a ... ok\ntest b ... hello\nall ok"] {
        let events = of(lines, "");
        assert_eq!(told(&events), [("a", Passed)], "{lines}");
        assert_eq!(problems(&events), ["the binary ended after 1 of 2 tests, while b ran"], "{lines}");
    }
}

/// What cargo prints with `CARGO_TERM_COLOR=always`, and a binary with `--color always`.
#[test]
fn colours_change_nothing() {
    let plain = "     Running unittests src/lib.rs (target/debug/deps/shop-507999230d6984fa)\n\nrunning 1 test\ntest adds ... ok\n\ntest result: ok. 1 passed\n";
    let coloured = plain
        .replace("     Running", "\x1b[1m\x1b[32m     Running\x1b[0m")
        .replace("... ok", "... \x1b[32mok\x1b(B\x1b[m")
        .replace("\x1b(B", "");
    assert_eq!(told(&read(Format::Libtest, coloured.as_bytes())), [("shop::adds", Passed)]);
    assert_eq!(
        read(Format::Libtest, coloured.as_bytes()).len(),
        read(Format::Libtest, plain.as_bytes()).len()
    );
}

/// libtest-mimic pads names and heads the output of failed tests in its own way.
#[test]
fn a_harness_of_libtest_mimic() {
    let text = b"running 3 tests\ntest adds      ... ok\ntest sleeps    ... ignored\ntest overflows ... FAILED\n\nfailures:\n\n---- overflows ----\nit wraps\n\nfailures:\n    overflows\n\ntest result: FAILED. 1 passed\n";
    let events = read(Format::Libtest, text);
    assert_eq!(told(&events), [("adds", Passed), ("sleeps", Skipped), ("overflows", Failed)]);
    assert_eq!(case(&events, "overflows").detail.as_ref().unwrap().message, "it wraps");
    assert_eq!(problems(&events), [""; 0]);
}

#[test]
fn what_a_failed_test_prints_is_its_own() {
    let text = b"running 2 tests\ntest a ... FAILED\ntest b ... FAILED\n\nfailures:\n\n---- a stdout ----\nfailures:\n    nobody\nrunning 7 tests\ntest result: ok. 7 passed\n---- c stdout ----\nthe end of a\n\n---- b stdout ----\nError: of b\n\nfailures:\n    a\n    b\n\ntest result: FAILED. 0 passed; 2 failed\n";
    let events = read(Format::Libtest, text);
    assert_eq!(told(&events), [("a", Failed), ("b", Failed)]);
    assert_eq!(
        case(&events, "a").stdout,
        "failures:\n    nobody\nrunning 7 tests\ntest result: ok. 7 passed\n---- c stdout ----\nthe end of a\n"
    );
    assert_eq!(case(&events, "b").detail.as_ref().unwrap().message, "of b");
    assert_eq!(problems(&events), [""; 0]);
}

#[test]
fn a_list_and_a_run_call_tests_the_same() {
    let run = b"   Doc-tests shop\n\nrunning 2 tests\ntest src/lib.rs - a (line 3) - compile fail ... ok\ntest src/lib.rs - b (line 9) - compile ... ok\n\ntest result: ok. 2 passed\n     Running tests/it.rs (target/debug/deps/it-507999230d6984fa)\n\nrunning 1 test\ntest works ... ok\n\ntest result: ok. 1 passed\n     Running tests/it.rs (target/debug/deps/it-607999230d6984fa)\n\nrunning 1 test\ntest works ... ok\n\ntest result: ok. 1 passed\n";
    let list = b"   Doc-tests shop\nsrc/lib.rs - a (line 3): test\nsrc/lib.rs - b (line 9): test\n     Running tests/it.rs (target/debug/deps/it-507999230d6984fa)\nworks: test\n     Running tests/it.rs (target/debug/deps/it-607999230d6984fa)\nworks: test\n";
    let listed: Vec<_> = read(Format::Libtest, list)
        .into_iter()
        .filter_map(|event| match event {
            Event::Listed(case) => Some(case.uid),
            _ => None,
        })
        .collect();
    let run: Vec<_> = cases(&read(Format::Libtest, run)).into_iter().map(|case| case.uid.clone()).collect();
    assert_eq!(listed, run);
    assert_eq!(run.last().unwrap(), "it::works#2");
}

/// A panic in another goroutine than the test's ends the package, and go names no test; nor does it when the time is over.
#[test]
fn a_go_package_that_dies_names_the_tests_that_ran() {
    let line = |fields: &str| format!("{{\"Package\":\"shop\",{fields}}}\n");
    let begun = line(r#""Action":"run","Test":"TestA""#) + &line(r#""Action":"run","Test":"TestB""#);
    let end = line(r#""Action":"fail","Elapsed":1.0"#);
    let panic = line(r#""Action":"output","Test":"TestB","Output":"panic: boom\n""#)
        + &line(r#""Action":"output","Test":"TestB","Output":"\ngoroutine 7 [running]:\n""#);
    let events = read(Format::GoJson, (begun.clone() + &panic + &end).as_bytes());
    assert_eq!(told(&events), [("shop.TestA", Error), ("shop.TestB", Failed)]);
    let detail = case(&events, "shop.TestB").detail.as_ref().unwrap();
    assert_eq!((detail.message.as_str(), detail.kind.as_str()), ("boom", "panic"));
    let late = line(r#""Action":"output","Output":"panic: test timed out after 1s\n""#);
    let events = read(Format::GoJson, (begun + &late + &end).as_bytes());
    assert_eq!(told(&events), [("shop.TestA", TestOutcome::Timeout), ("shop.TestB", TestOutcome::Timeout)]);
    assert_eq!(case(&events, "shop.TestA").detail.as_ref().unwrap().message, "test timed out after 1s");
}

fn recognizes_nothing(format: Format, text: &[u8]) -> bool {
    let mut parser = Parser::new(format);
    parser.feed(text);
    parser.recognizes_nothing()
}

#[test]
fn output_of_another_format_is_no_run_without_tests() {
    let text = b"hello\nTest Suites: 1 passed\n";
    for format in Format::ALL.into_iter().filter(|format| *format != Format::Junit) {
        assert!(recognizes_nothing(format, text), "{format}");
        assert!(!recognizes_nothing(format, b"\n"), "{format}: it has printed nothing");
    }
    assert!(!recognizes_nothing(
        Format::Libtest,
        b"Compiling\nrunning 0 tests\n\ntest result: ok. 0 passed\n"
    ));
    assert!(!recognizes_nothing(Format::Tap, b"# no tests\n1..0\n"));
}

#[test]
fn tap_beyond_its_plan_and_without_names() {
    let events = read(Format::Tap, b"1..1\nok\nok\n");
    assert_eq!(told(&events), [("test 1", Passed), ("test 2", Passed)]);
    assert_eq!(problems(&events), ["there were 2 tests, but the plan is 1"]);
}
