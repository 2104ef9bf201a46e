//! Targets that report a written dump but have written something else: endless files, files of other users, or false
//! sizes. The target is a runtime in this process.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};

use runtap_diag_proto::{CoreDump, ErrorReply};
use runtap_diag_server::Commands;
use runtap_testkit::{FakeRuntime, Finished, Skip, require, run};
use serde_json::Value;

use crate::cli_outputs::names;
use crate::common::{command, folder};
use crate::real_doctor_rights::{NOBODY, ProgramCopy};

/// Writes a dump with this function.
struct Writer<F>(F);

impl<F> fmt::Debug for Writer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl<F: Fn(&Path) + Send + Sync + 'static> Commands for Writer<F> {
    fn dump(&self, dump: &CoreDump) -> Result<(), ErrorReply> {
        (self.0)(&PathBuf::from(dump.path.replace("%%", "%")));
        Ok(())
    }
}

/// Runs `runtap dump --crashreport` on a target with this writer; returns the messages, and whether the dump was
/// copied, as happens for a folder that cannot be expressed in the protocol.
fn dump(
    is_fetched: bool,
    write: impl Fn(&Path) + Send + Sync + 'static,
) -> (Finished, Vec<(String, u64, u64)>) {
    let (tell, told_paths) = mpsc::channel();
    let remembering = move |path: &Path| {
        tell.send(path.to_owned()).unwrap();
        write(path);
    };
    let runtime = FakeRuntime::builder().commands(Arc::new(Writer(remembering))).spawn();
    let folder = folder();
    let name = if is_fetched { OsStr::from_bytes(b"no text \xff") } else { OsStr::new("text") };
    let place = folder.path().join(name);
    fs::create_dir(&place).unwrap();
    let mut dump = command(["dump", "--crashreport", "--format", "json", "--dport"]);
    dump.arg(format!("{},connect", runtime.path().display())).arg("-o").arg(place.join("x.core"));
    let finished = run(dump);
    // A rejected dump stays with the target, which is this process: its folder is in the common temporary folder.
    for theirs in told_paths.try_iter().filter(|_| is_fetched) {
        let private = theirs.parent().unwrap();
        // Does not follow a link that a test has put in its place.
        if fs::symlink_metadata(private).is_ok_and(|meta| meta.is_dir()) {
            let _taken =
                [fs::remove_file(&theirs), fs::remove_file(report_of(&theirs)), fs::remove_dir(private)];
        }
    }
    let mut files = Vec::new();
    // Files that the target has created under the result's name instead of a dump belong to it, and stay.
    for name in names(&place).into_iter().filter(|name| name.starts_with("x.")) {
        let meta = fs::symlink_metadata(place.join(&name)).unwrap();
        assert!(meta.is_file() && meta.mode() & 0o777 == 0o600, "{name}");
        files.push((name, meta.len(), meta.blocks() * 512));
    }
    (finished, files)
}

/// Writes a core of this process with a thread and `memory` bytes, which are a hole.
fn write_core(path: &Path, memory: u64) {
    let me = std::process::id();
    let u64s = |values: &[u64]| values.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let note = |kind: u32, data: &[u8]| {
        let head = [5, u32::try_from(data.len()).unwrap(), kind];
        [&head.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>(), &b"CORE\0\0\0\0"[..], data]
            .concat()
    };
    let process =
        [&[0; 24], &me.to_le_bytes()[..], &[0; 12], b"dotnet\0\0\0\0\0\0\0\0\0\0", &[0; 80]].concat();
    let thread = [&[0; 32], &me.to_le_bytes()[..], &[0; 300]].concat();
    let notes = [note(3, &process), note(1, &thread)].concat();
    let segment = |kind: u32, offset: u64, size: u64| {
        [&kind.to_le_bytes()[..], &[0; 4], &u64s(&[offset, 0, 0, size, size, 1])].concat()
    };
    let (at, len) = (64 + 2 * 56, notes.len() as u64);
    let core = [
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0\x3e\0\x01\0\0\0".to_vec(),
        u64s(&[0, 64, 0]),
        [0u16, 0, 64, 56, 2, 0, 0, 0].into_iter().flat_map(u16::to_le_bytes).collect(),
        segment(4, at, len),
        segment(1, at + len, memory),
        notes,
    ]
    .concat();
    let mut file = File::create(path).unwrap();
    file.write_all(&core).unwrap();
    file.set_len(at + len + memory).unwrap();
}

fn report_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.crashreport.json", path.display()))
}

fn fifo(path: &Path) {
    let _not_there = fs::remove_file(path);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
}

/// A regular dump, written directly and copied. Its memory is mostly holes, which are kept.
#[test]
fn a_dump_and_its_report_arrive() {
    for is_fetched in [false, true] {
        let (told, files) = dump(is_fetched, |path| {
            write_core(path, 1 << 40);
            fs::write(report_of(path), "{}").unwrap();
        });
        told.expect_code(0);
        let summary = told.json();
        assert_eq!((&summary["verified"], &summary["threads"]), (&Value::from(true), &Value::from(1)));
        let names: Vec<&str> = files.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["x.core", "x.core.crashreport.json"]);
        let (_, len, on_disk) = files[0];
        assert!(len > 1 << 40 && on_disk < 1 << 20, "{on_disk} bytes on the disk");
    }
}

type Attack = fn(&Path);

/// Only the report is missing, which is reported.
#[test]
fn a_report_without_an_end_is_not_read() {
    fn zeros(path: &Path) {
        let _not_there = fs::remove_file(path);
        symlink("/dev/zero", path).unwrap();
    }
    fn endless(path: &Path) {
        File::create(path).unwrap().set_len(1 << 40).unwrap();
    }
    fn nested(path: &Path) {
        fs::write(path, vec![b'['; 1 << 20]).unwrap();
    }
    let attacks: [(Attack, [&str; 2]); 4] = [
        (zeros, ["not complete JSON", "symbolic link"]),
        (fifo, ["not complete JSON", "not a regular file"]),
        (endless, ["more than", "more than"]),
        (nested, ["not complete JSON", "not complete JSON"]),
    ];
    for (attack, whys) in attacks {
        for (is_fetched, why) in [false, true].into_iter().zip(whys) {
            let (told, files) = dump(is_fetched, move |path| {
                write_core(path, 4096);
                attack(&report_of(path));
            });
            told.expect_code(1).says("the crash report").says(why);
            assert_eq!(told.json()["verified"], true, "the dump itself is whole");
            let names: Vec<&str> = files.iter().map(|(name, ..)| name.as_str()).collect();
            assert_eq!(names, ["x.core"]);
        }
    }
}

/// If the dump itself is rejected, no file is left.
#[test]
fn a_dump_that_is_not_a_regular_file_is_not_read() {
    fn zeros(path: &Path) {
        let _not_there = fs::remove_file(path);
        symlink("/dev/zero", path).unwrap();
    }
    fn nothing(_path: &Path) {}
    let attacks: [Attack; 3] = [zeros, fifo, nothing];
    for (attack, is_fetched) in attacks.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let (told, files) = dump(is_fetched, attack);
        told.expect_code(1);
        assert_eq!(files, []);
    }
}

/// The name of the dump or its report already exists: a link to a file of its user, or another hard link.
#[test]
fn an_existing_file_is_not_used_as_the_dump() {
    for (is_link, why) in [(true, "symbolic link"), (false, "2 links")] {
        for is_report in [false, true] {
            let kept = folder();
            let there = kept.path().join("kept");
            let (told, files) = dump(true, move |path| {
                write_core(if is_report { path } else { &there }, 4096);
                let report = if is_report { there.clone() } else { report_of(path) };
                fs::write(report, "{}").unwrap();
                let name = if is_report { report_of(path) } else { path.to_owned() };
                if is_link {
                    symlink(&there, name).unwrap();
                } else {
                    fs::hard_link(&there, name).unwrap();
                }
            });
            let what = if is_report { "the crash report" } else { "can't be copied" };
            told.expect_code(1).says(what).says(why);
            assert_eq!(files.len(), usize::from(is_report), "{files:?}");
        }
    }
}

/// The folder for the dump is renamed before the dump is fetched: files in the replacement are neither used nor
/// removed.
#[test]
fn an_exchanged_folder_is_not_followed() {
    let elsewhere = folder();
    let trap = elsewhere.path().to_owned();
    let (tell, told_path) = mpsc::channel();
    let (told, files) = dump(true, move |path| {
        write_core(path, 4096);
        fs::write(report_of(path), "{}").unwrap();
        for file in [path.to_owned(), report_of(path)] {
            fs::write(trap.join(file.file_name().unwrap()), "another file").unwrap();
        }
        let private = path.parent().unwrap();
        fs::rename(private, private.with_extension("moved")).unwrap();
        symlink(&trap, private).unwrap();
        tell.send(private.to_owned()).unwrap();
    });
    told.expect_code(0);
    assert_eq!((files.len(), told.json()["verified"].as_bool()), (2, Some(true)));
    assert_eq!(names(elsewhere.path()).len(), 2, "what is not the target's dump stays");
    let private = told_path.recv().unwrap();
    fs::remove_file(&private).unwrap();
    // The folder is empty: the fetched file was removed from it.
    fs::remove_dir(private.with_extension("moved")).unwrap();
}

/// A lease on a file blocks every process that opens the file, for 45 seconds by default.
#[test]
fn a_lease_does_not_delay_a_dump() {
    const HOLD: &str = "import fcntl, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
f = open(sys.argv[1])
fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.read()";
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    require!(python.map(drop).map_err(|_missing| Skip::because("python3 is missing, which holds the lease")));
    let (tell, held) = mpsc::channel();
    let (told, files) = dump(true, move |path| {
        write_core(path, 4096);
        let mut holder = Command::new("python3");
        holder.args(["-c", HOLD]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = holder.spawn().unwrap();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
        tell.send(holder).unwrap();
    });
    // The lease is still held, so runtap did not wait for it.
    let mut holder = held.recv().unwrap();
    assert!(holder.try_wait().unwrap().is_none());
    drop(holder.stdin.take());
    holder.wait().unwrap();
    told.expect_code(1).says("holds a lease");
    assert_eq!(files, []);
}

/// The target opens its file by path, and follows links with its user's rights: here root's. No other user can create a
/// link, neither in the result's folder nor where the dump is fetched from.
#[test]
fn no_link_can_redirect_the_targets_file() {
    let _place = require!(ProgramCopy::new());
    let dir = folder();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let victim = dir.path().join("victim");
    for mode in [0o777, 0o1777] {
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(&victim, "what root has").unwrap();
        let hurt = victim.clone();
        let write = move |path: &Path| {
            // Simulates a write after the path was checked: finally the report exists, but not the dump.
            fs::write(report_of(path), "{}").unwrap();
            let script = "mv \"$1\" \"$1.moved\"; ln -s \"$2\" \"$1\"";
            let mut attack = Command::new(NOBODY[0]);
            attack.args(&NOBODY[1..]).args(["sh", "-c", script, "sh"]).arg(path).arg(&hurt);
            run(attack);
            write_core(path, 4096);
        };
        let runtime = FakeRuntime::builder().commands(Arc::new(Writer(write))).spawn();
        // Directly into the folder, and through the target's own folder if the path cannot be expressed.
        for place in [shared.clone(), shared.join(OsStr::from_bytes(b"\xff"))] {
            fs::create_dir_all(&place).unwrap();
            let output = place.join("x.core");
            let mut dump = command(["dump", "--crashreport", "--dport"]);
            dump.arg(format!("{},connect", runtime.path().display())).arg("-o").arg(&output);
            run(dump).expect_code(0);
            assert_eq!(fs::read(&victim).unwrap(), b"what root has");
            let meta = fs::symlink_metadata(&output).unwrap();
            assert!(meta.is_file() && (meta.uid(), meta.mode() & 0o777) == (0, 0o600));
            assert_eq!(names(&place).iter().filter(|name| name.starts_with("runtap.")).count(), 0);
        }
        fs::remove_dir_all(&shared).unwrap();
    }
}

/// No other file is left under the name of a dump.
#[test]
fn a_file_that_is_not_a_core_is_not_kept() {
    fn text(path: &Path) {
        fs::write(path, "root:x:0:0:root:/root:/bin/sh\n".repeat(10)).unwrap();
    }
    fn program(path: &Path) {
        let program = fs::read("/proc/self/exe").unwrap();
        fs::write(path, &program[..4096]).unwrap();
    }
    let attacks: [Attack; 2] = [text, program];
    for (attack, is_fetched) in attacks.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let (told, files) = dump(is_fetched, attack);
        told.expect_code(1).says("not a core file").says("The invalid file was deleted");
        assert_eq!(files, []);
    }
}

/// The provider of a file can grant others access to it, which becomes effective when the file gets the mode of the
/// file it replaces.
#[test]
fn an_access_list_does_not_stay() {
    const LIST: &str = "system.posix_acl_access";
    let runtime = FakeRuntime::builder()
        .commands(Arc::new(Writer(|path: &Path| {
            write_core(path, 4096);
            // An entry for user `nobody`: read and write, in addition to owner, group and mask.
            let entry = |tag: u16, rights: u16, id: u32| {
                [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
            };
            let any = u32::MAX;
            let list = [
                2u32.to_le_bytes().to_vec(),
                entry(1, 6, any),
                entry(2, 6, 65_534),
                entry(4, 0, any),
                entry(16, 6, any),
                entry(32, 0, any),
            ]
            .concat();
            rustix::fs::setxattr(path, LIST, &list, rustix::fs::XattrFlags::empty()).unwrap();
        })))
        .spawn();
    let folder = folder();
    let place = folder.path().join("x.core");
    fs::write(&place, "").unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o660)).unwrap();
    let mut dump = command(["dump", "--dport"]);
    dump.arg(format!("{},connect", runtime.path().display())).arg("-o").arg(&place);
    run(dump).expect_code(0);
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o660);
    let mut list = [0; 64];
    let told = rustix::fs::getxattr(&place, LIST, &mut list);
    assert_eq!(told.err(), Some(rustix::io::Errno::NODATA));
}

/// The core claims a table of segments that no process has.
#[test]
fn a_core_with_false_sizes_is_reported() {
    let (told, _files) = dump(false, |path| {
        write_core(path, 4096);
        let mut bytes = fs::read(path).unwrap();
        // Notes of 64 GB, in a hole.
        bytes[64 + 32..64 + 40].copy_from_slice(&(1u64 << 36).to_le_bytes());
        fs::write(path, bytes).unwrap();
        File::options().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
        fs::write(report_of(path), "{}").unwrap();
    });
    told.expect_code(5).says("more than");
}
