//! Any directories, files and links as the root of a container: examining its process never accesses a file outside of
//! the container, whatever the links are, and does not panic. Input: a byte for its TMPDIR, then three for each entry:
//! kind, name, and link target.
#![no_main]

use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::{Path, PathBuf};

use runtap_discover::{Options, System};
use runtap_fuzz::confined::Root;

/// The content of a file that must not be read from the container.
const SECRET: &[u8] = b"outside";
/// The container's process has id 1 there, and start time 900.
const SOCKET: &str = "dotnet-diagnostic-1-900-socket";
const NAMES: [&str; 8] = [
    "tmp",
    "a",
    "a/b",
    SOCKET,
    "tmp/dotnet-diagnostic-1-900-socket",
    "tmp/hsperfdata_x",
    "tmp/hsperfdata_x/1",
    "tmp/x",
];
const TARGETS: [&str; 12] = [
    "/",
    "..",
    "../..",
    "../../../../../../..",
    "/tmp",
    "/a",
    "a",
    "/a/b",
    "b",
    "../../../outside",
    "/proc/self/root",
    "OUTSIDE",
];
const TMPDIRS: [&str; 8] = ["", "/tmp", "/a", "/a/../tmp/", "tmp", "a/b", "../..", "/proc/self/cwd"];

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((first, rest)) = input.split_first() else { return };
    let dir = tempfile::tempdir().expect("a temporary folder");
    let outside = dir.path().join("outside");
    lay_out(dir.path(), TMPDIRS[usize::from(*first) % TMPDIRS.len()], &outside);
    let inside = Root::open(&dir.path().join("proc/42/root")).expect("it was laid out");
    for thing in rest.chunks_exact(3).take(24) {
        make(&inside, thing[0], NAMES[usize::from(thing[1]) % NAMES.len()], thing[2], &outside);
    }
    look(&System::at(dir.path(), 0), &outside);
});

/// Creates a `/proc` with the current process and process 42, which is in other namespaces, and files outside of the
/// container.
fn lay_out(root: &Path, tmpdir: &str, outside: &Path) {
    let put = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    };
    for (process, namespace) in [("self", "1"), ("42", "2")] {
        fs::create_dir_all(root.join(format!("proc/{process}/ns"))).expect("it can be made");
        for kind in ["mnt", "pid", "time"] {
            let target = format!("{kind}:[{}]", if kind == "time" { "1" } else { namespace });
            symlink(target, root.join(format!("proc/{process}/ns/{kind}"))).expect("it can be made");
        }
    }
    put("proc/net/unix", "Num\n");
    put("proc/42/stat", &format!("42 (x) S 1{} 900 0 0\n", " 0".repeat(17)));
    put("proc/42/status", "State:\tS (x)\nTgid:\t42\nUid:\t0\t0\t0\t0\nNSpid:\t42\t1\n");
    put("proc/42/environ", &format!("TMPDIR={tmpdir}\0"));
    put("proc/42/maps", "7f00-7f01 r-xp 0 08:01 1 /tmp/x/libcoreclr.so\n");
    fs::create_dir_all(root.join("proc/42/root/tmp")).expect("it can be made");
    // The kernel's link leads to a directory, not to a name that could be reused.
    symlink("root", root.join("proc/42/cwd")).expect("it can be made");
    fs::create_dir_all(outside.join("hsperfdata_x")).expect("it can be made");
    fs::create_dir_all(root.join("tmp")).expect("it can be made");
    for file in ["secret", "createdump", "x", "hsperfdata_x/1"] {
        fs::write(outside.join(file), SECRET).expect("it can be written");
    }
}

/// Creates one entry, unless that fails because the name exists. Names go through existing links, but never outside of
/// the container.
fn make(inside: &Root, what: u8, name: &str, target: u8, outside: &Path) {
    let path = Path::new(name);
    let target = TARGETS[usize::from(target) % TARGETS.len()];
    let target = if target == "OUTSIDE" { outside.to_owned() } else { PathBuf::from(target) };
    let _ = match what % 5 {
        0 => inside.create_dir_all(path),
        1 => inside.write(path, b"inside"),
        2 => inside.bind(path),
        3 => inside.remove_file(path).or_else(|_| inside.remove_dir_all(path)),
        // Replaces an existing entry.
        _ => inside
            .remove_dir(path)
            .or_else(|_| inside.remove_file(path))
            .or(Ok(()))
            .and_then(|()| inside.symlink(&target, path)),
    };
}

fn look(system: &System, outside: &Path) {
    for process in system.processes(Options::default()) {
        // A socket of another directory could be found only through a link to the outside.
        assert!(process.sockets.iter().all(|socket| !socket.path.starts_with(outside)));
    }
    let _ = (system.process(42), system.machine());
    let facts = system.facts(42);
    assert!(facts.sockets.iter().all(|socket| socket.name.pid == 1));
    let Ok(view) = system.file_view(42) else { return };
    for path in NAMES.into_iter().chain(TARGETS).chain(TMPDIRS).filter(|path| *path != "OUTSIDE") {
        for path in [Path::new(path).to_owned(), Path::new("/").join(path), Path::new(path).join("secret")] {
            if let Ok(file) = view.open(&path)
                && file.metadata().is_ok_and(|meta| meta.is_file() && !meta.file_type().is_fifo())
            {
                let mut text = Vec::new();
                file.take(64).read_to_end(&mut text).expect("a file can be read");
                assert_ne!(text, SECRET, "{}", path.display());
            }
            for folder in [view.folder(&path), view.passable_folder(&path).map(|(folder, _)| folder)] {
                assert!(
                    folder.is_ok_and(|folder| folder.stat("secret".as_ref()).is_ok()).eq(&false),
                    "{}",
                    path.display()
                );
            }
        }
    }
}
