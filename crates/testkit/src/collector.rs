//! C# programs that are compiled with Microsoft's compiler from the shared folder: `programs/collector.cs`, which keeps
//! the garbage collector busy, `programs/sizes.cs`, which writes events of about the maximum size, `programs/awaits.cs`, whose
//! async methods wait, and sources from the shared folder. The results stay in `target/peers`, with the checksum of the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::peers::{STAMP, folder, move_in, once, run, unpacked};
use crate::shared::required;
use crate::{RealRuntime, Skip};

/// Name and source of a program.
pub(crate) type Source<'a> = (&'a str, &'a str);

pub(crate) const COLLECTOR: Source<'static> = ("collector", include_str!("../programs/collector.cs"));
pub(crate) const SIZES: Source<'static> = ("sizes", include_str!("../programs/sizes.cs"));
pub(crate) const AWAITS: Source<'static> = ("awaits", include_str!("../programs/awaits.cs"));
const COMPILER: (&str, &str) = ("csharp-compiler", "peers/csharp-compiler-5.9-net8.0.tar.xz");

/// Returns the path of the compiled program.
///
/// # Panics
/// If there is a compiler but compiling fails.
pub(crate) fn assembly((name, source): Source<'_>) -> Result<PathBuf, Skip> {
    let place = folder().join(name);
    let sum = format!("{:x}\n", Sha256::digest(source));
    let is_ready = || fs::read_to_string(place.join(STAMP)).is_ok_and(|stamp| stamp == sum);
    once(is_ready, compiler, |(runtime, compiler)| {
        compile(&runtime, &compiler, &place, (name, source), &sum);
    })?;
    Ok(place.join(format!("{name}.dll")))
}

/// Returns the path of a compiled program of `data/reports/net/apps`.
///
/// # Panics
/// If the shared folder lacks the program, or compiling fails.
pub(crate) fn reported_assembly(name: &str) -> Result<PathBuf, Skip> {
    let file = required()?.join(format!("data/reports/net/apps/{name}.cs"));
    let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assembly((name, &source))
}

/// Returns the folder of the compiler and the runtime that it runs on.
pub(crate) fn compiler() -> Result<(RealRuntime, PathBuf), Skip> {
    Ok((RealRuntime::available(10)?, unpacked(COMPILER.0, COMPILER.1)?))
}

/// Compiles atomically. The lock must be held.
fn compile(runtime: &RealRuntime, compiler: &Path, into: &Path, (name, source): Source<'_>, sum: &str) {
    let part = tempfile::Builder::new().prefix(".part-").tempdir_in(folder()).expect("a folder for parts");
    let inner = part.path().join(name);
    let file = format!("{name}.cs");
    fs::create_dir(&inner).expect("a folder for the program");
    for (file, text) in [(file.as_str(), source), (STAMP, sum)] {
        fs::write(inner.join(file), text).expect("write into the folder");
    }
    let mut csc = Command::new("bash");
    csc.arg(compiler.join("csc")).args([&format!("{name}.dll"), &file]).current_dir(&inner);
    run(csc.envs(runtime.variables()));
    move_in(&inner, into, part.path());
}
