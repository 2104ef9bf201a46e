//! Output and prompts on a terminal: the list of processes, and tables that fit.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use runtap_testkit::{Program, RealRuntime, Skip, eventually, test_application};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, path};
use crate::common::{command, counts, folder, runtap, trace_of};

/// A command whose input and output are a terminal with a given number of columns.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    /// The terminal's modes before the program was started.
    pub(crate) modes: String,
    screen: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Terminal {
    pub(crate) fn start(mut command: Command, columns: u16) -> Self {
        command.env("TERM", "xterm");
        Self::start_as_it_is(command, columns)
    }

    /// Starts a command with its own variable `TERM`.
    pub(crate) fn start_as_it_is(mut command: Command, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let terminal = || -> Stdio {
            File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap().into()
        };
        // Before the program can have changed them.
        let modes = format!("{:?}", tcgetattr(&master).unwrap());
        command.stdin(terminal()).stdout(terminal()).stderr(terminal());
        let child = command.spawn().unwrap();
        drop(command);
        let keyboard = File::from(master);
        let (mut read, screen) = (keyboard.try_clone().unwrap(), Arc::<Mutex<String>>::default());
        let shown = Arc::clone(&screen);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = read.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        Self { child, keyboard, modes, screen, reader: Some(reader) }
    }

    /// Returns the text shown so far, without colors.
    pub(crate) fn text(&self) -> String {
        anstream::adapter::strip_str(&self.screen.lock().unwrap()).to_string()
    }

    /// Waits until this text was shown.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        eventually(text, || self.text().contains(text).then_some(()));
    }

    /// Returns the output so far, including control sequences.
    pub(crate) fn raw(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Returns the shared buffer of the output.
    pub(crate) fn shared(&self) -> Arc<Mutex<String>> {
        Arc::clone(&self.screen)
    }

    /// Returns the current modes of the terminal.
    pub(crate) fn modes(&self) -> String {
        format!("{:?}", tcgetattr(&self.keyboard).unwrap())
    }

    /// Returns the other side of the terminal.
    pub(crate) fn keyboard(&self) -> File {
        self.keyboard.try_clone().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the exit; returns the shown text and the exit code.
    #[track_caller]
    pub(crate) fn wait(mut self) -> (String, Option<i32>) {
        let status = eventually("the end of it", || self.child.try_wait().unwrap());
        // No process has the terminal open, so reading from it ends.
        self.reader.take().unwrap().join().unwrap();
        (self.text(), status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn service(folder: &TempDir) -> Program {
    let mut launched = demo(folder, "600");
    launched.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program::start(launched);
    program.wait_for("ready");
    program
}

/// The user is asked once, and the answer selects the process that was listed, even if processes have changed since.
#[test]
fn a_process_is_picked_once() {
    let folder = folder();
    let service = service(&folder);
    for verb in ["info", "env", "perfmap disable"] {
        let mut terminal = Terminal::start(command(verb.split(' ')), 120);
        terminal.wait_for("Select a process");
        let text = terminal.text();
        let pid = service.id().to_string();
        let row =
            text.lines().map(|line| line.split_whitespace()).find(|row| row.clone().nth(1) == Some(&pid));
        let number = row.and_then(|mut row| row.next()).unwrap_or_else(|| panic!("{pid} is not in {text}"));
        // A second question would read the end of input.
        terminal.type_in(&format!("{number}\n\u{4}"));
        let (text, code) = terminal.wait();
        assert_eq!(text.matches("Select a process").count(), 1, "{text}");
        assert!(!text.contains("no target specified"), "{text}");
        if verb == "info" {
            assert_eq!(code, Some(0), "{text}");
            let (_, told) = text.split_once("Select a process").unwrap();
            assert!(told.lines().any(|line| line.split_whitespace().last() == Some(&pid)), "{text}");
        }
    }
}

/// A process id is also a valid answer; an invalid answer is reported, and the question repeated once.
#[test]
fn a_process_is_picked_by_its_id_and_an_invalid_answer_is_reported() {
    let folder = folder();
    let service = service(&folder);
    let pid = service.id().to_string();
    let mut terminal = Terminal::start(command(["info"]), 120);
    terminal.wait_for("Select a process");
    terminal.type_in("abc\n");
    terminal.wait_for("'abc' is not");
    eventually("the second question", || {
        (terminal.text().matches("Select a process").count() == 2).then_some(())
    });
    terminal.type_in(&format!("{pid}\n"));
    let (text, code) = terminal.wait();
    assert_eq!(code, Some(0), "{text}");
    let (_, told) = text.rsplit_once("Select a process").unwrap();
    assert!(told.lines().any(|line| line.split_whitespace().last() == Some(&pid)), "{text}");

    let mut terminal = Terminal::start(command(["info"]), 120);
    terminal.wait_for("Select a process");
    terminal.type_in("0\n");
    terminal.wait_for("'0' is not");
    terminal.type_in("2 x\n");
    let (text, code) = terminal.wait();
    assert_eq!((code, text.matches("Select a process").count()), (Some(2), 2), "{text}");
    assert!(text.contains("error: '2 x' is not"), "{text}");
}

#[test]
fn a_table_fits_the_terminal() {
    let folder = folder();
    let _service = service(&folder);
    let widest = |words: &[&str]| {
        // A process that answers late is busy.
        let text = eventually("it runs", || {
            let (text, code) = Terminal::start(command(words), 60).wait();
            assert_eq!(code, Some(0), "{text}");
            text.contains("running").then_some(text)
        });
        assert!(text.contains("STATE"), "{text}");
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert_eq!(widest(&["ps"]), 60);
    assert!(widest(&["ps", "--wide"]) > 60);
}

/// Prints what is recorded, from which process, into which file and for how long; Enter stops the recording.
#[test]
fn enter_ends_a_recording() {
    let folder = folder();
    let service = service(&folder);
    let (pid, file) = (service.id().to_string(), path(&folder, "x.nettrace"));
    let trace = command(["trace", "-p", &pid, "--providers", DEMO, "-o", &file]);
    let mut terminal = Terminal::start(trace, 200);
    terminal.wait_for("Enter or Ctrl-C stops the recording");
    let text = terminal.text();
    assert!(text.contains(&format!("Recording demo (process {pid}) into {file}")), "{text}");
    assert!(text.contains("providers: Runtap-Demo; Enter"), "{text}");
    terminal.type_in("\n");
    let (text, code) = terminal.wait();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("lost, ") && counts(file.as_ref(), 0)["partial"].is_null(), "{text}");

    let limited = ["trace", "-p", &pid, "--providers", DEMO, "-o", &file, "--duration", "1500ms"];
    let (text, code) = Terminal::start(command(limited), 200).wait();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1.5 s, Enter or Ctrl-C stops the recording") && text.contains(" left]"), "{text}");
}

/// A launched command has exclusive use of the keyboard.
#[test]
fn a_command_keeps_the_keyboard() {
    let folder = folder();
    let file = path(&folder, "x.nettrace");
    let launched = trace_of(["-o", &file, "--show-child-io", "--providers", DEMO], &demo(&folder, "1"));
    let mut terminal = Terminal::start(launched, 200);
    terminal.wait_for("Ctrl-C stops the recording");
    assert!(!terminal.text().contains("Enter"), "{}", terminal.text());
    terminal.type_in("\n");
    let (text, code) = terminal.wait();
    assert!(code == Some(0) && text.contains("done"), "{text}");
}

/// The state of the run is redrawn below the permanent lines: new messages take its place.
#[test]
fn progress_is_not_drawn_over_messages_of_a_test_run() {
    let started = || -> Result<Terminal, Skip> {
        let (runtime, folder) = (RealRuntime::available(10)?, test_application("orchard-2.5.2")?);
        let mut test = command(["test", "--no-history", "--dotnet"]);
        test.arg(runtime.root().join("dotnet")).arg(folder.join("orchard.dll"));
        test.args(["--", "--suite", "slow:50:300"]);
        Ok(Terminal::start(test, 60))
    };
    let terminal = match started() {
        Ok(terminal) => terminal,
        Err(skip) => return skip.report(),
    };
    terminal.wait_for("0 of 1 application done, ");
    terminal.wait_for(" passed ");
    let child = Pid::from_child(&terminal.child);
    kill_process(child, Signal::INT).unwrap();
    let screen = Arc::clone(&terminal.screen);
    let (text, code) = terminal.wait();
    assert_eq!(code, Some(3), "{text}");
    let screen = screen.lock().unwrap();
    let (before, _) = screen.split_once("Stopping: ").unwrap();
    assert!(before.ends_with("\r\x1b[K\x1b[B\x1b[J\x1b[A"), "the state is erased first: {before:?}");
    let states = text.lines().map(|line| line.trim_end_matches('\r')).filter(|line| line.contains(" done, "));
    for line in states {
        assert!(line.ends_with(" s") || line.ends_with(" ms"), "times are not cut: {line:?}");
        assert!(line.chars().count() < 60, "{line:?}");
    }
}

#[test]
fn no_message_contains_debug_output() {
    let folder = folder();
    let service = service(&folder);
    let told = runtap(["doctor", "-v", "-p", &service.id().to_string()]);
    for word in ["{", "}", "Some(", "None", "Matching", "Running"] {
        assert!(!told.expect_code(0).stderr.contains(word), "{word}: {told}");
    }
    for words in [["info", "-p", "x"], ["report", "x", "-nx"]] {
        let told = runtap(words);
        assert!(!told.expect_code(2).stderr.contains("invalid digit"), "{told}");
    }
    runtap(["info", "-p", "x"]).says("'x' is not a process id");
}
