//! Root writes to folders in which other users can write too: their links and files are not followed, not used, and not
//! waited for. In folders with and without the kernel's `protected_symlinks` and related settings, on disk and in
//! memory. Requires root.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{FakeRuntime, Finished, Running, Skip, require, run};
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, words};
use crate::cli_outputs::{names, recorded};
use crate::common::{command, folder, runtap, shell};
use crate::real_doctor_rights::{NOBODY, ProgramCopy};

const NOBODY_UID: u32 = 65534;
const SECRET: &[u8] = b"what root has";

/// A world-writable folder, and a file of root beside it.
struct Shared {
    dir: TempDir,
    victim: PathBuf,
}

impl Shared {
    /// Returns a folder of each kind.
    fn all() -> Result<Vec<Self>, Skip> {
        // Fails if no other user is available.
        ProgramCopy::new()?;
        let mut all = Vec::new();
        for parent in [std::env::temp_dir(), PathBuf::from("/dev/shm")].iter().filter(|it| it.is_dir()) {
            for mode in [0o777, 0o1777] {
                let dir = tempfile::Builder::new().prefix("runtap-e2e-").tempdir_in(parent).unwrap();
                fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
                fs::create_dir(dir.path().join("shared")).unwrap();
                fs::set_permissions(dir.path().join("shared"), fs::Permissions::from_mode(mode)).unwrap();
                let victim = dir.path().join("victim");
                fs::write(&victim, SECRET).unwrap();
                all.push(Self { dir, victim });
            }
        }
        Ok(all)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("shared").join(name)
    }

    /// Runs a script as user `nobody`: `$1` is the path of a result, `$2` root's file.
    fn nobody(&self, script: &str, place: &Path) {
        let mut attack = Command::new(NOBODY[0]);
        attack.args(&NOBODY[1..]).args(["sh", "-c", script, "sh"]).arg(place).arg(&self.victim);
        run(attack).expect_code(0);
    }

    /// Creates a folder of user `nobody` in which root has left something that the script creates at `$1`.
    fn left_by_root(&self, script: &str) -> PathBuf {
        let theirs = self.dir.path().join("theirs");
        if !theirs.is_dir() {
            fs::create_dir(&theirs).unwrap();
            fs::set_permissions(&theirs, fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(&theirs, Some(NOBODY_UID), None).unwrap();
        }
        let left = theirs.join("left");
        run(shell(script, [left.as_os_str(), self.victim.as_os_str()])).expect_code(0);
        assert_eq!(fs::symlink_metadata(&left).unwrap().uid(), 0);
        left
    }

    /// Checks that each verb rejects this output for this reason; `dump` for its own reason.
    #[track_caller]
    fn refuses(&self, verbs: &[(&str, Vec<String>)], output: &Path, why: &str, why_dump: &str) {
        for (what, verb) in verbs {
            let refused = with_output(verb, output);
            refused.expect_code(2).says(if *what == "dump" { why_dump } else { why });
            self.is_unhurt();
        }
    }

    #[track_caller]
    fn is_unhurt(&self) {
        assert_eq!(fs::read(&self.victim).unwrap(), SECRET);
        assert_eq!(fs::metadata(&self.victim).unwrap().uid(), 0);
    }
}

/// Returns every verb that writes a file, with arguments for this output.
fn verbs(recording: &Path, runtime: &FakeRuntime, demo: &Command) -> Vec<(&'static str, Vec<String>)> {
    let file = recording.to_str().unwrap().to_owned();
    let port = format!("{},connect", runtime.path().display());
    let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<String>>();
    let mut trace = own(&["trace", "--providers", DEMO, "-o", "OUT", "--"]);
    trace.extend(words(demo).into_iter().map(|word| word.to_str().unwrap().to_owned()));
    vec![
        ("convert", own(&["convert", &file, "--to", "folded", "-o", "OUT"])),
        ("repair", own(&["repair", &file, "-o", "OUT"])),
        ("diff", own(&["diff", &file, &file, "--to", "folded", "-o", "OUT"])),
        ("trace", trace),
        ("dump", own(&["dump", "--dport", &port, "-o", "OUT"])),
    ]
}

fn with_output(verb: &[String], output: &Path) -> Finished {
    let words = verb.iter().map(|word| if word == "OUT" { output.to_str().unwrap() } else { word.as_str() });
    let mut command = command(words);
    command.env_remove("DOTNET_DiagnosticPorts");
    run(command)
}

/// Returns a truncated recording, so that `repair` has something to write.
fn cut() -> Result<(TempDir, PathBuf), Skip> {
    let (folder, file) = recorded()?;
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    Ok((folder, file))
}

#[test]
fn no_link_or_pipe_of_another_user_is_followed_or_waited_for() {
    let all = require!(Shared::all());
    let (folder, recording) = require!(cut());
    let (runtime, demo) = (FakeRuntime::spawn(), demo(&folder, "1"));
    for shared in &all {
        for (script, name) in [
            ("ln -s \"$2\" \"$1\"", "x"),
            ("ln -s \"$2.new\" \"$1\"", "x"),
            ("mkfifo -m 666 \"$1\"", "x"),
            // A folder in the path.
            ("ln -s \"${2%/*}\" \"${1%/*}\"", "folder/victim"),
        ] {
            let output = shared.path(name);
            shared.nobody(script, &output);
            let why = if script.starts_with("mkfifo") { "not a regular file" } else { "of user 65534" };
            shared.refuses(&verbs(&recording, &runtime, &demo), &output, "of user 65534", why);
            fs::remove_file(shared.path(name.split('/').next().unwrap())).unwrap();
        }
        assert!(!shared.victim.with_extension("new").exists());
        assert_eq!(names(&shared.path("")), [] as [&str; 0]);
    }
    assert_eq!(runtime.requests(), [], "the target receives no request");
}

/// A user who can write to a folder can move root's own files into it, or hard-link them where the kernel allows it:
/// the owner of a file proves nothing.
#[test]
fn no_file_of_root_is_used_that_others_could_have_moved() {
    let all = require!(Shared::all());
    let (folder, recording) = require!(cut());
    let (runtime, demo) = (FakeRuntime::spawn(), demo(&folder, "1"));
    for shared in &all {
        for (script, name) in [
            ("ln -s \"$2\" \"$1\"", "x"),
            ("ln -s \"$2.new\" \"$1\"", "x"),
            ("mkfifo -m 600 \"$1\"", "x"),
            // The null device, so that a successful attack does no harm.
            ("mknod \"$1\" c 1 3 && chmod 666 \"$1\"", "x"),
            ("ln -s \"${2%/*}\" \"$1\"", "folder/victim"),
        ] {
            let left = shared.left_by_root(script);
            let output = shared.path(name);
            let first = shared.path(name.split('/').next().unwrap());
            shared.nobody(&format!("mv '{}' \"$1\"", left.display()), &first);
            assert_eq!(fs::symlink_metadata(&first).unwrap().uid(), 0);
            let everybody = "where others can write";
            let why = if script.starts_with("ln") { everybody } else { "not a regular file" };
            shared.refuses(&verbs(&recording, &runtime, &demo), &output, everybody, why);
            fs::remove_file(first).unwrap();
        }
        assert!(!shared.victim.with_extension("new").exists());
        assert_eq!(names(&shared.path("")), [] as [&str; 0]);
    }
    assert_eq!(runtime.requests(), [], "the target receives no request");
}

/// An existing world-readable file must not make a recording equally readable.
#[test]
fn no_mode_is_copied_from_a_file_that_others_could_have_moved() {
    let all = require!(Shared::all());
    let (_folder, recording) = require!(cut());
    let convert = |output: &Path| {
        let words =
            ["convert", recording.to_str().unwrap(), "--to", "folded", "-o", output.to_str().unwrap()];
        run(command(words)).expect_code(5);
        let meta = fs::symlink_metadata(output).unwrap();
        assert!(meta.is_file() && meta.len() > 10);
        meta.mode() & 0o7777
    };
    for shared in &all {
        let left = shared.left_by_root("echo log > \"$1\" && chmod 644 \"$1\"");
        let output = shared.path("x");
        shared.nobody(&format!("mv '{}' \"$1\"", left.display()), &output);
        assert_eq!(convert(&output), 0o600);
        fs::remove_file(output).unwrap();
        // In a folder of root, but with another hard link in a folder of user `nobody`.
        let left = shared.left_by_root("echo log > \"$1\" && chmod 644 \"$1\"");
        let own = shared.dir.path().join("own");
        fs::hard_link(&left, &own).unwrap();
        assert_eq!(convert(&own), 0o600);
        // In a folder to which only root can write, and with a single name.
        fs::set_permissions(&own, fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(convert(&own), 0o640);
        // In a folder to which a group other than root's own can write.
        let group = shared.dir.path().join("group");
        fs::create_dir(&group).unwrap();
        std::os::unix::fs::chown(&group, None, Some(NOBODY_UID)).unwrap();
        fs::set_permissions(&group, fs::Permissions::from_mode(0o775)).unwrap();
        fs::rename(&own, group.join("x")).unwrap();
        assert_eq!(convert(&group.join("x")), 0o600);
    }
}

/// The stream is counted and converted from the recorded data, not from a file that has taken its name.
#[test]
fn an_exchanged_stream_is_not_read() {
    let all = require!(Shared::all());
    let (folder, _recording) = require!(cut());
    // In sticky folders other users cannot exchange the file.
    let is_open = |shared: &&Shared| fs::metadata(shared.path("")).unwrap().mode() & 0o1000 == 0;
    for shared in all.iter().filter(is_open) {
        for children in [&[][..], &["--children"]] {
            let demo = demo(&folder, "2");
            let output = shared.path("x");
            let mut trace = command(["trace", "--to", "folded", "--format", "json", "-o"]);
            trace.arg(&output).args(children).arg("--").args(words(&demo));
            trace.env_remove("DOTNET_DiagnosticPorts");
            let attack = "while :; do for it in \"$1\"/*.part; do if [ -s \"$it\" ]; then \
                          mv \"$it\" \"$it.moved\" && echo theirs > \"$it\"; exit; fi; done; done";
            let mut nobody = Command::new(NOBODY[0]);
            nobody.args(&NOBODY[1..]).args(["sh", "-c", attack, "sh"]).arg(shared.path(""));
            let nobody = Running::start(nobody);
            let told = run(trace);
            nobody.wait().expect_code(0);
            told.expect_code(0);
            assert!(told.json()["events"].as_u64().unwrap() > 0, "{told}");
            let meta = fs::metadata(&output).unwrap();
            assert!(meta.uid() == 0 && meta.len() > 10);
            assert!(fs::read_to_string(&output).unwrap().contains(';'), "stacks");
            for name in names(&shared.path("")) {
                fs::remove_file(shared.path(&name)).unwrap();
            }
        }
    }
}

/// The other user has a second name for the file too, and an open descriptor.
#[test]
fn a_file_of_another_user_is_replaced_not_used() {
    let all = require!(Shared::all());
    let (folder, recording) = require!(cut());
    let (runtime, demo) = (FakeRuntime::spawn(), demo(&folder, "1"));
    for shared in &all {
        for (what, verb) in verbs(&recording, &runtime, &demo) {
            if what == "dump" {
                // Writes nothing here; `cli_hostile_dumps` covers dumps.
                continue;
            }
            let output = shared.path("x");
            shared.nobody("umask 0; echo theirs > \"$1\"; ln \"$1\" \"$1.kept\"", &output);
            let told = with_output(&verb, &output);
            assert!([Some(0), Some(5)].contains(&told.code()), "{told}");
            let meta = fs::metadata(&output).unwrap();
            assert_eq!((meta.uid(), meta.mode() & 0o777), (0, 0o600), "{what}");
            assert!(meta.len() > 10, "{what}");
            assert_eq!(fs::read(shared.path("x.kept")).unwrap(), b"theirs\n", "{what}");
            fs::remove_file(&output).unwrap();
            fs::remove_file(shared.path("x.kept")).unwrap();
        }
    }
}

/// Sockets, created folders, scripts, and a library that root is told to load.
#[test]
fn no_socket_folder_or_library_is_made_behind_a_link_of_another_user() {
    let all = require!(Shared::all());
    for shared in &all {
        let (only, printed) = (shared.dir.path().join("only"), shared.dir.path().join("printed"));
        fs::create_dir(&only).unwrap();
        let stale = only.join("stale");
        drop(UnixListener::bind(&stale).unwrap());
        let socket = fs::symlink_metadata(&stale).unwrap().ino();
        shared.nobody("ln -s \"${2%/*}/only\" \"$1\"", &shared.path("link"));
        let at = |name: &str| shared.path("link").join(name).to_str().unwrap().to_owned();
        let (stale, new) = (at("stale"), at("new"));
        fs::write(&printed, "TAP version 13\nok 1 - a\n1..1\n").unwrap();
        let module = shared.dir.path().join("module");
        let (printed, module) = (printed.to_str().unwrap(), module.to_str().unwrap());
        let tap = ["mtp", "host", "--from", "tap"];
        let with_log = shared.dir.path().join("with-log");
        let script = format!(
            "#!/bin/sh\nexec '{}' mtp host --from tap --diagnostic --diagnostic-output-directory '{new}' \"$@\" -- cat '{printed}'\n",
            env!("CARGO_BIN_EXE_runtap")
        );
        fs::write(&with_log, script).unwrap();
        fs::set_permissions(&with_log, fs::Permissions::from_mode(0o700)).unwrap();
        runtap([&tap[..], &["--write-module", module, "--", "cat", printed]].concat()).expect_code(0);
        let (by_output, by_socket) = ("link is a link of user 65534", "belongs to another user");
        for (words, code, why) in [
            (&["jvm", "agent", "-o", &new][..], 2, by_output),
            (&["jvm", "hq", "--listen", "127.0.0.1:0", "--record", &new, "--duration", "1s"], 2, by_output),
            (&["mtp", "host", "--from", "tap", "--write-module", &new, "--", "cat", printed], 2, by_output),
            (&["test", "--history", &new, module], 0, by_output),
            (&["test", "--no-history", with_log.to_str().unwrap()], 1, by_output),
            (
                &["jvm", "hq", "--listen", "127.0.0.1:0", "--control", &stale, "--duration", "1s"],
                1,
                by_socket,
            ),
            (&["record", "--listen", &stale, "-o", printed, "--dport", "/nothing"], 1, by_socket),
            (
                &["router", "server-server", "--ipc-server", &stale, "--tcp-server", "127.0.0.1:0"],
                1,
                by_socket,
            ),
        ] {
            // With umask 0, as in some services.
            let mut verb = Command::new("sh");
            verb.args(["-c", "umask 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_runtap")]).args(words);
            let told = run(verb);
            told.expect_code(code);
            assert!(told.to_string().contains(why), "{told}");
            assert_eq!(names(&only), ["stale"], "{words:?}");
            assert_eq!(fs::symlink_metadata(only.join("stale")).unwrap().ino(), socket, "{words:?}");
        }
        let library = only.join("agent.so");
        let mut agent = Command::new("sh");
        agent.args(["-c", "umask 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_runtap"), "jvm", "agent", "-o"]);
        agent.arg(&library);
        fs::write(&library, "").unwrap();
        fs::set_permissions(&library, fs::Permissions::from_mode(0o666)).unwrap();
        run(agent).expect_code(0);
        assert_eq!(fs::metadata(&library).unwrap().mode() & 0o777, 0o644);
    }
}

/// Predictable names that an earlier version used for incomplete files.
#[test]
fn temporary_names_are_unpredictable() {
    let all = require!(Shared::all());
    let (_folder, recording) = require!(cut());
    for shared in &all {
        let output = shared.path("x");
        // With the process id that the program will have.
        let script = "for it in \"$1.$$.part\" \"$1.$$.nettrace.part\"; do ln -s \"$2\" \"$it\"; chown -h 65534 \"$it\"; \
                      done; out=$1; shift 2; exec \"$@\" -o \"$out\"";
        let ours = command(["convert", recording.to_str().unwrap(), "--to", "folded"]);
        let words: Vec<_> =
            [output.as_os_str(), shared.victim.as_os_str()].into_iter().chain(words(&ours)).collect();
        run(shell(script, words)).expect_code(5);
        shared.is_unhurt();
        let meta = fs::symlink_metadata(&output).unwrap();
        assert!(meta.is_file() && meta.uid() == 0 && meta.mode() & 0o777 == 0o600);
    }
}

/// Links of the current user and of root are followed; another user's only in folders where not every user can create
/// links.
#[test]
fn honest_links_are_followed() {
    let place = require!(ProgramCopy::new());
    let (_folder, recording) = require!(cut());
    let convert = |who: &[&str], output: &Path| {
        let recording = place.path().join("x.nettrace");
        run(place.command(
            who,
            ["convert", recording.to_str().unwrap(), "--to", "folded", "-o", output.to_str().unwrap()],
        ))
    };
    fs::copy(&recording, place.path().join("x.nettrace")).unwrap();
    let theirs = folder();
    std::os::unix::fs::chown(theirs.path(), Some(NOBODY_UID), None).unwrap();
    fs::set_permissions(theirs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let real = theirs.path().join("real");
    // Links of root are followed by every user.
    let link = theirs.path().join("link");
    symlink("./real", &link).unwrap();
    convert(&NOBODY, &link).expect_code(5);
    assert_eq!(fs::metadata(&real).unwrap().uid(), NOBODY_UID);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // The user's own link, in the user's own folder.
    let own = theirs.path().join("own");
    symlink(&link, &own).unwrap();
    std::os::unix::fs::lchown(&own, Some(NOBODY_UID), None).unwrap();
    fs::remove_file(&real).unwrap();
    convert(&NOBODY, &own).expect_code(5);
    assert!(fs::metadata(&real).unwrap().len() > 10);
    // Root rejects both, since the owner of the folder can exchange one for the other.
    let root = ["env"];
    convert(&root, &own).expect_code(2).says("which is not followed");
    convert(&root, &link).expect_code(2).says("which is not followed");
    // In root's own folder links are followed, and data is written to a pipe.
    fs::remove_file(&real).unwrap();
    let (ours, there) = (folder(), theirs.path().join("x"));
    symlink(&there, ours.path().join("link")).unwrap();
    symlink(theirs.path(), ours.path().join("folder")).unwrap();
    convert(&root, &ours.path().join("link")).expect_code(5);
    assert_eq!(fs::metadata(&there).unwrap().uid(), 0, "what root writes is root's");
    convert(&root, &ours.path().join("folder/real")).expect_code(5);
    assert_eq!(fs::metadata(&real).unwrap().uid(), 0);
    for known in ["/dev/null", "/dev/stdout"] {
        let told = convert(&root, Path::new(known));
        told.expect_code(5);
        assert_eq!(told.stdout.len() > 10_000, known == "/dev/stdout", "{told}");
    }
    // Another process may have the file open for reading only.
    let held = ours.path().join("held");
    fs::write(&held, SECRET).unwrap();
    let mut holder = Command::new("sleep").arg("600").stdin(File::open(&held).unwrap()).spawn().unwrap();
    let descriptor = format!("/proc/{}/fd/0", holder.id());
    convert(&root, Path::new(&descriptor)).expect_code(2).says("a descriptor of another process");
    assert_eq!(fs::read(&held).unwrap(), SECRET);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let pipe = ours.path().join("pipe");
    let read = format!("mkfifo '{0}'; cat '{0}' > '{0}.read' & wait", pipe.display());
    let mut reader = shell(&read, []).spawn().unwrap();
    while !pipe.exists() {
        std::thread::yield_now();
    }
    convert(&root, &pipe).expect_code(5);
    assert!(reader.wait().unwrap().success());
    assert!(fs::metadata(pipe.with_extension("read")).unwrap().len() > 10);
}

/// Missing rights to replace a file are reported before anything is recorded.
#[test]
fn an_irreplaceable_file_is_reported_first() {
    let place = require!(ProgramCopy::new());
    let runtime = FakeRuntime::spawn();
    let dir = folder();
    for (folder_mode, mode, why) in
        [(0o1777, 0o666, "not permitted"), (0o777, 0o644, "denied"), (0o755, 0o666, "denied")]
    {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(folder_mode)).unwrap();
        let output = dir.path().join("x");
        fs::write(&output, SECRET).unwrap();
        fs::set_permissions(&output, fs::Permissions::from_mode(mode)).unwrap();
        let port = format!("{},connect", runtime.path().display());
        let trace = place.command(&NOBODY, ["trace", "--dport", &port, "-o", output.to_str().unwrap()]);
        run(trace).expect_code(1).says("can't write").says(why);
        assert_eq!(fs::read(&output).unwrap(), SECRET);
        assert_eq!(names(dir.path()), ["x"]);
    }
    assert_eq!(runtime.requests(), []);
}
