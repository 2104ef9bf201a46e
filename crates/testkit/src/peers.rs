//! Third-party programs, unpacked into `target/peers` once for all tests and for `cargo xtask peers`, which uses the
//! same names, stamps and lock.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::shared::{extract, required, shared_archive, workspace_root};
use crate::{RealRuntime, Skip};

/// Name (also of the folder in the archive), and archive below the shared folder.
const TOOLS: [(&str, &str); 4] = [
    ("dotnet-trace", "peers/dotnet-trace.tar.xz"),
    ("tebench", "peers/tebench/tebench.tar.xz"),
    ("dncli", "peers/dncli/dncli.tar.xz"),
    ("mspipe", "peers/mspipe/mspipe.tar.xz"),
];

/// Name, the tool in whose folder it is because it needs that tool's libraries, and its folder below the shared one.
const GUESTS: [(&str, &str, &str); 2] =
    [("tegc", "tebench", "peers/tebench/analysis"), ("tedump", "tebench", "peers/tebench/analysis")];

/// The file with the SHA-256 of what a folder was made from.
pub(crate) const STAMP: &str = ".unpacked";

/// A tool that runs on .NET: `dotnet-trace`, `tebench` with `tegc` and `tedump`, `dncli`, `mspipe`.
#[derive(Debug, Clone)]
pub struct Peer {
    runtime: RealRuntime,
    program: PathBuf,
}

impl Peer {
    /// Returns the tool with this name and a runtime to run it on.
    ///
    /// # Errors
    /// If it is not available.
    ///
    /// # Panics
    /// If the name is unknown, or the shared folder exists but unpacking fails.
    pub fn available(name: &str) -> Result<Self, Skip> {
        let guest = GUESTS.iter().find(|(known, ..)| *known == name);
        let host = guest.map_or(name, |(_, host, _)| host);
        let Some((_, archive)) = TOOLS.iter().find(|(known, _)| *known == host) else {
            panic!("{name} is not one of {:?}", TOOLS.map(|(known, _)| known));
        };
        // All of them are net8.0 programs, which also run on later versions.
        let runtime = RealRuntime::newest()?;
        let folder = unpacked(host, archive)?;
        let program = folder.join(format!("{name}.dll"));
        if let Some((.., from)) = guest
            && !program.is_file()
        {
            move_guest_in(name, &required()?.join(from), &folder);
        }
        Ok(Self { runtime, program })
    }

    /// Returns the command that runs it.
    pub fn command(&self) -> Command {
        let mut command = self.runtime.command();
        command.arg(&self.program);
        command
    }

    /// Returns the lines in which `dotnet-trace ps` lists the processes of a folder of sockets.
    ///
    /// It examines all processes of the machine for those in other namespaces, and fails if one exits meanwhile; only
    /// then it is run again.
    ///
    /// # Panics
    /// If it fails with another error, or a hundred times with that one.
    pub fn listed(&self, sockets: &Path) -> Vec<String> {
        for _ in 0..100 {
            let mut ps = self.command();
            ps.arg("ps").env("TMPDIR", sockets);
            let listed = crate::run(ps);
            if listed.status.success() {
                return listed.text().lines().map(str::to_owned).collect();
            }
            assert!(listed.stderr.contains("Process has exited"), "{}", listed.stderr);
        }
        panic!("processes ended under every list of dotnet-trace's");
    }

    /// Returns the process ids in [`listed`](Self::listed).
    pub fn pids_listed(&self, sockets: &Path) -> Vec<u32> {
        let lines = self.listed(sockets);
        lines.iter().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
    }
}

/// Returns a third-party program that contains its runtime, .NET 10, and all assemblies in one file: `azmcp`. Only
/// `cargo xtask peers --download` provides it.
///
/// # Errors
/// If it is not installed.
pub fn single_file_program() -> Result<Command, Skip> {
    let program = folder().join("azmcp-10/azmcp");
    if !program.is_file() {
        return Err(Skip::because("there is no single-file program (cargo xtask peers --download)"));
    }
    let mut command = Command::new(program);
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").env("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
    Ok(command)
}

/// Returns the folder of the peers.
pub(crate) fn folder() -> PathBuf {
    workspace_root().join("target/peers")
}

/// Locks the folder while something is unpacked; other processes wait.
pub(crate) fn lock() -> File {
    let folder = folder();
    let lock = fs::create_dir_all(&folder)
        .and_then(|()| File::create(folder.join(".lock")))
        .and_then(|file| file.lock().map(|()| file));
    lock.unwrap_or_else(|error| panic!("cannot lock {}: {error}", folder.display()))
}

/// Makes something in that folder unless it exists: one process makes it, and others wait. `needed` is looked for
/// first.
pub(crate) fn once<N>(
    is_ready: impl Fn() -> bool,
    needed: impl FnOnce() -> Result<N, Skip>,
    make: impl FnOnce(N),
) -> Result<(), Skip> {
    if !is_ready() {
        let needed = needed()?;
        let _lock = lock();
        if !is_ready() {
            make(needed);
        }
    }
    Ok(())
}

/// Returns the folder of a tool, unpacked from this archive below the shared folder.
pub(crate) fn unpacked(name: &str, archive: &str) -> Result<PathBuf, Skip> {
    let folder = folder().join(name);
    let is_ready = || folder.join(STAMP).is_file();
    once(is_ready, || shared_archive(archive), |archive| unpack(&archive, name, &folder))?;
    Ok(folder)
}

/// Unpacks atomically. The lock must be held.
fn unpack(archive: &Path, name: &str, into: &Path) {
    let part = tempfile::Builder::new().prefix(".part-").tempdir_in(folder()).expect("a folder for parts");
    extract(archive, part.path());
    let inner = part.path().join(name);
    fs::write(inner.join(STAMP), sha256(archive) + "\n").expect("the archive holds a folder of its name");
    move_in(&inner, into, part.path());
}

/// Copies a program beside the libraries that it needs: its assembly last, which others look for.
fn move_guest_in(name: &str, from: &Path, folder: &Path) {
    let _lock = lock();
    for file in [format!("{name}.runtimeconfig.json"), format!("{name}.dll")] {
        let part = folder.join(format!(".part-{file}"));
        let copied = fs::copy(from.join(&file), &part).and_then(|_| fs::rename(&part, folder.join(&file)));
        copied.unwrap_or_else(|error| panic!("cannot bring {file} from {}: {error}", from.display()));
    }
}

/// Renames a folder to its final name; an existing one is moved to `part`.
pub(crate) fn move_in(inner: &Path, into: &Path, part: &Path) {
    if into.exists() {
        fs::rename(into, part.join(".old")).expect("move the old folder away");
    }
    fs::rename(inner, into).expect("move the new folder in");
}

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed ({}): {said}", output.status);
}

fn sha256(path: &Path) -> String {
    let mut file = File::open(path).unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()));
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).expect("the archive can be read") {
            0 => return format!("{:x}", hash.finalize()),
            n => hash.update(&buffer[..n]),
        }
    }
}
