//! Core dumps of real processes: complete ELF cores of the right process, in the right place, or a clear error.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use runtap_diag::core_file;
use runtap_testkit::{RealRuntime, Running, Signal, Skip, eventually, run};
use rustix::process::{Pid, kill_process};
use serde_json::Value;

use crate::attacker::{self, become_user};
use crate::common::{Target, command, folder, json, runtap, unique};
use crate::real_doctor_rights::NOBODY;

on_each_runtime!(
    every_type_is_a_whole_core,
    a_crash_report_is_written_beside_the_dump,
    dumps_are_written_to_the_given_path,
    a_folder_that_the_target_may_not_write_to,
    a_suspended_program_is_dumped_whole,
    an_interrupted_dump_is_reported,
);
on_the_newest_runtime!(
    no_request_is_sent_that_cannot_be_answered,
    a_disk_that_is_too_small,
    a_program_with_the_rights_of_another,
    files_of_another_user_stay_unchanged,
);

/// A program that is idle until it receives input.
const IDLE: [&str; 3] = ["0.05", "1000", "--stdin"];

/// Checks a core as `runtap` does, and that it contains these threads.
#[track_caller]
fn assert_core(path: &Path, pid: u32, threads: &[u32]) {
    let core = core_file::inspect(&File::open(path).unwrap()).unwrap();
    assert_eq!((core.process.pid, core.process.name.as_str()), (Some(pid), "dotnet"));
    for thread in threads {
        assert!(core.process.threads.contains(thread), "{thread} is not among {:?}", core.process.threads);
    }
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "it holds secrets");
}

/// Returns the threads of an idle runtime that remain until it exits.
fn lasting_threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap());
    let lasting = |task: &fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        ["dotnet\n", ".NET Finalizer\n", ".NET EventPipe\n"].contains(&name.as_str())
    };
    tasks.filter(lasting).map(|task| task.file_name().to_str().unwrap().parse().unwrap()).collect()
}

fn every_type_is_a_whole_core(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let threads = lasting_threads(target.pid());
    let mut sizes = Vec::new();
    for kind in ["Mini", "triage", "HEAP", "Full"] {
        let path = target.temp.path().join(kind);
        let summary =
            json(["dump", &target.p(), "--type", kind, "-o", path.to_str().unwrap(), "--format", "json"]);
        assert_eq!(summary["schema"], "runtap.dump/1");
        assert_eq!((&summary["pid"], &summary["type"]), (&target.pid().into(), &kind.to_lowercase().into()));
        assert_eq!(
            (&summary["path"], &summary["target_path"]),
            (&path.to_str().into(), &path.to_str().into())
        );
        assert_eq!(summary["verified"], true);
        assert!(summary["duration_ns"].as_u64().unwrap() > 0);
        assert_eq!(summary["bytes"], fs::metadata(&path).unwrap().len());
        // A thread has its creator's name until it sets its own, so some of these may have changed.
        let mut lasting = lasting_threads(target.pid());
        lasting.retain(|thread| threads.contains(thread));
        assert!(lasting.len() >= 3, "{threads:?}");
        assert_core(&path, target.pid(), &lasting);
        sizes.push(summary["bytes"].as_u64().unwrap());
        fs::remove_file(&path).unwrap();
        target.still_answers();
    }
    assert!(sizes[0] < sizes[2] && sizes[2] < sizes[3], "{sizes:?}");
    assert_eq!(
        fs::read_dir(target.temp.path()).unwrap().count(),
        3,
        "nothing is left but the target's own files"
    );
    Ok(())
}

fn a_crash_report_is_written_beside_the_dump(runtime: &RealRuntime) -> Result<(), Skip> {
    let mut target = Target::start(runtime.program("spin", &IDLE)?);
    let path = target.temp.path().join("x.core");
    let mut with =
        command(["dump", &target.p(), "--type", "mini", "--crashreport", "--diag", "--format", "json"]);
    with.arg("-o").arg(&path);
    let with = Running::start(with);
    // This amount of text fills a pipe without a reader, and then the target blocks.
    target.program.wait_for("[createdump] Dump successfully written");
    let said: usize = target.program.lines().iter().map(String::len).sum();
    assert!(said > 10_000, "--diag says more than {said} bytes");
    let summary = with.wait().expect_code(0).json();
    let report = summary["crash_report"].as_str().unwrap();
    assert_eq!(report, format!("{}.crashreport.json", path.display()));
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert!(!report["payload"]["threads"].as_array().unwrap().is_empty());
    target.still_answers();
    Ok(())
}

/// Percent signs, spaces and letters of all kinds; a relative path; a folder; an existing file.
fn dumps_are_written_to_the_given_path(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let mini = |folder: &Path, output: &[&str]| {
        let mut dump =
            command(["dump", &target.p(), "--type", "mini", "--format", "json"].iter().chain(output));
        dump.current_dir(folder);
        run(dump).expect_code(0).json()["path"].as_str().unwrap().to_owned()
    };
    let place = target.temp.path().canonicalize().unwrap();
    for name in ["100%p %e%", "grün 🦀 \"x\"", "-x"] {
        let path = place.join(name);
        assert_eq!(mini(&place, &[&format!("-o{name}")]), path.to_str().unwrap());
        assert_core(&path, target.pid(), &[]);
    }
    fs::write(place.join("old"), vec![7; 20 << 20]).unwrap();
    fs::set_permissions(place.join("old"), Permissions::from_mode(0o600)).unwrap();
    assert_core(Path::new(&mini(&place, &["-o", "old"])), target.pid(), &[]);
    assert!(fs::metadata(place.join("old")).unwrap().len() < 20 << 20);
    fs::create_dir(place.join("folder")).unwrap();
    for (path, folder) in
        [(mini(&place, &["-o", "folder"]), place.join("folder")), (mini(&place, &[]), place.clone())]
    {
        let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("core_") && name.len() == "core_yyyyMMdd_HHmmss".len(), "{name}");
        assert_core(&folder.join(name), target.pid(), &[]);
    }
    // A second dump within the same second gets another name.
    let dumps = [mini(&place, &[]), mini(&place, &[]), mini(&place, &[])];
    assert!(dumps[0] != dumps[1] && dumps[1] != dumps[2]);
    target.still_answers();
    Ok(())
}

/// The target belongs to another user and may not create files in the folder: it writes to its own folder, and the file
/// is copied.
fn a_folder_that_the_target_may_not_write_to(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = of_nobody(runtime)?;
    let ours = folder();
    let filler = Filler::of(ours.path());
    for mode in [0o755, 0o700] {
        fs::set_permissions(ours.path(), Permissions::from_mode(mode)).unwrap();
        let path = ours.path().join(format!("{mode:o}.core"));
        let mut dump =
            command(["dump", &target.p(), "--type", "mini", "--crashreport", "--format", "json", "-o"]);
        dump.arg(&path);
        let told = run(dump);
        told.expect_code(0);
        let summary = told.json();
        assert_eq!(summary["path"], path.to_str().unwrap());
        told.says("runtap copies it from there").says("is not permitted to write");
        let theirs = summary["target_path"].as_str().unwrap();
        assert!(theirs.starts_with(target.temp.path().to_str().unwrap()), "{theirs}");
        assert_core(&path, target.pid(), &[]);
        let report = Path::new(summary["crash_report"].as_str().unwrap());
        for file in [&path, report] {
            let meta = fs::metadata(file).unwrap();
            assert_eq!((meta.uid(), meta.permissions().mode() & 0o777), (0, 0o600), "{}", file.display());
        }
    }
    for (folder, files) in [(target.temp.path(), 3), (ours.path(), 4)] {
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left.len(), files, "nothing is left behind: {left:?}");
    }
    target.still_answers();
    assert_eq!(filler.end(), 0, "bytes written without having free space");
    Ok(())
}

/// The other user keeps the file provided for the dump: open, and under another name. The dump is a separate file.
fn files_of_another_user_stay_unchanged(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = of_nobody(runtime)?;
    let ours = folder();
    fs::set_permissions(ours.path(), Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(ours.path(), Some(attacker::NOBODY), None).unwrap();
    let path = ours.path().join("x.core");
    let names = ["dump", "report"].map(|name| target.temp.path().join(name));
    let kept = keep_lent_files(ours.path(), names.clone());
    let mut dump = command(["dump", &target.p(), "--type", "mini", "--crashreport", "-o"]);
    dump.arg(&path);
    run(dump).expect_code(0);
    let kept: Vec<File> = kept.join().unwrap();
    for file in &kept {
        file.set_len(0).unwrap();
    }
    let his: Vec<u64> = names.iter().map(|name| fs::metadata(name).unwrap()).map(|meta| meta.ino()).collect();
    for (file, ino) in [path.clone(), ours.path().join("x.core.crashreport.json")].into_iter().zip(his) {
        let meta = fs::metadata(&file).unwrap();
        assert!(meta.ino() != ino && meta.nlink() == 1 && meta.uid() == 0, "{}", file.display());
        assert!(meta.len() > 0, "{} is his", file.display());
    }
    assert_core(&path, target.pid(), &[]);
    assert_eq!(fs::read_dir(ours.path()).unwrap().count(), 2, "nothing is left behind");
    target.still_answers();
    Ok(())
}

/// A process of user `nobody` that writes to any of its files in a folder in which it cannot create files.
struct Filler {
    over: Arc<AtomicBool>,
    fills: JoinHandle<u64>,
}

impl Filler {
    fn of(folder: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (folder, stop) = (folder.to_owned(), Arc::clone(&over));
        let fills = thread::spawn(move || {
            become_user(attacker::NOBODY);
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                // At times it may not even read the folder.
                for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                    let file = File::options().append(true).open(entry.path());
                    written += file.and_then(|mut file| file.write(&[0; 4096])).unwrap_or(0) as u64;
                }
                thread::sleep(Duration::from_millis(1));
            }
            written
        });
        Self { over, fills }
    }

    /// Returns the number of bytes that it has written.
    fn end(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.fills.join().unwrap()
    }
}

/// Opens the files of a folder that belong to user `nobody`, and links them under other names: the dump, and the file behind
/// its name.
fn keep_lent_files(folder: &Path, [dump, report]: [PathBuf; 2]) -> JoinHandle<Vec<File>> {
    let folder = folder.to_owned();
    thread::spawn(move || {
        become_user(attacker::NOBODY);
        let mut kept = Vec::new();
        let until = Instant::now() + Duration::from_mins(1);
        while kept.len() < 2 && Instant::now() < until {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                let is_his = entry.metadata().is_ok_and(|meta| meta.uid() == attacker::NOBODY);
                let name = if path.extension() == Some("json".as_ref()) { &report } else { &dump };
                if is_his && !name.exists() {
                    kept.push(File::options().read(true).write(true).open(&path).unwrap());
                    fs::hard_link(&path, name).unwrap();
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        kept
    })
}

/// A program that another user has started with root's rights: its files are root's.
fn a_program_with_the_rights_of_another(runtime: &RealRuntime) -> Result<(), Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can run programs as another user"));
    }
    let temp = folder();
    let launch = runtime.program("spin", &IDLE)?.wrapped_by(&["setpriv", "--ruid", "65534", "--"]);
    let target = Target { program: launch.env("TMPDIR", temp.path()).spawn(), temp };
    let ours = folder();
    // A name that the protocol can't express: the target writes into its own folder, and the file is copied.
    let place = ours.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir(&place).unwrap();
    let mut dump = command(["dump", &target.p(), "--type", "mini", "--crashreport", "-o"]);
    dump.arg(place.join("x.core"));
    run(dump).expect_code(0).says("runtap copies it from there");
    assert_core(&place.join("x.core"), target.pid(), &[]);
    target.still_answers();
    Ok(())
}

/// Starts a program of user `nobody`, with a world-writable temporary folder.
fn of_nobody(runtime: &RealRuntime) -> Result<Target, Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can run programs as another user"));
    }
    let temp = folder();
    fs::set_permissions(temp.path(), Permissions::from_mode(0o777)).unwrap();
    let launch = runtime.program("spin", &IDLE)?.wrapped_by(&NOBODY).env("TMPDIR", temp.path());
    Ok(Target { program: launch.spawn(), temp })
}

fn a_suspended_program_is_dumped_whole(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::suspended(runtime.program("spin", &IDLE)?);
    let path = target.temp.path().join("x.core");
    let output = path.to_str().unwrap();
    for kind in ["mini", "heap", "triage"] {
        let refused = runtap(["dump", &target.p(), "--type", kind, "-o", output]);
        refused.expect_code(4).says("full dumps only").says("resume the target first");
    }
    assert!(!path.exists());
    runtap(["dump", &target.p(), "-o", output]).expect_code(0);
    assert_core(&path, target.pid(), &[]);
    target.resume_to_its_end();
    Ok(())
}

/// The target is stopped, so the dump can't be written before Ctrl-C; afterwards the promised file appears.
fn an_interrupted_dump_is_reported(runtime: &RealRuntime) -> Result<(), Skip> {
    let (name, copy) = (unique("held"), folder());
    let target = Target::start(runtime.program("spin", &IDLE)?.called(&name, copy.path()));
    let path = target.temp.path().join("x.core");
    let signal = |signal| {
        kill_process(Pid::from_raw(i32::try_from(target.pid()).unwrap()).unwrap(), signal).unwrap();
    };
    signal(Signal::STOP);
    let said = target.temp.path().join("stderr");
    // A single process would be rejected at once, because it is stopped.
    let mut dump = command(["dump", "-n", &name, "--all", "--type", "mini", "-v", "-o"]);
    dump.arg(&path).stderr(File::create(&said).unwrap());
    let mut dump = dump.spawn().unwrap();
    let said = || fs::read_to_string(&said).unwrap();
    eventually("runtap asks", || said().contains("sent the request to the target").then_some(()));
    kill_process(Pid::from_child(&dump), Signal::INT).unwrap();
    assert_eq!(dump.wait().unwrap().code(), Some(130));
    assert!(
        said().contains("continues without runtap") && said().contains("is suspended until"),
        "{}",
        said()
    );
    assert!(!path.exists());
    // The message has the file's name, which is not the requested one: that appears only when the dump is complete.
    let said = said();
    let (_, place) = said.split_once("has written all of ").unwrap();
    let place = Path::new(place.lines().next().unwrap());
    assert_eq!(place.parent(), Some(target.temp.path()));
    signal(Signal::CONT);
    eventually("the dump is whole after all", || core_file::inspect(&File::open(place).ok()?).ok());
    target.still_answers();
    Ok(())
}

fn no_request_is_sent_that_cannot_be_answered(runtime: &RealRuntime) -> Result<(), Skip> {
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let pipe = target.temp.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for (path, why) in
        [("/nowhere/x", "directory /nowhere does not exist"), (pipe.to_str().unwrap(), "not a regular file")]
    {
        runtap(["dump", &target.p(), "-o", path]).expect_code(2).says(why);
    }
    assert!(!fs::metadata(&pipe).unwrap().is_file(), "it was not replaced");
    runtap(["dump", &target.p(), "--type", "half"]).expect_code(2).says("triage");
    target.still_answers();
    Ok(())
}

fn a_disk_that_is_too_small(runtime: &RealRuntime) -> Result<(), Skip> {
    if !rustix::process::geteuid().is_root() {
        return Err(Skip::because("only root can mount a small file system"));
    }
    let small = folder();
    let mount = |words: &[&str]| {
        let mut command = std::process::Command::new(words[0]);
        command.args(&words[1..]).arg(small.path());
        run(command).expect_code(0);
    };
    mount(&["mount", "-t", "tmpfs", "-o", "size=16m", "none"]);
    let target = Target::start(runtime.program("spin", &IDLE)?);
    let path = small.path().join("x.core");
    let refused = runtap(["dump", &target.p(), "-o", path.to_str().unwrap()]);
    let mini = runtap(["dump", &target.p(), "--type", "mini", "-o", path.to_str().unwrap()]);
    let left = fs::read_dir(small.path()).unwrap().count();
    mount(&["umount"]);
    refused.expect_code(1).says("has 16.8 MB left").says("smaller --type");
    mini.expect_code(0);
    assert_eq!(left, 1);
    target.still_answers();
    Ok(())
}
