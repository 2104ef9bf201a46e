//! The small C# program of this crate, compiled with mono-mcs for runtimes without a program in the shared folder. The
//! source is `programs/small.cs`, the provider of its events is [`PROVIDER`]. The result stays in `target/peers`, with
//! the checksum of the source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::Skip;
use crate::peers::{STAMP, folder, lock, move_in, run};

const SOURCE: &str = include_str!("../programs/small.cs");
const NAME: &str = "small";

/// The provider of the program's events: 1 `One`, 2 `Two` and 3 `Three`, each once per round.
pub(crate) const PROVIDER: &str = "Runtap-Small";

/// For .NET Core 3.1 and all later versions.
const CONFIGURATION: &str = r#"{"runtimeOptions": {
  "tfm": "netcoreapp3.1",
  "rollForward": "Major",
  "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
  "configProperties": {"System.Globalization.Invariant": true}
}}
"#;

/// Returns the path of the compiled program.
///
/// # Panics
/// If there is a compiler but compiling fails.
pub(crate) fn assembly() -> Result<PathBuf, Skip> {
    let place = folder().join(NAME);
    let assembly = place.join(format!("{NAME}.dll"));
    let sum = format!("{:x}\n", Sha256::digest(SOURCE));
    let is_ready = || fs::read_to_string(place.join(STAMP)).is_ok_and(|stamp| stamp == sum);
    if is_ready() {
        return Ok(assembly);
    }
    if Command::new("mcs").arg("--version").output().is_err() {
        return Err(Skip::because("there is no C# compiler mcs (Debian: mono-mcs)"));
    }
    let _lock = lock();
    if !is_ready() {
        compile(&place, &sum);
    }
    Ok(assembly)
}

/// Compiles atomically. The lock must be held.
fn compile(into: &Path, sum: &str) {
    let part = tempfile::Builder::new().prefix(".part-").tempdir_in(folder()).expect("a folder for parts");
    let inner = part.path().join(NAME);
    fs::create_dir(&inner).expect("a folder for the program");
    for (file, text) in [("small.cs", SOURCE), ("small.runtimeconfig.json", CONFIGURATION), (STAMP, sum)] {
        fs::write(inner.join(file), text).expect("write into the folder");
    }
    run(Command::new("mcs").args(["-langversion:7", "-out:small.dll", "small.cs"]).current_dir(&inner));
    move_in(&inner, into, part.path());
}
