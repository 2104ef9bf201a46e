//! Whose the name of a socket is: what others can do to it, how it is taken from a dead socket, and what becomes of it at
//! the end.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use runtap_testkit::Skip;
use runtap_transport::{BindError, BindOptions, Exposure, Folder, Listener};
use tempfile::TempDir;

const NOBODY: u32 = 65_534;

fn folder(mode: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), mode);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn exposure(path: &Path) -> Exposure {
    Folder::open(path).unwrap().exposure()
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        Skip::because("only root can give files to another user").report();
    }
    root
}

#[test]
fn what_others_can_do_is_told_by_everything_on_the_way() {
    let top = folder(0o755);
    let below = top.path().join("below");
    fs::create_dir(&below).unwrap();
    let of = |of_top, of_below| {
        set_mode(top.path(), of_top);
        set_mode(&below, of_below);
        exposure(&below)
    };
    // The temporary folder itself is shared or private.
    assert_eq!(of(0o700, 0o755), Exposure::Private);
    assert_eq!(of(0o1777, 0o711), Exposure::Private);
    for shared in [0o1777, 0o1770, 0o1773] {
        assert_eq!(of(0o755, shared), Exposure::Shared, "{shared:o}");
    }
    for (of_top, of_below) in
        [(0o777, 0o700), (0o755, 0o777), (0o755, 0o775), (0o770, 0o1777), (0o702, 0o700)]
    {
        assert_eq!(of(of_top, of_below), Exposure::Open, "{of_top:o} {of_below:o}");
    }
    set_mode(top.path(), 0o755);
    set_mode(&below, 0o755);
    // What a link leads to, by the way that it leads.
    let (way, link) = (top.path().join("way"), top.path().join("link"));
    fs::create_dir(&way).unwrap();
    symlink(&below, way.join("to")).unwrap();
    symlink("way/../way/to", &link).unwrap();
    assert_eq!(exposure(&link), Exposure::Private);
    set_mode(&way, 0o777);
    assert_eq!(exposure(&link), Exposure::Open);
    assert!(!Folder::open(&link).unwrap().is_behind_foreign_link());
}

#[test]
fn folders_and_links_of_others_are_open() {
    if !is_root() {
        return;
    }
    let top = folder(0o1777);
    let theirs = top.path().join("theirs");
    let ours = top.path().join("ours");
    let link = top.path().join("link");
    for folder in [&theirs, &ours] {
        fs::create_dir(folder).unwrap();
    }
    symlink(&ours, &link).unwrap();
    assert_eq!(exposure(&link), Exposure::Private);
    for path in [&theirs, &link] {
        lchown(path, Some(NOBODY), None).unwrap();
        assert_eq!(exposure(path), Exposure::Open, "{}", path.display());
    }
    assert!(Folder::open(&link).unwrap().is_behind_foreign_link());
    assert!(!Folder::open(&theirs).unwrap().is_behind_foreign_link());
    // A folder of this user below one of the other user.
    let below = theirs.join("ours");
    fs::create_dir(&below).unwrap();
    assert_eq!(exposure(&below), Exposure::Open);
}

#[test]
fn a_private_folder_is_created_where_no_other_user_can_replace_it() {
    for (mode, passable) in [(0o755, true), (0o1777, true), (0o700, false)] {
        let place = folder(mode);
        let place = Folder::open(place.path()).unwrap();
        let made = [(); 2].map(|()| place.make_private("runtap-", passable).unwrap());
        assert_ne!(made[0].path(), made[1].path());
        for made in made {
            let meta = fs::symlink_metadata(made.path()).unwrap();
            assert_eq!(meta.mode() & 0o7777, if passable { 0o711 } else { 0o700 });
            assert_eq!(made.exposure(), Exposure::Private);
            assert_eq!(exposure(made.path()), Exposure::Private);
            let name = made.path().file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with("runtap-") && name.len() == 23, "{name}");
        }
    }
    let place = folder(0o777);
    let refused = Folder::open(place.path()).unwrap().make_private("runtap-", false).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// What is left at the end, in each kind of folder.
#[tokio::test]
async fn a_name_is_kept_where_others_could_take_it() {
    for (mode, keeps, stays) in [
        (0o755, true, false),
        (0o1777, true, true),
        (0o777, true, false),
        (0o755, false, false),
        (0o1777, false, false),
    ] {
        let place = folder(mode);
        let path = place.path().join("s");
        let options = BindOptions::default().replace_stale(true).keeps_name(keeps);
        for everybody in [false, true] {
            let listener = Listener::bind(&path, options.everybody(everybody)).unwrap();
            UnixStream::connect(&path).unwrap();
            listener.remove_file();
            drop(listener);
            assert_eq!(path.exists(), stays, "{mode:o} {keeps}");
            assert!(UnixStream::connect(&path).is_err());
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), usize::from(stays));
    }
}

/// The owner of the link could choose where the socket is created, and which stale socket is replaced.
#[tokio::test]
async fn no_socket_is_bound_behind_a_link_of_another_user() {
    if !is_root() {
        return;
    }
    let (shared, ours) = (folder(0o1777), folder(0o755));
    let link = shared.path().join("link");
    symlink(ours.path(), &link).unwrap();
    drop(UnixListener::bind(ours.path().join("s")).unwrap());
    let stale = fs::metadata(ours.path().join("s")).unwrap().ino();
    lchown(&link, Some(NOBODY), None).unwrap();
    for keeps in [false, true] {
        let options = BindOptions::default().replace_stale(true).keeps_name(keeps);
        for name in ["s", "new"] {
            let refused = Listener::bind(link.join(name), options).unwrap_err().to_string();
            assert!(refused.contains("a symbolic link on the path belongs to another user"), "{refused}");
        }
    }
    assert_eq!(fs::metadata(ours.path().join("s")).unwrap().ino(), stale);
    assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 1);
    lchown(&link, Some(0), None).unwrap();
    drop(Listener::bind(link.join("s"), BindOptions::default().replace_stale(true)).unwrap());
}

/// The name of another user's program stays that user's.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_kept_name_is_given_back() {
    if !is_root() {
        return;
    }
    let place = folder(0o1777);
    let path = place.path().join("s");
    let options = BindOptions::default().everybody(true).stale_of(NOBODY).keeps_name(true);
    for _ in 0..2 {
        let listener = Listener::bind(&path, options).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), 0);
        drop(listener);
        assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), NOBODY);
    }
}

/// Another thread of this process tries to take the name while it passes from socket to socket. The name must never be free.
#[tokio::test]
async fn a_stale_socket_is_replaced_without_a_gap() {
    let place = folder(0o1777);
    let path = place.path().join("s");
    drop(UnixListener::bind(&path).unwrap());
    let over = AtomicBool::new(false);
    let options = BindOptions::default().replace_stale(true).keeps_name(true);
    thread::scope(|scope| {
        let squatter = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if UnixListener::bind(&path).is_ok() {
                    return true;
                }
            }
            false
        });
        let replaced: Vec<_> = (0..300)
            .map(|n| {
                let listener = Listener::bind(&path, options.everybody(n % 2 == 0))?;
                let mode = fs::symlink_metadata(&path).map(|meta| meta.mode() & 0o7777);
                UnixStream::connect(&path).map_err(|source| BindError::Io { path: path.clone(), source })?;
                drop(listener);
                Ok(mode.ok())
            })
            .collect::<Result<_, BindError>>()
            .unwrap_or_default();
        over.store(true, Ordering::Relaxed);
        assert!(!squatter.join().unwrap(), "the name was free");
        assert_eq!(replaced.len(), 300);
        assert!(replaced.chunks(2).all(|pair| pair == [Some(0o666), Some(0o600)]));
    });
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[tokio::test]
async fn a_socket_is_passed_on_with_its_file() {
    let place = folder(0o755);
    let path = place.path().join("s");
    let state = |path: &PathBuf| fs::symlink_metadata(path).map(|meta| (meta.ino(), meta.mode())).unwrap();
    let first = Listener::bind(&path, BindOptions::default().everybody(true)).unwrap();
    let before = state(&path);
    // Waits in the queue of the socket, which the second listener takes over.
    let _waiting = UnixStream::connect(&path).unwrap();
    let second = Listener::passed_on(first.socket().unwrap(), &path, BindOptions::default()).unwrap();
    first.leave_file();
    drop(first);
    assert_eq!(state(&path), before);
    second.accept().await.unwrap();
    drop(second);
    assert!(!path.exists());

    let passed = |socket: OwnedFd| Listener::passed_on(socket, &path, BindOptions::default()).map(drop);
    let (stream, _other) = UnixStream::pair().unwrap();
    let kinds: [(io::Result<()>, _); 2] = [
        (passed(fs::File::open("/dev/null").unwrap().into()), "a file"),
        (passed(stream.into()), "a connection"),
    ];
    for (outcome, what) in kinds {
        assert!(outcome.is_err(), "{what}");
    }
}
