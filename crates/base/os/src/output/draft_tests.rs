//! Paths that lead somewhere, and files in the making. What another user can do to them is in the end-to-end tests.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::Draft;
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
    let draft = Draft::of(path).unwrap();
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
fn links_of_our_own_lead_where_they_lead() {
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
        // From where the link leads, not from where it lies.
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
fn what_leads_nowhere_is_told() {
    let folder = folder();
    let at = |path: &str| folder.path().join(path);
    symlink("b", at("a")).unwrap();
    symlink("a", at("b")).unwrap();
    fs::write(at("file"), "").unwrap();
    // Each C library has its own words for it.
    let in_a_circle = std::io::Error::from(rustix::io::Errno::LOOP).to_string();
    for (path, why) in [
        ("a", in_a_circle.as_str()),
        ("a/x", in_a_circle.as_str()),
        ("nowhere/x", "there is no folder"),
        ("file/x", "is no folder"),
        (".", "Is a directory"),
        ("..", "Is a directory"),
    ] {
        let error = told(&Draft::of(&at(path)).unwrap_err());
        assert!(error.starts_with("can't write ") && error.contains(why), "{path}: {error}");
    }
    assert_eq!(entries(&folder), 3);
}

/// Standard output, for one, under whatever name.
#[test]
fn open_files_and_devices_are_written_to_as_they_are() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"what was there before").unwrap();
    let draft = Draft::of(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).unwrap();
    assert!(!draft.is_file());
    let (mut out, _) = draft.appear().unwrap();
    out.write_all(b"new").unwrap();
    let mut text = String::new();
    std::io::Seek::rewind(&mut file).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "new");
    assert!(!Draft::of(Path::new("/dev/null")).unwrap().is_file());
}

#[test]
fn a_file_is_private_and_there_only_when_it_is_whole() {
    let folder = folder();
    let path = folder.path().join("x");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let draft = Draft::of(&path).unwrap();
    let place = draft.place();
    assert_eq!((mode(&place), place.parent()), (0o600, Some(folder.path())));
    draft.file().write_all(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    draft.appear_whole().unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o640));
    assert!(!place.exists());
    // Whoever has another name for it may have chosen its mode.
    fs::hard_link(&path, folder.path().join("kept")).unwrap();
    write(&path, "newer");
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("newer", 0o600));
    assert_eq!(
        fs::read_to_string(folder.path().join("kept")).unwrap(),
        "new",
        "its other name keeps what it had"
    );
    write(&folder.path().join("y"), "");
    assert_eq!(mode(&folder.path().join("y")), 0o600);
}

#[test]
fn a_dropped_one_is_gone_and_nothing_else() {
    let folder = folder();
    let draft = Draft::of(&folder.path().join("x")).unwrap();
    assert_eq!(entries(&folder), 1);
    drop(draft);
    assert_eq!(entries(&folder), 0);
    // Somebody has put a file of theirs there.
    let draft = Draft::of(&folder.path().join("x")).unwrap();
    let place = draft.place();
    fs::remove_file(&place).unwrap();
    fs::write(&place, "theirs").unwrap();
    drop(draft);
    assert_eq!(fs::read_to_string(&place).unwrap(), "theirs");
}

/// Who owns the folder can do that. It is noticed.
#[test]
fn an_exchanged_one_is_not_taken_for_ours() {
    let folder = folder();
    let draft = Draft::of(&folder.path().join("x")).unwrap();
    let place = draft.place();
    fs::remove_file(&place).unwrap();
    fs::write(&place, "theirs").unwrap();
    let error = told(&draft.appear_whole().unwrap_err());
    assert!(error.ends_with("somebody else has put another file in its place"), "{error}");
}

#[test]
fn a_name_of_our_own_takes_nothing_that_is_there() {
    let folder = folder();
    let at = |n| folder.path().join(format!("x{n}"));
    fs::write(at(1), "precious").unwrap();
    // Not even one that leads nowhere is free.
    symlink("nowhere", at(2)).unwrap();
    let draft = Draft::within(folder.path()).unwrap();
    let (_file, path) = draft.settle(at).unwrap();
    assert_eq!(path, at(3));
    assert_eq!(fs::read_to_string(at(1)).unwrap(), "precious");
    assert!(fs::symlink_metadata(at(2)).unwrap().is_symlink());
    assert_eq!((entries(&folder), mode(&at(3))), (3, 0o600));
}

#[test]
fn the_longest_name_has_room() {
    let folder = folder();
    write(&folder.path().join("x".repeat(255)), "whole");
    assert!(Draft::of(&folder.path().join("x".repeat(256))).is_err());
    assert_eq!(entries(&folder), 1);
}

#[test]
fn companions_go_the_same_way() {
    let folder = folder();
    let draft = Draft::of(&folder.path().join("x")).unwrap();
    let mut beside = draft.companion(".json").unwrap();
    assert_eq!(beside.place().as_os_str(), format!("{}.json", draft.place().display()).as_str());
    draft.appear().unwrap();
    beside.name(folder.path().join("x.json"));
    beside.appear_whole().unwrap();
    assert!(folder.path().join("x.json").is_file());
    assert_eq!(entries(&folder), 2);
}

/// What has the name of a file in the making by then is not given the name of the result.
#[test]
fn an_exchanged_file_replaces_nothing() {
    let folder = folder();
    let (to, other) = (folder.path().join("result"), folder.path().join("other"));
    fs::write(&to, "what was there").unwrap();
    fs::write(&other, "somebody else's").unwrap();
    let draft = Draft::of(&to).unwrap();
    draft.file().write_all(b"ours").unwrap();
    let place = draft.place();
    fs::remove_file(&place).unwrap();
    symlink(&other, &place).unwrap();
    let error = draft.appear_whole().unwrap_err();
    assert!(told(&error).contains("somebody else"), "{error}");
    assert_eq!(fs::read_to_string(&to).unwrap(), "what was there");
    assert!(fs::symlink_metadata(&to).unwrap().is_file());
}

/// The name of a file that is being written to can't be taken until it is closed.
#[test]
fn a_file_that_is_being_written_is_not_replaced() {
    let folder = folder();
    let path = folder.path().join("recording");
    let late = Draft::of(&path).unwrap();
    let (writing, _) = Draft::of(&path).unwrap().appear().unwrap();
    let by_whom = if cfg!(target_os = "linux") {
        format!("process {} is writing to it", std::process::id())
    } else {
        "another process is writing to it".to_owned()
    };
    for error in [Draft::of(&path).unwrap_err(), late.appear().unwrap_err()] {
        assert!(told(&error).contains(&by_whom), "{}", told(&error));
        assert!(error.cause.is_refusal() && error.cause.advice().is_some());
    }
    assert_eq!(entries(&folder), 1);
    drop(writing);
    Draft::of(&path).unwrap().appear().unwrap();
}

/// Any reader of a file can lock it; that must not keep its owner from replacing it.
#[cfg(target_os = "linux")]
#[test]
fn a_lock_of_somebody_who_only_reads_does_not_count() {
    let folder = folder();
    let path = folder.path().join("recording");
    fs::write(&path, "old").unwrap();
    let reading = fs::File::open(&path).unwrap();
    reading.try_lock().unwrap();
    Draft::of(&path).unwrap().appear().unwrap();
}

#[test]
fn what_is_written_as_it_is_stays_when_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "a longer text that was there before").unwrap();
    let open = fs::File::options().read(true).write(true).open(&path).unwrap();
    let draft = Draft::of(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd()))).unwrap();
    assert!(!draft.is_file());
    draft.file().write_all(b"new").unwrap();
    draft.appear_whole().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}
