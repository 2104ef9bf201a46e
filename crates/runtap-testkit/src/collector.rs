//! Our own C# program that keeps the garbage collector busy, compiled here by Microsoft's compiler of the shared folder:
//! `programs/collector.cs`. What is compiled stays in `target/peers`, stamped with the sum of the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::peers::{STAMP, folder, lock, move_in, run, unpacked};
use crate::{RealRuntime, Skip};

const SOURCE: &str = include_str!("../programs/collector.cs");
const NAME: &str = "collector";
const COMPILER: (&str, &str) = ("csharp-compiler", "peers/csharp-compiler-5.9-net8.0.tar.xz");

/// The path of the compiled program.
///
/// # Panics
/// When there is a compiler and the program can't be compiled.
pub(crate) fn assembly() -> Result<PathBuf, Skip> {
    let place = folder().join(NAME);
    let sum = format!("{:x}\n", Sha256::digest(SOURCE));
    let is_ready = || fs::read_to_string(place.join(STAMP)).is_ok_and(|stamp| stamp == sum);
    if !is_ready() {
        // The compiler itself needs this version.
        let runtime = RealRuntime::available(10)?;
        let compiler = unpacked(COMPILER.0, COMPILER.1)?;
        let _lock = lock();
        if !is_ready() {
            compile(&runtime, &compiler, &place, &sum);
        }
    }
    Ok(place.join(format!("{NAME}.dll")))
}

/// All or nothing; with the lock held.
fn compile(runtime: &RealRuntime, compiler: &Path, into: &Path, sum: &str) {
    let part = tempfile::Builder::new().prefix(".part-").tempdir_in(folder()).expect("a folder for parts");
    let inner = part.path().join(NAME);
    fs::create_dir(&inner).expect("a folder for the program");
    for (file, text) in [("collector.cs", SOURCE), (STAMP, sum)] {
        fs::write(inner.join(file), text).expect("write into the folder");
    }
    let mut csc = Command::new("bash");
    csc.arg(compiler.join("csc")).args(["collector.dll", "collector.cs"]).current_dir(&inner);
    run(csc.envs(runtime.variables()));
    move_in(&inner, into, part.path());
}
