//! Tests of path resolution and pending files. The end-to-end tests cover what other users can do to them.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::PendingFile;
use crate::output::Error;

fn told(error: &Error) -> String {
    format!("{error}: {}", error.cause)
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes a file by this path.
#[track_caller]
fn write(path: &Path, text: &str) {
    let draft = PendingFile::of(path).unwrap();
    draft.file().write_all(text.as_bytes()).unwrap();
    assert_eq!(draft.appear_whole().unwrap(), path);
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn entries(folder: &TempDir) -> usize {
    fs::read_dir(folder.path()).unwrap().count()
}

#[test]
fn symbolic_links_of_this_user_are_followed() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("a/b")).unwrap();
    symlink("a/b", at("relative")).unwrap();
    symlink(at("a"), at("absolute")).unwrap();
    symlink("../../file", at("a/b/up")).unwrap();
    symlink("relative/up", at("chain")).unwrap();
    symlink("a/./b/../new", at("to-nothing")).unwrap();
    for (path, real) in [
        ("relative/x", "a/b/x"),
        // Relative to the target of the link, not to the link.
        ("relative/../y", "a/y"),
        ("absolute/b/z", "a/b/z"),
        ("a/b/up", "file"),
        ("chain", "file"),
        ("to-nothing", "a/new"),
    ] {
        write(&at(path), path);
        assert_eq!(fs::read_to_string(at(real)).unwrap(), path);
        assert!(fs::symlink_metadata(at(real)).unwrap().is_file());
    }
    assert!(fs::symlink_metadata(at("chain")).unwrap().is_symlink());
}

#[test]
fn invalid_paths_are_reported() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    fs::write(at("file"), "").unwrap();
    // The text depends on the C library.
    let in_a_circle = std::io::Error::from(rustix::io::Errno::LOOP).to_string();
    for (path, why) in [
        ("a", in_a_circle.as_str()),
        ("a/x", in_a_circle.as_str()),
        ("nowhere/x", "does not exist"),
        ("file/x", "is not a directory"),
        (".", "Is a directory"),
        ("..", "Is a directory"),
    ] {
        let error = told(&PendingFile::of(&at(path)).unwrap_err());
        assert!(error.starts_with("can't write ") && error.contains(why), "{path}: {error}");
    }
    assert_eq!(entries(&folder), 3);
}

/// For example, standard output.
#[test]
fn open_files_and_devices_are_written_to_as_they_are() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"what was there before").unwrap();
    let draft = PendingFile::of(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).unwrap();
    assert!(!draft.is_file());
    let (mut out, _) = draft.appear().unwrap();
    out.write_all(b"new").unwrap();
    let mut text = String::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "new");
    assert!(!PendingFile::of(Path::new("/dev/null")).unwrap().is_file());
}

#[test]
fn a_file_is_private_and_appears_only_when_complete() {
    let folder = folder();
    let path = folder.path().join("x");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let draft = PendingFile::of(&path).unwrap();
    let place = draft.place();
    assert_eq!((mode(&place), place.parent()), (0o600, Some(folder.path())));
    draft.file().write_all(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    draft.appear_whole().unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o640));
    assert!(!place.exists());
    // A hard link may have been created by another user, who chose the mode.
    fs::hard_link(&path, folder.path().join("kept")).unwrap();
    write(&path, "newer");
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("newer", 0o600));
    assert_eq!(
        fs::read_to_string(folder.path().join("kept")).unwrap(),
        "new",
        "its other name keeps its content"
    );
    write(&folder.path().join("y"), "");
    assert_eq!(mode(&folder.path().join("y")), 0o600);
}

#[test]
fn dropping_a_pending_file_deletes_it_and_nothing_else() {
    let folder = folder();
    let draft = PendingFile::of(&folder.path().join("x")).unwrap();
    assert_eq!(entries(&folder), 1);
    drop(draft);
    assert_eq!(entries(&folder), 0);
    // A file of another process in its place is kept.
    let draft = PendingFile::of(&folder.path().join("x")).unwrap();
    let place = draft.place();
    fs::remove_file(&place).unwrap();
    fs::write(&place, "theirs").unwrap();
    drop(draft);
    assert_eq!(fs::read_to_string(&place).unwrap(), "theirs");
}

/// The owner of the directory can exchange files; this must be detected.
#[test]
fn an_exchanged_file_is_rejected() {
    let folder = folder();
    let draft = PendingFile::of(&folder.path().join("x")).unwrap();
    let place = draft.place();
    fs::remove_file(&place).unwrap();
    fs::write(&place, "theirs").unwrap();
    let error = told(&draft.appear_whole().unwrap_err());
    assert!(error.ends_with("another process replaced it while it was being written"), "{error}");
}

#[test]
fn a_generated_name_replaces_nothing() {
    let folder = folder();
    let at = |n| folder.path().join(format!("x{n}"));
    fs::write(at(1), "precious").unwrap();
    // A dangling symbolic link is not free either.
    symlink("nowhere", at(2)).unwrap();
    let draft = PendingFile::within(folder.path()).unwrap();
    let (_file, path) = draft.settle(at).unwrap();
    assert_eq!(path, at(3));
    assert_eq!(fs::read_to_string(at(1)).unwrap(), "precious");
    assert!(fs::symlink_metadata(at(2)).unwrap().is_symlink());
    assert_eq!((entries(&folder), mode(&at(3))), (3, 0o600));
}

#[test]
fn names_of_maximum_length_work() {
    let folder = folder();
    write(&folder.path().join("x".repeat(255)), "whole");
    assert!(PendingFile::of(&folder.path().join("x".repeat(256))).is_err());
    assert_eq!(entries(&folder), 1);
}

#[test]
fn companions_appear_in_the_same_directory() {
    let folder = folder();
    let draft = PendingFile::of(&folder.path().join("x")).unwrap();
    let mut beside = draft.companion(".json").unwrap();
    assert_eq!(beside.place().as_os_str(), format!("{}.json", draft.place().display()).as_str());
    draft.appear().unwrap();
    beside.name(folder.path().join("x.json"));
    beside.appear_whole().unwrap();
    assert!(folder.path().join("x.json").is_file());
    assert_eq!(entries(&folder), 2);
}

/// An exchanged temporary file must not be renamed to the final name.
#[test]
fn an_exchanged_file_replaces_nothing() {
    let folder = folder();
    let (to, other) = (folder.path().join("result"), folder.path().join("other"));
    fs::write(&to, "what was there").unwrap();
    fs::write(&other, "another file").unwrap();
    let draft = PendingFile::of(&to).unwrap();
    draft.file().write_all(b"ours").unwrap();
    let place = draft.place();
    fs::remove_file(&place).unwrap();
    symlink(&other, &place).unwrap();
    let error = draft.appear_whole().unwrap_err();
    assert!(told(&error).contains("another process replaced it"), "{error}");
    assert_eq!(fs::read_to_string(&to).unwrap(), "what was there");
    assert!(fs::symlink_metadata(&to).unwrap().is_file());
}

/// A file that is being written cannot be replaced until it is closed.
#[test]
fn a_file_that_is_being_written_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("recording");
    let late = PendingFile::of(&path).unwrap();
    let (writing, _) = PendingFile::of(&path).unwrap().appear().unwrap();
    let by_whom = if cfg!(target_os = "linux") {
        format!("process {} is writing to it", std::process::id())
    } else {
        "another process is writing to it".to_owned()
    };
    for error in [PendingFile::of(&path).unwrap_err(), late.appear().unwrap_err()] {
        assert!(told(&error).contains(&by_whom), "{}", told(&error));
        assert!(error.cause.is_rejection() && error.cause.advice().is_some());
    }
    assert_eq!(entries(&folder), 1);
    drop(writing);
    PendingFile::of(&path).unwrap().appear().unwrap();
}

/// Any reader of a file can lock it, which must not keep its owner from replacing it.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_of_a_reader_does_not_count() {
    let folder = folder();
    let path = folder.path().join("recording");
    fs::write(&path, "old").unwrap();
    let reading = fs::File::open(&path).unwrap();
    reading.try_lock().unwrap();
    PendingFile::of(&path).unwrap().appear().unwrap();
}

#[test]
fn an_open_file_that_is_written_directly_is_truncated_when_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "a longer text that was there before").unwrap();
    let open = fs::File::options().read(true).write(true).open(&path).unwrap();
    let draft = PendingFile::of(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd()))).unwrap();
    assert!(!draft.is_file());
    draft.file().write_all(b"new").unwrap();
    draft.appear_whole().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}
