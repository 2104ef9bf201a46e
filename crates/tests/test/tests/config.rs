//! `runtap.toml`: every key, what takes precedence, and what is wrong where.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use proptest::prelude::*;
use runtap_test::plan::{Config, Flaky, Limit, Options, Override, PerTest, Report, Test};

const ALL: &str = r#"
[test]
parallel = 4
retries = 1
max-fail = 10
slow = "30s"
split = true
timeout-per-test = "5m"
minimum-expected-tests = 0x10
filter = "not category = Manual"
quarantine = ["class = FlakyTests", 'name ~ "^Sometimes"']
flaky = "pass"
reports = [{ format = "junit", path = "out/junit.xml" }]

[[test.overrides]]
filter = "namespace = Shop.Slow"
timeout-per-test = "none"
slow = "2m"

[test.profile.ci]
retries = 3
max-fail = "none"
flaky = "fail"
quarantine = []

[[test.profile.ci.reports]]
format = "trx"
path = "a b.trx"

[[test.profile.ci.reports]]
format = "github"

[[test.profile.ci.overrides]]
filter = "class = Big"
retries = 0
timeout-per-test = "1h"

[test.profile."two words"]
"#;

fn filter(text: &str) -> runtap_test::plan::Filter {
    text.parse().unwrap()
}

fn expected() -> Options {
    Options {
        parallel: NonZeroUsize::new(4),
        retries: Some(1),
        max_fail: Some(Limit::At(NonZeroU32::new(10).unwrap())),
        slow: Some(Limit::At(Duration::from_secs(30))),
        timeout_per_test: Some(Limit::At(Duration::from_mins(5))),
        split: Some(true),
        minimum_expected_tests: Some(16),
        filter: Some(filter("not category = Manual")),
        quarantine: Some(vec![filter("class = FlakyTests"), filter("name ~ ^Sometimes")]),
        reports: Some(vec![Report { format: "junit".to_owned(), path: Some("out/junit.xml".to_owned()) }]),
        flaky: Some(Flaky::Pass),
        overrides: vec![Override {
            filter: filter("namespace = Shop.Slow"),
            retries: None,
            timeout_per_test: Some(Limit::None),
            slow: Some(Limit::At(Duration::from_mins(2))),
        }],
    }
}

#[test]
fn every_key() {
    let config: Config = ALL.parse().unwrap();
    assert_eq!(config.profiles().collect::<Vec<_>>(), ["ci", "two words"]);
    assert_eq!(config.options(None).unwrap(), expected());
    assert_eq!(config.options(Some("default")).unwrap(), expected());
    assert_eq!(config.options(Some("two words")).unwrap(), expected());
    let ci = config.options(Some("ci")).unwrap();
    assert_eq!((ci.retries, ci.max_fail, ci.flaky), (Some(3), Some(Limit::None), Some(Flaky::Fail)));
    assert_eq!((ci.parallel, ci.timeout_per_test), (expected().parallel, expected().timeout_per_test));
    assert_eq!(ci.quarantine, Some(Vec::new()), "an empty list replaces too");
    let reports = ci.reports.unwrap();
    let paths: Vec<_> = reports.iter().map(|it| (it.format.as_str(), it.path.as_deref())).collect();
    assert_eq!(paths, [("trx", Some("a b.trx")), ("github", None)]);
    assert_eq!(ci.overrides.len(), 2, "those of the profile first");
    assert_eq!(ci.overrides[0].filter, filter("class = Big"));

    let line = Options { retries: Some(9), filter: Some(filter("uid = 1")), ..Options::default() };
    let run = line.over(config.options(Some("ci")).unwrap());
    assert_eq!(
        (run.retries, run.filter, run.parallel),
        (Some(9), Some(filter("uid = 1")), NonZeroUsize::new(4))
    );
    assert_eq!("".parse::<Config>().unwrap(), Config::default());
    assert_eq!("[test]".parse::<Config>().unwrap().options(None).unwrap(), Options::default());
}

#[test]
fn the_first_override_that_says_something_counts() {
    let ci = ALL.parse::<Config>().unwrap().options(Some("ci")).unwrap();
    let mut test = Test::new("1", "t");
    let base = PerTest {
        retries: Some(3),
        timeout_per_test: Some(Limit::At(Duration::from_mins(5))),
        slow: Some(Limit::At(Duration::from_secs(30))),
    };
    assert_eq!(ci.for_test(&test), base);
    test.namespace = Some("Shop.Slow".into());
    let slow = PerTest {
        timeout_per_test: Some(Limit::None),
        slow: Some(Limit::At(Duration::from_mins(2))),
        ..base
    };
    assert_eq!(ci.for_test(&test), slow);
    test.class = Some("Big".into());
    let both =
        PerTest { retries: Some(0), timeout_per_test: Some(Limit::At(Duration::from_hours(1))), ..slow };
    assert_eq!(ci.for_test(&test), both);

    test.class = Some("FlakyTests".into());
    assert!(expected().is_quarantined(&test) && !ci.is_quarantined(&test));
}

#[test]
fn mistakes_have_a_place() {
    for (text, message) in [
        ("[tests]", "line 1, column 2: unknown key 'tests' in the file; did you mean 'test'?"),
        ("x = 1", "line 1, column 1: unknown key 'x' in the file; valid key: test"),
        (
            "[test]\nmax_fail = 1",
            "line 2, column 1: unknown key 'max_fail' in [test]; did you mean 'max-fail'?",
        ),
        (
            "[test.profile.ci]\n  timeout-per-tst = '1s'", // typos: on purpose
            "line 2, column 3: unknown key 'timeout-per-tst' in [test.profile.ci]; did you mean 'timeout-per-test'?", // typos: on purpose
        ),
        (
            "[test.profile.ci.profile.x]",
            "line 1, column 18: unknown key 'profile' in [test.profile.ci]; valid keys: ",
        ),
        (
            "[test.profile.default]",
            "line 1, column 15: the options of the profile 'default' are those of [test]",
        ),
        ("test = 1", "line 1, column 8: 'test' must be a table, but has the type integer"),
        ("[test]\nretries = -1", "line 2, column 11: 'retries' must be a whole number from 0 to 4294967295"),
        (
            "[test]\nretries = 4294967296",
            "line 2, column 11: 'retries' must be a whole number from 0 to 4294967295",
        ),
        (
            "[test]\nretries = '1'",
            "line 2, column 11: 'retries' must be a whole number, but has the type string",
        ),
        ("[test]\nparallel = 0", "line 2, column 12: 'parallel' must be a whole number from 1 to 4294967295"),
        ("[test]\nmax-fail = 0", "line 2, column 12: 'max-fail' must be a whole number from 1 to 4294967295"),
        (
            "[test]\nmax-fail = 'never'",
            "line 2, column 12: 'max-fail' must be a whole number, but has the type string",
        ),
        (
            "[test]\ntimeout-per-test = 5",
            "line 2, column 20: 'timeout-per-test' must be a text in quotes, but has the type integer",
        ),
        (
            "[test]\ntimeout-per-test = '5'",
            "line 2, column 20: '5' is not a duration; write 500ms, 30s or 1m30s",
        ),
        (
            "[test]\ntimeout-per-test = '0s'",
            "line 2, column 20: a duration of 0 is too short; write \"none\" for no limit",
        ),
        ("[test]\nsplit = 'yes'", "line 2, column 9: 'split' must be true or false, but has the type string"),
        ("[test]\nflaky = 'skip'", "line 2, column 9: 'flaky' must be \"pass\" or \"fail\", not \"skip\""),
        (
            "[test]\nfilter = 'ü and clas = x'",
            "line 2, column 10: in the filter 'ü and clas = x': unknown field 'clas'; did you mean \
             'class'? (column 7)",
        ),
        (
            "[test]\nquarantine = 'x'",
            "line 2, column 14: 'quarantine' must be a list in [ ], but has the type string",
        ),
        ("[test]\nreports = [{ path = 'x' }]", "line 2, column 12: this report has no 'format'"),
        ("[test]\nreports = [{ format = 'x', path = '' }]", "line 2, column 35: 'path' is empty"),
        (
            "[test]\nreports = [{ fromat = 'x' }]",
            "line 2, column 14: unknown key 'fromat' in a report; did you mean 'format'?",
        ), // typos: on purpose
        ("[test]\noverrides = [{ retries = 1 }]", "line 2, column 14: this override has no 'filter'"),
        (
            "[test]\noverrides = [{ parallel = 1 }]",
            "line 2, column 16: unknown key 'parallel' in an override; valid keys: ",
        ),
        ("[test]\nretries = 1\nretries = 2", "line 3, column 1: duplicate key"),
        // The first mistake of the text is told first.
        ("[test]\nzz = 1\naa = 2", "line 2, column 1: unknown key 'zz' in [test]; valid keys: "),
    ] {
        let error = text.parse::<Config>().unwrap_err();
        assert!(error.to_string().starts_with(message), "{text}\n{error}");
    }
    let error = "[test]\nfilter = 'uid ='".parse::<Config>().unwrap_err();
    assert_eq!(error.filter.unwrap().caret(), "uid =\n     ^");
}

#[test]
fn an_unknown_profile_is_told_with_the_nearest() {
    let config: Config = "[test.profile.nightly]\n[test.profile.ci]".parse().unwrap();
    let error = |name| config.options(Some(name)).unwrap_err().to_string();
    assert_eq!(error("nights"), "there is no profile 'nights' in the configuration; did you mean 'nightly'?");
    assert_eq!(
        error("release"),
        "there is no profile 'release' in the configuration; valid profiles: ci, nightly"
    );
    let none = Config::default().options(Some("ci")).unwrap_err();
    assert_eq!(none.to_string(), "there is no profile 'ci' in the configuration; it has none");
}

/// The keys and values of the page for users are those of the program.
#[test]
fn the_page_for_users_is_right() {
    let page = include_str!("../../../../docs/test-config.md");
    let mut blocks = 0;
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let config: Config = text.parse().unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_ne!(config, Config::default());
        blocks += 1;
    }
    assert!(blocks >= 2, "{blocks}");
    let known = "[test]\nx = 1".parse::<Config>().unwrap_err().message;
    let keys = known.split_once("valid keys: ").unwrap().1;
    for key in keys.split(", ").filter(|key| *key != "profile") {
        assert!(page.contains(&format!("| `{key}` |")), "{key}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_an_error_with_a_place(
        text in prop_oneof![
            ".{0,60}",
            prop::collection::vec(prop::sample::select(ALL.lines().collect::<Vec<_>>()), 0..20).prop_map(|lines| lines.join("\n")),
            any::<prop::sample::Index>().prop_map(|end| ALL.chars().take(end.index(ALL.len())).collect()),
        ]
    ) {
        if let Err(error) = text.parse::<Config>() {
            let line = text.split('\n').nth(error.line - 1);
            prop_assert!(line.is_some_and(|line| error.column <= line.chars().count() + 1), "{:?}", error);
        }
    }
}
