//! Translation of paths between this process and another one, on a fake system and in real namespaces.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use runtap_discover::{FileView, System};
use runtap_testkit::{MAKE_ROOT, Skip, require};
use tempfile::TempDir;

/// A process 42 whose root is `/proc/42/root`, below a temporary directory.
struct Fake {
    dir: TempDir,
}

impl Fake {
    fn new() -> Self {
        let fake = Self { dir: tempfile::tempdir().unwrap() };
        for (process, mount) in [("self", "mnt:[1]"), ("42", "mnt:[2]")] {
            fs::create_dir_all(fake.path(format!("proc/{process}/ns"))).unwrap();
            symlink(mount, fake.path(format!("proc/{process}/ns/mnt"))).unwrap();
        }
        fs::create_dir_all(fake.inside("tmp")).unwrap();
        fs::write(fake.path("proc/42/environ"), "A=1\0").unwrap();
        fake
    }

    fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(below)
    }

    fn inside(&self, below: &str) -> PathBuf {
        self.path("proc/42/root").join(below)
    }

    fn view(&self) -> FileView {
        System::at(self.dir.path(), 1000).file_view(42).unwrap()
    }
}

fn text(mut file: fs::File) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn links_are_resolved_in_the_targets_own_root() {
    let fake = Fake::new();
    fs::create_dir_all(fake.inside("run/app")).unwrap();
    fs::create_dir_all(fake.inside("etc")).unwrap();
    fs::create_dir_all(fake.inside("var")).unwrap();
    fs::write(fake.inside("run/app/x"), "theirs").unwrap();
    fs::write(fake.inside("etc/passwd"), "their users").unwrap();
    symlink("/run", fake.inside("var/run")).unwrap();
    symlink("../run/./app", fake.inside("var/rel")).unwrap();
    symlink("/etc/passwd", fake.inside("run/app/absolute")).unwrap();
    symlink("../../../../../../../../etc/passwd", fake.inside("run/app/up")).unwrap();
    symlink("new", fake.inside("run/app/dangling")).unwrap();

    for (path, expected) in [
        ("/run/app/x", "run/app/x"),
        ("/var/run/app/x", "run/app/x"),
        ("/var/rel/x", "run/app/x"),
        ("/var/run/app/../app//./x", "run/app/x"),
        // Local users are not what the target refers to, however it writes the path.
        ("/run/app/absolute", "etc/passwd"),
        ("/run/app/up", "etc/passwd"),
        ("/../../etc/passwd", "etc/passwd"),
        // A path that does not exist yet.
        ("/var/run/none/new.dmp", "run/none/new.dmp"),
        ("/var/run/app/dangling", "run/app/new"),
        ("/", ""),
    ] {
        let opened = fake.view().open(Path::new(path));
        match opened {
            Ok(file) if file.metadata().unwrap().is_file() => {
                assert_eq!(text(file), fs::read_to_string(fake.inside(expected)).unwrap(), "{path}");
            }
            Ok(_) => assert_eq!(path, "/"),
            Err(error) => assert!(
                error.kind() == io::ErrorKind::NotFound && !fake.inside(expected).exists(),
                "{path}: {error}"
            ),
        }
    }
}

#[test]
fn links_in_a_circle_end() {
    let fake = Fake::new();
    symlink("b", fake.inside("a")).unwrap();
    symlink("/a", fake.inside("b")).unwrap();
    assert!(fake.view().open(Path::new("/a")).is_err());
    assert!(fake.view().metadata(Path::new("/b")).is_err());
}

#[test]
fn a_file_is_removed_inside_and_a_link_is_not_followed() {
    let fake = Fake::new();
    for file in ["tmp/one", "tmp/two"] {
        fs::write(fake.inside(file), "").unwrap();
    }
    symlink("/tmp/two", fake.inside("tmp/link")).unwrap();
    symlink("/tmp", fake.inside("t")).unwrap();
    let remove = |path: &Path| fake.view().folder(path).unwrap().remove(path.file_name().unwrap());
    remove(Path::new("/t/one")).unwrap();
    remove(Path::new("/tmp/link")).unwrap();
    assert!(!fake.inside("tmp/one").exists() && fake.inside("tmp/two").exists());
    assert!(fs::symlink_metadata(fake.inside("tmp/link")).is_err());
}

#[test]
fn what_the_target_cannot_see_has_no_path_there() {
    let fake = Fake::new();
    let ours = tempfile::tempdir().unwrap();
    let view = fake.view();
    assert!(view.is_foreign());
    assert_eq!(view.to_target(&ours.path().join("x")).unwrap(), None);
    assert!(view.to_target(&ours.path().join("none/x")).is_err(), "a folder that is nowhere");
    // A local path that is spelled as one of the target's.
    let spelt = fake.inside("tmp/x");
    assert_eq!(view.to_target(&spelt).unwrap(), Some("/tmp/x".into()));

    // The directory is on both sides, according to the list of mounts. A link is enough to represent the mount.
    let shared = fs::canonicalize(ours.path()).unwrap();
    fs::create_dir(fake.inside("volume")).unwrap();
    let mounts = |process: &str, root: &Path, point: &str| {
        let line = format!("1 2 0:77 {} {point} rw - ext4 d rw\n", root.display());
        fs::write(fake.path(format!("proc/{process}/mountinfo")), line).unwrap();
    };
    mounts("self", Path::new("/"), "/");
    mounts("42", &shared, "/volume");
    // Nothing is mounted there, so it is another directory.
    assert_eq!(view.to_target(&shared.join("x")).unwrap(), None);
}

#[test]
fn the_temporary_directory_as_the_target_sees_it() {
    let fake = Fake::new();
    assert_eq!(fake.view().temp_dir().unwrap(), Path::new("/tmp"));
    fs::write(fake.path("proc/42/environ"), "TMPDIR=/var/tmp/\0").unwrap();
    assert_eq!(fake.view().temp_dir().unwrap(), Path::new("/var/tmp"));
    fs::remove_file(fake.path("proc/42/environ")).unwrap();
    assert_eq!(fake.view().temp_dir().unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn the_view_of_this_process_changes_nothing() {
    let view = runtap_discover::file_view(std::process::id()).unwrap();
    assert!(!view.is_foreign());
    assert_eq!(view.shown(Path::new("/none/x")), Path::new("/none/x"));
    assert_eq!(view.to_target(Path::new("/none/x")).unwrap(), Some("/none/x".into()));
    let here = std::env::current_dir().unwrap();
    assert_eq!(view.shown(Path::new("x")), here.join("x"));
    assert_eq!(view.to_target(Path::new("x")).unwrap(), Some(here.join("x")));
    assert!(view.metadata(Path::new("src/lib.rs")).unwrap().is_file());
    assert!(!text(view.open(&here.join("src/lib.rs")).unwrap()).is_empty());
    assert_eq!(runtap_discover::file_view(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
}

/// A shell in its own namespaces. Killed on drop.
struct Contained {
    shell: Child,
    pid: u32,
}

impl Contained {
    /// Runs `script` there and waits for the line `pid N` that it prints.
    fn start(script: &str, arguments: &[&Path]) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-ec", script, "sh"]).args(arguments);
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.trim().strip_prefix("pid ").and_then(|pid| pid.parse().ok());
        Self { pid: pid.unwrap_or_else(|| panic!("the script failed: {line:?}")), shell }
    }

    fn view(&self) -> FileView {
        runtap_discover::file_view(self.pid).unwrap()
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Only root can create a mount namespace without a user namespace.
fn root() -> Result<(), Skip> {
    let root = rustix::process::geteuid().is_root();
    root.then_some(()).ok_or_else(|| Skip::because("only root can make namespaces and look into them"))
}

#[test]
fn a_volume_of_a_real_mount_namespace() {
    require!(root());
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    for folder in ["shared/deep", "hidden", "inside"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    fs::write(dir.join("one file"), "one").unwrap();
    fs::write(dir.join("hidden/under"), "ours").unwrap();
    symlink(dir.join("hidden/under"), dir.join("shared/link")).unwrap();
    let script = r#"
        cd "$1"
        mount -t tmpfs none hidden
        mkdir inside/volume
        mount --bind shared inside/volume
        touch inside/file
        mount --bind 'one file' inside/file
        cd inside/volume
        echo pid $$
        read line"#;
    let target = Contained::start(script, &[&dir]);
    let view = target.view();
    assert!(view.is_foreign());

    let told = |path: &str| view.to_target(&dir.join(path)).unwrap();
    assert_eq!(told("shared/new"), Some(dir.join("shared/new")), "both see it by the same path");
    assert_eq!(told("one file"), Some(dir.join("one file")));
    assert_eq!(told("hidden/new"), None, "another file system lies over it");
    assert_eq!(told("hidden/under"), None);
    assert_eq!(told("shared/link"), None, "the link leads there");
    // The working directory of the target, by its path there.
    let deep = view.metadata(Path::new("deep")).unwrap();
    assert_eq!(deep.ino(), fs::metadata(dir.join("shared/deep")).unwrap().ino());
    let shown = view.shown(Path::new("deep"));
    assert!(shown.ends_with("inside/volume/deep"), "{shown:?}");

    // A file that the target creates in a file system of its own.
    fs::write(view.shown(&dir.join("hidden/made")), "theirs").unwrap();
    assert!(!dir.join("hidden/made").exists());
    assert_eq!(text(view.open(&dir.join("hidden/made")).unwrap()), "theirs");
    view.folder(&dir.join("hidden/made")).unwrap().remove("made".as_ref()).unwrap();
    assert!(view.open(&dir.join("hidden/made")).is_err());
}

#[test]
fn another_root_of_a_real_process() {
    require!(root());
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let root = dir.join("root");
    fs::create_dir_all(root.join("data")).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::create_dir_all(dir.join("volume/deep")).unwrap();
    fs::write(root.join("etc/passwd"), "theirs").unwrap();
    symlink("/etc/passwd", root.join("data/users")).unwrap();
    let script = MAKE_ROOT.to_owned()
        + r#"
            mkdir "$1/mnt"
            mount --bind "$2" "$1/mnt"
            exec chroot "$1" sh -c 'echo pid $$; cd /mnt; read line'"#;
    let target = Contained::start(&script, &[&root, &dir.join("volume")]);
    let view = target.view();
    assert!(view.is_foreign());
    // Mounts there have other paths than here.
    assert_eq!(view.to_target(&dir.join("volume/deep/x")).unwrap(), Some("/mnt/deep/x".into()));
    assert_eq!(view.to_target(&dir.join("volume")).unwrap(), Some("/mnt".into()));
    assert_eq!(view.to_target(&dir.join("x")).unwrap(), None, "outside of its root");
    assert_eq!(text(view.open(Path::new("/data/users")).unwrap()), "theirs");
}

/// The directory is created as its user, with that user's rights, and belongs to the user from the start.
#[test]
fn a_private_folder_is_created_by_its_user() {
    const NOBODY: u32 = 65534;
    require!(root());
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&dir, 0o755);
    let mut nobody = Command::new("setpriv");
    nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", "echo up; read line"]);
    let mut nobody = nobody.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(nobody.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let view = runtap_discover::file_view(nobody.id()).unwrap();
    for (name, mode, owner) in [("theirs", 0o755, NOBODY), ("everybodys", 0o1777, 0), ("roots", 0o755, 0)] {
        let place = dir.join(name);
        fs::create_dir(&place).unwrap();
        set(&place, mode);
        std::os::unix::fs::chown(&place, Some(owner), Some(owner)).unwrap();
        let made = view.make_private_folder(&place.join("new"), NOBODY);
        if name == "roots" {
            assert_eq!(made.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            assert!(!place.join("new").exists());
        } else {
            made.unwrap();
            let meta = fs::metadata(place.join("new")).unwrap();
            assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o7777), (NOBODY, NOBODY, 0o700));
        }
    }
    assert!(rustix::process::geteuid().is_root(), "only one thread acted as another user");
    nobody.kill().unwrap();
    nobody.wait().unwrap();
}
