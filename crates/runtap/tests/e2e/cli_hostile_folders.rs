//! Root writes where somebody else may write too: what they have laid there is not followed, not used, and not waited for.
//! In folders where the kernel's `protected_symlinks` and its kin hold and in such where they don't, on a disk and in
//! memory. Only root can lay that out.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use runtap_testkit::{FakeRuntime, Finished, Skip, require, run};
use tempfile::TempDir;

use crate::cli_launch::{DEMO, demo, words};
use crate::cli_outputs::{names, recorded};
use crate::common::{command, folder, shell};
use crate::real_doctor_rights::{NOBODY, Place};

const NOBODYS: u32 = 65534;
const SECRET: &[u8] = b"what root has";

/// A folder that everybody may write to, and a file of root's beside it.
struct Shared {
    dir: TempDir,
    victim: PathBuf,
}

impl Shared {
    /// One of each kind.
    fn all() -> Result<Vec<Self>, Skip> {
        // Whether there is another user to be.
        Place::new()?;
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

    /// Nobody does this there: `$1` is the place of a result, `$2` root's file.
    fn nobody(&self, script: &str, place: &Path) {
        let mut attack = Command::new(NOBODY[0]);
        attack.args(&NOBODY[1..]).args(["sh", "-c", script, "sh"]).arg(place).arg(&self.victim);
        run(attack).expect_code(0);
    }

    #[track_caller]
    fn is_unhurt(&self) {
        assert_eq!(fs::read(&self.victim).unwrap(), SECRET);
        assert_eq!(fs::metadata(&self.victim).unwrap().uid(), 0);
    }
}

/// Every verb that writes a file, with the place where it is to be.
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

/// A recording that is cut, so that every verb has something to write.
fn cut() -> Result<(TempDir, PathBuf), Skip> {
    let (folder, file) = recorded()?;
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    Ok((folder, file))
}

#[test]
fn nothing_of_somebody_else_is_followed_or_waited_for() {
    let all = require!(Shared::all());
    let (folder, recording) = require!(cut());
    let (runtime, demo) = (FakeRuntime::spawn(), demo(&folder, "1"));
    for shared in &all {
        for (script, name) in [
            ("ln -s \"$2\" \"$1\"", "x"),
            ("ln -s \"$2.new\" \"$1\"", "x"),
            ("mkfifo -m 666 \"$1\"", "x"),
            // A folder on the way.
            ("ln -s \"${2%/*}\" \"${1%/*}\"", "folder/victim"),
        ] {
            let output = shared.path(name);
            shared.nobody(script, &output);
            for (what, verb) in verbs(&recording, &runtime, &demo) {
                let refused = with_output(&verb, &output);
                refused.expect_code(2);
                let why = if what == "dump" && script.starts_with("mkfifo") {
                    "no ordinary file"
                } else {
                    "of user 65534"
                };
                refused.says(why);
                shared.is_unhurt();
            }
            fs::remove_file(shared.path(name.split('/').next().unwrap())).unwrap();
        }
        assert!(!shared.victim.with_extension("new").exists());
        assert_eq!(names(&shared.path("")), [] as [&str; 0]);
    }
    assert_eq!(runtime.requests(), [], "whoever is to be dumped is asked nothing");
}

/// A file of somebody else has its own name for it too, and an open descriptor.
#[test]
fn a_file_of_somebody_else_is_replaced_not_used() {
    let all = require!(Shared::all());
    let (folder, recording) = require!(cut());
    let (runtime, demo) = (FakeRuntime::spawn(), demo(&folder, "1"));
    for shared in &all {
        for (what, verb) in verbs(&recording, &runtime, &demo) {
            if what == "dump" {
                // It writes nothing here: `cli_hostile_dumps` has those that do.
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

/// The names that it once used for what is not whole yet.
#[test]
fn no_name_is_foreseen() {
    let all = require!(Shared::all());
    let (_folder, recording) = require!(cut());
    for shared in &all {
        let output = shared.path("x");
        // With the process id that the program is going to have.
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

/// Links of one's own, and of root, lead where they lead; another user's do where not everybody may lay one.
#[test]
fn honest_links_are_followed() {
    let place = require!(Place::new());
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
    std::os::unix::fs::chown(theirs.path(), Some(NOBODYS), None).unwrap();
    fs::set_permissions(theirs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let real = theirs.path().join("real");
    // Root's links are everybody's.
    let link = theirs.path().join("link");
    symlink("./real", &link).unwrap();
    convert(&NOBODY, &link).expect_code(5);
    assert_eq!(fs::metadata(&real).unwrap().uid(), NOBODYS);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    // Its own, and in a folder of its own.
    let own = theirs.path().join("own");
    symlink(&link, &own).unwrap();
    std::os::unix::fs::lchown(&own, Some(NOBODYS), None).unwrap();
    fs::remove_file(&real).unwrap();
    convert(&NOBODY, &own).expect_code(5);
    assert!(fs::metadata(&real).unwrap().len() > 10);
    // For root it may lead anywhere.
    let root = ["env"];
    convert(&root, &own).expect_code(2).says("which is not followed");
    convert(&root, &link).expect_code(5);
    assert_eq!(fs::metadata(&real).unwrap().uid(), 0, "what root writes is root's");
}

/// Who may not replace what is there learns it before anything is recorded.
#[test]
fn what_may_not_be_replaced_is_told_first() {
    let place = require!(Place::new());
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
