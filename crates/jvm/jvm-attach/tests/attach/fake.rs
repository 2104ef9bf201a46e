//! A misbehaving JVM, and other processes that interfere.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use runtap_jvm_attach::codec::{MAX_TEXT, ReplyError, Request};
use runtap_jvm_attach::{AgentAnswer, AttachError, Jvm, Timeouts};
use runtap_testkit::{Program, Signal, Skip, eventually};
use rustix::process::{Pid, kill_process};

use crate::{attach, block_on, compile, is_there, or_skip, start};

/// Starts a fake JVM of this kind.
struct Fake {
    program: Program,
    folder: tempfile::TempDir,
}

impl Fake {
    fn start(mode: &str, library: &str) -> Result<Self, Skip> {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(include_str!("fake_jvm.c"), "fake_jvm", folder.path(), false)?;
        let library = folder.path().join(library);
        fs::write(&library, [0; 4096]).unwrap();
        let mut command = Command::new(program);
        command.arg(mode).arg(library).current_dir(folder.path());
        Ok(Self { program: start(command), folder })
    }

    fn pid(&self) -> u32 {
        self.program.id()
    }

    fn lives(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.program.kill();
        let _ = fs::remove_file(format!("/tmp/.java_pid{}", self.pid()));
    }
}

const QUICK: Duration = Duration::from_millis(700);

#[test]
fn processes_that_the_signal_would_kill_receive_none() {
    or_skip((|| {
        for mode in ["deaf", "ignores"] {
            let fake = Fake::start(mode, "libjvm.so")?;
            let error = attach(fake.pid(), Timeouts::all(QUICK)).unwrap_err();
            assert!(matches!(error, AttachError::SignalNotHandled { .. }), "{mode}: {error}");
            assert!(fake.lives(), "{mode}");
            assert!(!is_there(&format!("/tmp/.attach_pid{}", fake.pid())));
        }
        // The process handles the signal and is not a JVM.
        let other = Fake::start("answers", "libother.so")?;
        assert!(matches!(Jvm::examine(other.pid()), Err(AttachError::NotAJvm { .. })));
        let other = Fake::start("answers", "libj9vm29.so")?;
        assert!(matches!(Jvm::examine(other.pid()), Err(AttachError::OpenJ9 { .. })));
        Ok(())
    })());
}

#[test]
fn a_process_has_ended_once_all_of_it_has() {
    or_skip((|| {
        let mut fake = Fake::start("answers", "libjvm.so")?;
        let jvm = Jvm::examine(fake.pid()).unwrap();
        assert!(!jvm.has_ended());
        fake.program.kill();
        eventually("it has ended", || jvm.has_ended().then_some(()));
        Ok::<_, Skip>(())
    })());
}

#[test]
fn who_answers_badly_is_not_waited_for() {
    or_skip((|| {
        let ask = |mode: &str| {
            let fake = Fake::start(mode, "libjvm.so")?;
            let began = Instant::now();
            let client = attach(fake.pid(), Timeouts::default()).unwrap();
            drop(client);
            let timeouts = if ["silent", "trickle"].contains(&mode) {
                Timeouts::all(QUICK)
            } else {
                Timeouts::default()
            };
            let client = attach(fake.pid(), timeouts).unwrap();
            let answer = block_on(client.request(&Request::properties()));
            assert!(fake.lives() && began.elapsed() < Duration::from_mins(1), "{mode}");
            Ok(answer)
        };
        let reply = ask("answers")?.unwrap();
        assert_eq!((reply.code, reply.message().as_str()), (0, "return code: 0"));
        let error = ask("silent")?.unwrap_err();
        assert!(matches!(error, AttachError::NoReply { .. }), "{error}");
        let error = ask("trickle")?.unwrap_err();
        assert!(matches!(error, AttachError::NoReply { .. }), "bytes that trickle do not extend it: {error}");
        let error = ask("garbage")?.unwrap_err();
        assert!(
            matches!(error, AttachError::Reply { source: ReplyError::NoCode { offset: 0 }, .. }),
            "{error}"
        );
        let error = ask("closes")?.unwrap_err();
        let closed = matches!(
            error,
            AttachError::Reply { source: ReplyError::Closed { .. }, .. } | AttachError::Io { .. }
        );
        assert!(closed, "{error}");
        Ok::<_, Skip>(())
    })());
}

#[test]
fn an_answer_without_end_is_bounded() {
    or_skip((|| {
        let fake = Fake::start("endless", "libjvm.so")?;
        let client = attach(fake.pid(), Timeouts::default()).unwrap();
        let error = block_on(client.request(&Request::properties())).unwrap_err();
        let bounded =
            matches!(error, AttachError::Reply { source: ReplyError::TooLong { limit: MAX_TEXT }, .. });
        assert!(bounded, "{error}");
        Ok::<_, Skip>(())
    })());
}

#[test]
fn who_never_listens_is_asked_once_more_and_left() {
    or_skip((|| {
        let fake = Fake::start("never", "libjvm.so")?;
        let error = attach(fake.pid(), Timeouts::all(QUICK)).unwrap_err();
        assert!(matches!(error, AttachError::NotListening { .. }), "{error}");
        assert!(!is_there(&format!("/tmp/.attach_pid{}", fake.pid())), "the file is gone");
        assert!(fake.lives());
        Ok::<_, Skip>(())
    })());
}

#[test]
fn who_is_stopped_is_said_to_be() {
    or_skip((|| {
        let fake = Fake::start("answers", "libjvm.so")?;
        let pid = Pid::from_raw(i32::try_from(fake.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        eventually("it is stopped", || {
            let error = attach(fake.pid(), Timeouts::all(QUICK)).unwrap_err();
            matches!(error, AttachError::Stopped { .. }).then_some(())
        });
        kill_process(pid, Signal::CONT).unwrap();
        Ok::<_, Skip>(())
    })());
}

#[test]
fn names_that_others_have_taken_lead_nowhere() {
    or_skip((|| {
        // A socket with the JVM's name: nothing is sent to it.
        let mut fake = Fake::start("never", "libjvm.so")?;
        let socket = format!("/tmp/.java_pid{}", fake.pid());
        // A process with this id before may have left it.
        let _ = fs::remove_file(&socket);
        let _listener = UnixListener::bind(&socket).unwrap();
        let error = attach(fake.pid(), Timeouts::all(QUICK)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, AttachError::Connect { .. }) && text.contains("PID"), "{text}");
        fs::remove_file(&socket).unwrap();
        // Not a socket.
        for kind in ["file", "link", "fifo"] {
            match kind {
                "file" => fs::write(&socket, "").unwrap(),
                "link" => symlink("/tmp", &socket).unwrap(),
                _ => assert!(Command::new("mkfifo").arg(&socket).status().unwrap().success()),
            }
            let error = attach(fake.pid(), Timeouts::all(QUICK)).unwrap_err();
            assert!(matches!(error, AttachError::Connect { .. }), "{kind}: {error}");
            fs::remove_file(&socket).unwrap();
        }
        // The file that requests listening: a symbolic link is not followed, and the working directory is used instead.
        let trigger = format!("/tmp/.attach_pid{}", fake.pid());
        let bait = fake.folder.path().join("bait");
        symlink(&bait, &trigger).unwrap();
        // As long as the process needs to check.
        let error = attach(fake.pid(), Timeouts::all(Duration::from_secs(5))).unwrap_err();
        assert!(matches!(error, AttachError::NotListening { .. }), "{error}");
        assert!(!bait.exists(), "nothing was made behind the link");
        assert!(is_there(&trigger), "it is another's");
        assert_eq!(fake.program.wait_for("trigger "), "1");
        let left = fake.folder.path().join(format!(".attach_pid{}", fake.pid()));
        assert!(!Path::new(&left).exists());
        fs::remove_file(&trigger).unwrap();
        Ok::<_, Skip>(())
    })());
}

#[test]
fn what_an_earlier_process_has_left_behind_does_not_matter() {
    or_skip((|| {
        let fake = Fake::start("never", "libjvm.so")?;
        let socket = format!("/tmp/.java_pid{}", fake.pid());
        // A process with this id before may have left it.
        let _ = fs::remove_file(&socket);
        drop(UnixListener::bind(&socket).unwrap());
        // The JVM is requested to listen all the same.
        let error = attach(fake.pid(), Timeouts::all(QUICK)).unwrap_err();
        assert!(matches!(error, AttachError::NotListening { .. }), "{error}");
        Ok::<_, Skip>(())
    })());
}

#[test]
fn who_is_stopped_later_is_not_waited_for() {
    or_skip((|| {
        let fake = Fake::start("answers", "libjvm.so")?;
        let client = attach(fake.pid(), Timeouts::default()).unwrap();
        let pid = Pid::from_raw(i32::try_from(fake.pid()).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        // The signal is sent, and takes effect when the process has a processor.
        eventually("it stands still", || {
            let status = fs::read_to_string(format!("/proc/{}/status", fake.pid())).ok()?;
            status.lines().any(|line| line.starts_with("State:\tT")).then_some(())
        });
        let began = Instant::now();
        eventually("it is stopped", || {
            let error = block_on(client.load(Path::new("/none.so"), "")).err()?;
            matches!(error, AttachError::Stopped { .. }).then_some(())
        });
        assert!(began.elapsed() < Duration::from_secs(10));
        kill_process(pid, Signal::CONT).unwrap();
        Ok::<_, Skip>(())
    })());
}

/// An agent's answer is one line; anything else is not waited for, and all files are removed.
#[test]
fn an_agent_can_say_why() {
    use std::os::unix::fs::PermissionsExt as _;
    or_skip((|| {
        let fake = Fake::start("answers", "libjvm.so")?;
        let client = attach(fake.pid(), Timeouts::default()).unwrap();
        let answer = block_on(AgentAnswer::create(client.jvm())).unwrap();
        let path = answer.path().to_owned();
        let folder = path.parent().unwrap().to_owned();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(answer.read(), None);
        fs::write(&path, "it is so\nand more").unwrap();
        assert_eq!(answer.read().as_deref(), Some("it is so"));
        fs::write(&path, "x".repeat(1 << 20)).unwrap();
        assert_eq!(answer.read().map(|text| text.len()), Some(8 << 10));
        drop(answer);
        assert!(!folder.exists());
        let answer = block_on(AgentAnswer::create(client.jvm())).unwrap();
        symlink("/etc/hostname", answer.path()).unwrap();
        assert_eq!(answer.read(), None, "a link leads nowhere");
        Ok::<_, Skip>(())
    })());
}
