//! Requests to modules other than a run: hand-written scripts, the negotiated version, files, and errors.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runtap_mtp_host::harness::Outcome;
use runtap_testkit::run;

use crate::real_wrapped::{project, write};
use crate::samples::module;
use crate::servers::{dotnet_test, or_skip, our_sums, runtap, sums, with_own_places};

/// `mtp host` with the server's options before `--`, as in hand-written scripts.
pub(crate) fn hand_written_scripts_pass_the_servers_options_on() -> Outcome {
    or_skip(|| {
        let folder = project(&[("tests.tap", "1..2\nok 1 - adds\nok 2 - parses # SKIP not yet\n")]);
        let script = folder.path().join("own");
        let program = env!("CARGO_BIN_EXE_runtap");
        let text = format!("#!/bin/sh\nexec '{program}' mtp host -q \"$@\" --from tap -- cat tests.tap\n");
        fs::write(&script, text).expect("the script can be written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("and made executable");
        let told = |options: &[&str]| dotnet_test(folder.path(), "own", options).map(run);
        assert_eq!(sums(told(&[])?.expect_code(0)), [2, 0, 1, 1]);
        assert_eq!(sums(told(&["--filter-uid", "adds", "divides"])?.expect_code(0)), [1, 0, 1, 0]);
        let listed = told(&["--list-tests"])?;
        assert!(listed.expect_code(0).text().contains("  adds\n"), "{listed}");
        let help = told(&["--help"])?;
        assert!(help.expect_code(0).text().contains("--filter-uid"), "{help}");
        assert!(
            told(&["--no-such-option"])?.expect_code(5).text().contains("unknown option --no-such-option")
        );
        assert_eq!(our_sums(folder.path(), &[&script], &[])?, ([2, 0, 1, 1], Some(0)));
        // A server that does not exist, with the arguments of docs/cli.md.
        let words = [
            "mtp",
            "host",
            "--from",
            "tap",
            "--server",
            "dotnettestcli",
            "--dotnet-test-pipe",
            "/dev/null/x",
        ];
        let absent = run(runtap(words.into_iter().chain(["--", "true"])));
        assert!(absent.expect_code(1).stderr.contains("no server at /dev/null/x"), "{absent}");
        Ok(())
    })
}

pub(crate) fn the_negotiated_version_is_reported() -> Outcome {
    or_skip(|| {
        let folder = project(&[]);
        let failing = ["sh", "-c", "echo 1..1; echo not ok 1 - adds; exit 1"];
        write(folder.path(), &["-v", "--from", "tap"], &failing);
        let told = run(dotnet_test(folder.path(), "wrapped", &[])?);
        let version = "negotiated protocol version 1.0.0; running sh -c ";
        assert!(told.expect_code(2).text().contains(version), "{told}");
        write(folder.path(), &["--from", "tap"], &failing);
        let told = run(dotnet_test(folder.path(), "wrapped", &[])?);
        assert!(!told.expect_code(2).text().contains("negotiated"), "{told}");
        // The platform's own command line, for any module.
        module(folder.path(), "harness", "harness");
        for name in ["wrapped", "harness"] {
            let logs = folder.path().join(name.to_owned() + "-logs");
            let options =
                ["--diagnostic", "--diagnostic-output-directory", logs.to_str().expect("the path is UTF-8")];
            run(dotnet_test(folder.path(), name, &options)?).expect_code(2);
            let files = fs::read_dir(&logs).expect("there are logs").map(|entry| entry.unwrap().path());
            let [log] = &files.collect::<Vec<_>>()[..] else { panic!("{}", logs.display()) };
            let text = fs::read_to_string(log).expect("it can be read");
            assert!(text.contains("negotiated protocol version 1.0.0 with process "), "{text}");
            assert!(text.contains("(.NET 10."), "{text}");
            assert!(text.ends_with("exit code 2\n"), "{text}");
        }
        Ok(())
    })
}

pub(crate) fn files_that_a_command_leaves() -> Outcome {
    or_skip(|| {
        let report = "<testsuite name='s'><testcase name='draws'><system-out>drawn\n[[ATTACHMENT|pictures/a.png]]\n\
                      [[ATTACHMENT|absent.png]]\n</system-out></testcase></testsuite>";
        let folder = project(&[("recorded.xml", report), ("pictures/a.png", "a picture")]);
        let options = ["--from", "junit", "--report", "out.xml"];
        write(folder.path(), &options, &["cp", "recorded.xml", "out.xml"]);
        let told = run(dotnet_test(folder.path(), "wrapped", &["--output", "Detailed"])?);
        let text = told.expect_code(0).text();
        let picture = folder.path().join("pictures/a.png");
        for part in [
            format!("- For test 's.draws': {}\n", picture.display()),
            format!("- {}\n", folder.path().join("out.xml").display()),
        ] {
            assert!(text.contains(&part), "{part}: {told}");
        }
        assert!(
            text.contains("drawn\n") && !text.contains("ATTACHMENT") && !text.contains("absent"),
            "{told}"
        );
        // Writes a runtap report and reads it again.
        let ours = |module: &str, report: &str| {
            let words = ["test", module, "--report", &format!("junit={report}")].map(str::to_owned);
            let mut command = runtap(words);
            with_own_places(&mut command, folder.path());
            command.current_dir(folder.path());
            run(command).expect_code(0);
            fs::read_to_string(folder.path().join(report)).expect("there is a report")
        };
        let named = format!("[[ATTACHMENT|{}]]", picture.display());
        assert!(ours("./wrapped", "first.xml").contains(&named));
        write(folder.path(), &options, &["cp", "first.xml", "out.xml"]);
        assert!(ours("./wrapped", "second.xml").contains(&named));
        // The output of tests cannot name other files of the user.
        let (inner, secret) = (folder.path().join("inner"), folder.path().join("secret"));
        fs::create_dir(&inner).and_then(|()| fs::write(&secret, "mine")).expect("a file of the user");
        std::os::unix::fs::symlink("../secret", inner.join("link")).expect("a link to it");
        let report = format!(
            "<testsuite name='s'><testcase name='draws'><system-out>\n[[ATTACHMENT|{}]]\n[[ATTACHMENT|../secret]]\n\
             [[ATTACHMENT|link]]\n</system-out></testcase></testsuite>",
            secret.display()
        );
        fs::write(inner.join("recorded.xml"), report).expect("a report");
        let directory = inner.to_str().expect("the path is UTF-8");
        write(
            folder.path(),
            &[&options[..], &["--directory", directory]].concat(),
            &["cp", "recorded.xml", "out.xml"],
        );
        let words = ["test", "./wrapped", "--collect-artifacts=kept", "--no-history"].map(str::to_owned);
        let mut command = runtap(words);
        with_own_places(&mut command, folder.path());
        command.current_dir(folder.path());
        let told = run(command);
        assert!(told.expect_code(0).stderr.contains("collected 1 file in"), "the report alone: {told}");
        Ok(())
    })
}

pub(crate) fn quiet_libtest_is_rejected() -> Outcome {
    or_skip(|| {
        let folder = project(&[]);
        let script = "echo; echo 'running 2 tests'; echo ..; echo; echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 \
                      measured; 0 filtered out; finished in 0.00s'";
        write(folder.path(), &["--from", "libtest"], &["sh", "-c", script]);
        let told = run(dotnet_test(folder.path(), "wrapped", &[])?);
        let said = "prints results without names; do not use -q, --quiet or --format terse";
        assert!(told.expect_code(1).text().contains(said), "{told}");
        Ok(())
    })
}

/// A server that requests running tests can tell which one has terminated the process, and loses no earlier result.
pub(crate) fn a_test_that_ends_the_process() -> Outcome {
    or_skip(|| {
        let folder = project(&[]);
        let path = module(folder.path(), "aborts", "aborts");
        let options = ["--no-history", "--", "--test-threads", "1"].map(Path::new);
        let words = [Path::new("test"), &path].into_iter().chain(options);
        let mut command = runtap(words);
        with_own_places(&mut command, folder.path());
        let told = run(command);
        assert_ne!(told.code(), Some(0), "{told}");
        let text = told.text();
        assert!(text.contains("second"), "it is named: {told}");
        assert!(text.contains("2 passed"), "the one before it and the one after: {told}");
        // The released SDK does not request them, and shows that the module has crashed.
        let told = run(dotnet_test(folder.path(), "aborts", &["--test-threads", "1"])?);
        assert!(told.expect_code(134).text().contains("Exit code: 134"), "{told}");
        Ok(())
    })
}
