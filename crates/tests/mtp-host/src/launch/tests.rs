//! Parsing of the command lines that servers pass.

use std::fs;

use super::*;

fn parse(line: &str) -> Result<Option<Launch>, LaunchError> {
    let own = [CommandOption::new("suite", "Which suite").values(1, 1)];
    Launch::parse(line.split_whitespace().map(OsString::from), &own)
}

#[track_caller]
fn launch(line: &str) -> Launch {
    parse(line).unwrap().unwrap()
}

const PIPE: &str = "--server dotnettestcli --dotnet-test-pipe /t/p";

#[test]
fn a_command_line_without_a_server_is_ignored() {
    for line in ["", "--list --format terse", "--help", "name --exact --nocapture", "@nowhere", "server"] {
        assert_eq!(parse(line), Ok(None), "{line}");
    }
}

#[test]
fn the_command_line_of_the_real_sdk_is_parsed() {
    let launch = launch(&format!(
        "--list-tests --results-directory /r --config-file c.json --diagnostic-output-directory /d --suite x {PIPE}"
    ));
    assert_eq!(launch.mode, Mode::Discover);
    assert_eq!(launch.server, Server::Pipe("/t/p".into()));
    assert_eq!(launch.results_directory, Some("/r".into()));
    assert_eq!(launch.config_file, Some("c.json".into()));
    assert_eq!(launch.diagnostic_output_directory, Some("/d".into()));
    assert_eq!(launch.values("suite"), Some(&["x".to_owned()][..]));
    assert_eq!(launch.values("other"), None);
    assert_eq!(launch.filter_uids, None);
    assert!(launch.wants("anything"));
}

#[test]
fn info_precedes_help_and_help_precedes_list() {
    let mode = |line: &str| launch(&format!("{line} {PIPE}")).mode;
    assert_eq!(mode(""), Mode::Run);
    assert_eq!(mode("--list-tests --help"), Mode::Help);
    assert_eq!(mode("-?"), Mode::Help);
    assert_eq!(mode("--help --info"), Mode::Info);
}

#[test]
fn diagnostic_options_are_those_of_the_platform() {
    assert_eq!(launch(PIPE).diagnostic, None);
    let of = |line: &str| launch(&format!("{line} {PIPE}")).diagnostic.unwrap();
    let all = Diagnostic { file_prefix: "log".to_owned(), verbosity: Verbosity::Everything };
    assert_eq!(of("--diagnostic"), all);
    assert_eq!(of("--diagnostic --diagnostic-synchronous-write --diagnostic-verbosity Debug"), all);
    let less = of("--diagnostic --diagnostic-file-prefix mine --diagnostic-verbosity error");
    assert_eq!(less, Diagnostic { file_prefix: "mine".to_owned(), verbosity: Verbosity::Problems });
    for line in ["--diagnostic-verbosity loud", "--diagnostic-file-prefix ../x"] {
        assert!(matches!(parse(&format!("{line} {PIPE}")), Err(LaunchError::Value { .. })), "{line}");
    }
}

#[test]
fn values_are_accepted_in_all_forms_of_the_platform() {
    let launch = launch(&format!(
        "--filter-uid a b --filter-uid=-c --timeout:1.5m --ignore-exit-code 8;2 --minimum-expected-tests 3 \
         --maximum-failed-tests 4 --zero-tests-policy strict {PIPE}"
    ));
    assert_eq!(launch.filter_uids.as_deref(), Some(&["a", "b", "-c"].map(str::to_owned)[..]));
    assert!(launch.wants("-c") && !launch.wants("c"));
    assert_eq!(launch.timeout, Some(Duration::from_secs(90)));
    let policy =
        Policy { minimum_expected: Some(3), maximum_failed: Some(4), strict_zero: true, ignored: vec![8, 2] };
    assert_eq!(launch.policy, policy);
}

#[test]
fn response_files_are_read_as_the_platform_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("args.rsp");
    fs::write(&file, "# all of them\n--filter-uid\n\"a b\"\r\n  \"c#d\" e\n\n").unwrap();
    let listed = launch(&format!("@{} {PIPE}", file.display()));
    assert_eq!(listed.filter_uids.as_deref(), Some(&["a b", "c#d", "e"].map(str::to_owned)[..]));
    fs::write(&file, "--server dotnettestcli\n--dotnet-test-pipe /t/p\n").unwrap();
    assert_eq!(launch(&format!("@{}", file.display())).server, Server::Pipe("/t/p".into()));
}

#[test]
fn http_is_the_other_transport() {
    let launch = launch(
        "--server DotNetTestCli --dotnet-test-transport http --dotnet-test-http-endpoint http://127.0.0.1:1/x \
         --dotnet-test-http-token t",
    );
    let server = Server::Http { endpoint: "http://127.0.0.1:1/x".into(), token: "t".into() };
    assert_eq!(launch.server, server);
}

#[test]
fn each_mistake_has_its_own_message() {
    let wrong = |line: &str| parse(&format!("{line} {PIPE}")).unwrap_err().to_string();
    assert_eq!(wrong("--treenode-filter /x"), "unknown option --treenode-filter");
    assert_eq!(wrong("word"), "unexpected argument \"word\"");
    assert_eq!(wrong("--suite"), "--suite takes 1 value, not 0 values");
    assert_eq!(wrong("--list-tests x"), "--list-tests takes no value, not 1 values");
    assert_eq!(
        wrong("--ignore-exit-code x"),
        "--ignore-exit-code \"x\": expected exit codes separated by ';'"
    );
    assert_eq!(wrong("--timeout soon"), "--timeout \"soon\": expected a time such as 90s, 10m or 500ms");
    assert_eq!(wrong("--minimum-expected-tests -1"), "unknown option --1");
    assert!(wrong("@/no/such/file").starts_with("can't read /no/such/file: "));
    let wrong = |line: &str| parse(line).unwrap_err().to_string();
    assert_eq!(wrong("--server vstest"), "--server \"vstest\": expected dotnettestcli");
    assert_eq!(wrong("--server dotnettestcli"), "--dotnet-test-pipe is missing");
    let http = "--server dotnettestcli --dotnet-test-transport";
    assert_eq!(wrong(&format!("{http} http")), "--dotnet-test-http-endpoint is missing");
    assert_eq!(wrong(&format!("{http} mail")), "--dotnet-test-transport \"mail\": expected pipe or http");
    let own = [CommandOption::new("timeout", "Mine")];
    let error = Launch::parse(PIPE.split(' ').map(OsString::from), &own).unwrap_err();
    assert_eq!(error, LaunchError::Reserved("timeout".into()));
}

#[test]
fn times_have_units() {
    for (text, ms) in [("500ms", 500), ("2", 2000), ("2s", 2000), ("1.5m", 90_000), ("1h", 3_600_000)] {
        assert_eq!(duration(text), Some(Duration::from_millis(ms)), "{text}");
    }
    for text in ["", "s", "0s", "1d", "1.2.3s", "-1s", "1e999h"] {
        assert_eq!(duration(text), None, "{text}");
    }
}
