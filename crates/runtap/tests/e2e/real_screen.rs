//! The contents of a terminal while tests run, as displayed by tmux, an independent terminal implementation.

use std::process::{Command, Stdio};

use runtap_testkit::{RealRuntime, Skip, eventually, require, test_application};
use tempfile::TempDir;

use crate::common::{command, folder};

/// A terminal of 80 columns and 24 lines, in its own server.
struct Terminal {
    folder: TempDir,
}

impl Terminal {
    /// Runs a command in it; its output stays on the screen.
    fn new(shown: &Command) -> Result<Self, Skip> {
        let there = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            return Err(Skip::because("there is no tmux"));
        }
        let terminal = Self { folder: folder() };
        let mut start = terminal.tmux(["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24"]);
        for (name, value) in shown.get_envs() {
            if let Some(value) = value {
                start.env(name, value);
            }
        }
        // `cat` exits with the server.
        start.args(["sh", "-c", r#""$@"; cat"#, "sh"]).arg(shown.get_program()).args(shown.get_args());
        assert!(start.status().unwrap().success());
        Ok(terminal)
    }

    fn tmux<const N: usize>(&self, words: [&str; N]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(self.folder.path().join("tmux")).args(words);
        tmux.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        tmux
    }

    /// Returns the contents of the screen.
    fn screen(&self) -> String {
        let captured = self.tmux(["capture-pane", "-p"]).output().unwrap();
        assert!(captured.status.success(), "{captured:?}");
        String::from_utf8(captured.stdout).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The server may have exited already.
        let _ = self.tmux(["kill-server"]).stderr(Stdio::null()).status();
    }
}

#[test]
fn running_tests_are_shown_in_place_and_leave_nothing_behind() {
    let runtime = require!(RealRuntime::available(10));
    let six = require!(test_application("six"));
    let mut shown = command(["test", "--no-history", "-j", "2", "--retries", "1", "--dotnet"]);
    shown
        .arg(runtime.root().join("dotnet"))
        .args(["alpha.dll", "delta.dll", "echo.dll"].map(|it| six.join(it)));
    let terminal = require!(Terminal::new(&shown));
    // Running tests are shown below finished ones, for as long as they run.
    let running = eventually("a test that runs is shown", || {
        let screen = terminal.screen();
        let mut lines = screen.lines().skip_while(|line| !line.contains("of 3 applications done"));
        lines.next()?;
        lines.any(|line| line.contains("Slow(")).then_some(screen)
    });
    let state = running.lines().filter(|line| line.contains("applications done")).count();
    assert_eq!(state, 1, "{running}");
    let end =
        eventually("its end", || Some(terminal.screen()).filter(|screen| screen.contains("exit code 2")));
    // 4, 8 and 5 tests, of which one passes in a retry and one never.
    assert!(end.contains("failed: 17 tests, 16 passed, 1 failed, 1 flaky"), "{end}");
    assert!(!end.contains("applications done"), "{end}");
    assert!(end.lines().all(|line| line.chars().count() <= 80), "{end}");
}
