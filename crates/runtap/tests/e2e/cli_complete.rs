//! Shell completion with a process that has a hostile name: the candidates, and how bash and fish handle them.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use runtap_testkit::{Finished, Program, require, run};

use crate::common::{command, folder};
use crate::real_doctor_rights::{NOBODY, ProgramCopy};

/// A program name that triggers expansions in every shell, ends fields and lines, and clears the screen.
const HOSTILE: &str = "x$(touch pwned)`touch pwned`;touch pwned\nnext:line\tfield\u{b}word\u{1b}[2J\u{202e}*";
const HARMLESS: &str = "well-known.App";

/// Starts the built-in program under another name.
fn demo(folder: &Path, name: &str) -> Program {
    let mut demo = command(["demo", "serve", "--seconds", "600"]);
    demo.arg0(name).env("TMPDIR", folder).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(demo);
    program.wait_for("ready");
    program
}

/// Returns whether this shell is installed.
fn has(shell: &str) -> bool {
    Command::new(shell)
        .args(["-c", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a shell script that can find the program under test.
fn script(shell: &str, arguments: &[&str], folder: &Path) -> Finished {
    let program = Path::new(env!("CARGO_BIN_EXE_runtap"));
    let folders = std::env::var_os("PATH").unwrap();
    let path = std::iter::once(program.parent().unwrap().as_os_str().to_owned()).chain([folders]);
    let mut script = Command::new(shell);
    script.args(arguments).current_dir(folder).env("TMPDIR", folder).env_remove("COMPLETE");
    script.env("PATH", path.collect::<Vec<_>>().join(OsStr::new(":")));
    run(script)
}

#[test]
fn hostile_names_do_not_break_out_of_what_shells_are_given() {
    let folder = folder();
    let (hostile, harmless) = (demo(folder.path(), HOSTILE), demo(folder.path(), HARMLESS));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let asked = |option: &str| {
            let mut asking = command(["--", "runtap", "info", option, ""]);
            asking.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "3").env("_CLAP_IFS", "\n");
            run({
                asking.env("TMPDIR", folder.path());
                asking
            })
        };
        let pids = asked("-p");
        for line in pids.expect_code(0).text().lines() {
            let pid = line.split(['\t', ':']).next().unwrap();
            assert!(pid.parse::<u32>().is_ok(), "{shell}: {line:?}");
            assert!(!line.replacen('\t', "", 1).contains(char::is_control), "{shell}: {line:?}");
            assert!(!line.contains('\u{202e}'), "{shell}: {line:?}");
        }
        for program in [&hostile, &harmless] {
            let all = pids.text().lines().filter(|line| line.starts_with(&program.id().to_string())).count();
            assert_eq!(all, 1, "{shell}: {pids}");
        }
        let names = asked("-n");
        assert!(names.expect_code(0).text().lines().any(|line| line == HARMLESS), "{shell}: {names}");
        assert!(!names.text().contains("pwned"), "{shell}: {names}");
    }
}

/// A name selects a process of the current user, and a number the process with that id.
#[test]
fn completion_offers_the_names_that_verbs_accept() {
    let place = require!(ProgramCopy::new());
    let folder = folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777)).unwrap();
    let program = place.path().join("bait.of.nobody");
    std::fs::copy(env!("CARGO_BIN_EXE_runtap"), &program).unwrap();
    let mut demo_of_nobody = Command::new(NOBODY[0]);
    demo_of_nobody.args(&NOBODY[1..]).arg(program).args(["demo", "serve", "--seconds", "600"]);
    demo_of_nobody.env("TMPDIR", folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut theirs = Program::start(demo_of_nobody);
    theirs.wait_for("ready");
    let _ours = [demo(folder.path(), HARMLESS), demo(folder.path(), "1")];
    let asked = |words: &[&str]| {
        let mut asking = command(["--", "runtap", "info"]);
        asking.args(words).env("COMPLETE", "bash").env("_CLAP_IFS", "\n");
        asking.env("_CLAP_COMPLETE_INDEX", (1 + words.len()).to_string()).env("TMPDIR", folder.path());
        run(asking).expect_code(0).text().to_owned()
    };
    let has = |offered: &str, name: &str| offered.lines().any(|line| line == name);
    for words in [&["-n", ""][..], &[""]] {
        let offered = asked(words);
        assert!(has(&offered, HARMLESS) && !has(&offered, "bait.of.nobody"), "{offered}");
        assert_eq!(has(&offered, "1"), words.len() == 2, "{offered}");
    }
    assert!(has(&asked(&["--user", "nobody", "-n", ""]), "bait.of.nobody"));
    assert!(has(&asked(&["-p", ""]), &theirs.id().to_string()), "a process id is offered all the same");
}

/// The completed command line is executed, as if the user had pressed Enter without checking it.
#[test]
fn bash_is_not_led_astray() {
    if !has("bash") {
        return runtap_testkit::Skip::because("bash is not here").report();
    }
    let folder = folder();
    let _programs = (demo(folder.path(), HOSTILE), demo(folder.path(), HARMLESS));
    // Another user can create such files in a shared directory.
    for name in ["talk$(touch pwned).jsonl", "talk;touch pwned", "talk.jsonl"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let complete = r#"
        eval "$(runtap completions bash)"
        offer() {
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
            _clap_complete_runtap runtap "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
            for reply in "${COMPREPLY[@]}"; do eval "echo offered $reply"; done
        }
        offer runtap replay ta
        offer runtap trace -o ta
        offer runtap info -n ''"#;
    let offered = script("bash", &["--norc", "--noprofile", "-c", complete], folder.path());
    assert!(offered.expect_code(0).text().contains(&format!("offered {HARMLESS}\n")), "{offered}");
    assert_eq!(offered.text().matches("offered talk.jsonl\n").count(), 2, "{offered}");
    assert!(!folder.path().join("pwned").exists(), "{offered}");
}

#[test]
fn fish_is_not_led_astray() {
    if !has("fish") {
        return runtap_testkit::Skip::because("fish is not here").report();
    }
    let folder = folder();
    let _programs = (demo(folder.path(), HOSTILE), demo(folder.path(), HARMLESS));
    let complete = "runtap completions fish | source; complete --do-complete 'runtap info -n '";
    let offered = script("fish", &["--no-config", "-c", complete], folder.path());
    assert!(offered.expect_code(0).text().lines().any(|line| line == HARMLESS), "{offered}");
    assert!(!offered.text().contains("pwned") && !folder.path().join("pwned").exists(), "{offered}");
}
