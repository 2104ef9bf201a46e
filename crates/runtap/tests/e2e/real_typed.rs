//! Ctrl-C typed on a terminal: the kernel sends it to runtap, to the command, and to all of its children at once.
//! Whatever it does to each of them, no process stays suspended.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use runtap_discover::System;
use runtap_testkit::{Finished, RealRuntime, Running, Skip, eventually};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::TempDir;

use crate::common::{all_have_ended, count_of, counts, folder, trace_of};
use crate::real_launch::{MOMENTS, Moments, TREE, TREE_DURATION};

on_each_runtime!(typed_when_the_tree_is_up, typed_at_any_moment);

/// The control character that a terminal interprets as Ctrl-C.
const CTRL_C: &[u8] = &[3];

/// A command in its own session, in the foreground of a terminal.
struct OnTerminal {
    running: Running,
    /// The other end of the terminal: bytes written here are typed there.
    keyboard: File,
}

impl OnTerminal {
    fn start(command: &Command) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let name = ptsname(&keyboard, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        // setsid makes this the controlling terminal and executes the command.
        let mut setsid = Command::new("setsid");
        setsid.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => setsid.env(name, value),
                None => setsid.env_remove(name),
            };
        }
        setsid.stdin(terminal).stdout(std::process::Stdio::piped());
        let keyboard = File::from(keyboard);
        // Reads the screen, so that no writer blocks.
        let mut screen = keyboard.try_clone().unwrap();
        thread::spawn(move || {
            let mut shown = [0; 4096];
            while screen.read(&mut shown).is_ok_and(|n| n > 0) {}
        });
        Self { running: Running::start_as_it_is(setsid), keyboard }
    }

    fn type_ctrl_c(&mut self) {
        // The terminal may be closed already.
        let _ = self.keyboard.write_all(CTRL_C);
    }

    fn wait(self) -> Finished {
        self.running.wait()
    }
}

fn children(runtime: &RealRuntime, seconds: &str) -> Result<(Command, TempDir), Skip> {
    let folder = folder();
    let mut children = runtime.program("children", &[seconds])?.command();
    children.env("TMPDIR", folder.path());
    Ok((children, folder))
}

fn tracing(children: &Command, file: &Path) -> OnTerminal {
    let options = ["--children", "--format", "json", "-o", file.to_str().unwrap()];
    OnTerminal::start(&trace_of(options, children))
}

fn typed_when_the_tree_is_up(runtime: &RealRuntime) -> Result<(), Skip> {
    let (children, folder) = children(runtime, "600")?;
    let file = folder.path().join("x.nettrace");
    let mut tracing = tracing(&children, &file);
    // Each of them runs its program.
    let with_children = || System::current().tree(tracing.running.id()).len() == 1 + TREE;
    eventually("the whole tree", || with_children().then_some(()));
    let recorded = || {
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.path().extension().is_some_and(|it| it == "nettrace"));
        files.filter(|file| file.metadata().unwrap().len() > 10_000).count()
    };
    eventually("something of each", || (recorded() == TREE).then_some(()));
    tracing.type_ctrl_c();
    let finished = tracing.wait();
    all_have_ended(folder.path());
    // The command's own code, since it did not exit in order.
    assert_eq!(finished.code(), Some(130), "{finished}");
    let summary = finished.json();
    let processes = summary["processes"].as_array().unwrap();
    assert_eq!(processes.len(), TREE, "{finished}");
    for process in processes {
        // The signal terminates a program that does not handle it, in the middle of its stream.
        let code = if process["partial"].is_null() { 0 } else { 5 };
        let counts = counts(process["outputs"][0]["path"].as_str().unwrap().as_ref(), code);
        assert_eq!(count_of(&counts, "Microsoft-Windows-DotNETRuntime", 187), 1, "{finished}");
        assert_eq!(counts["process_id"], process["pid"]);
    }
    Ok(())
}

fn typed_at_any_moment(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut moments = Moments::new(0x7e1e_0000 + u64::from(runtime.major()));
    for n in 0..MOMENTS {
        let (children, folder) = children(runtime, "0.3")?;
        let file = folder.path().join("x.nettrace");
        let mut tracing = tracing(&children, &file);
        let moment: Duration = moments.next(TREE_DURATION);
        thread::sleep(moment);
        tracing.type_ctrl_c();
        let finished = tracing.wait();
        all_have_ended(folder.path());
        // Before runtap handles signals, a signal terminates it like any program.
        assert!(finished.code().is_some() || finished.stdout.is_empty(), "{n}, after {moment:?}: {finished}");
        if !finished.stdout.is_empty() {
            let summary = finished.json();
            assert!(
                summary["processes"].as_array().unwrap().len() <= TREE,
                "{n}, after {moment:?}: {finished}"
            );
        }
    }
    Ok(())
}
