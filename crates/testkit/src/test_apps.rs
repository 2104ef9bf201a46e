//! Test applications of Microsoft.Testing.Platform with known results, unpacked into `target/peers` once for all tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::peers::{self, STAMP};
use crate::shared::{extract, required, shared_archive};
use crate::{Skip, collector};

/// Names of applications, and the folders below the shared folder's `apps/mtp` with their archives.
const FOLDERS: [(&str, &str); 7] = [
    ("orchard-1.8.4", "orchard"),
    ("orchard-2.3.3", "orchard"),
    ("orchard-2.5.2", "orchard"),
    ("six", "orchard"),
    ("library-mstest-4.5.2", "library-mstest"),
    ("library-nunit-5.0.0", "library-nunit"),
    ("library-xunit-3.2.2", "library-xunit"),
];

/// Returns the folder of an application, such as `orchard-2.5.2`; `six` contains six.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If the name is unknown, or the archive cannot be unpacked.
pub fn test_application(name: &str) -> Result<PathBuf, Skip> {
    let Some((_, folder)) = FOLDERS.iter().find(|(known, _)| *known == name) else {
        panic!("{name} is not one of {:?}", FOLDERS.map(|(known, _)| known));
    };
    let unpacked = peers::folder().join(format!("mtp-{folder}"));
    let is_ready = || unpacked.join(STAMP).is_file();
    peers::once(
        is_ready,
        || shared_archive(format!("apps/mtp/{folder}/bin.tar.xz")),
        |archive| {
            let part = tempfile::Builder::new().prefix(".part-").tempdir_in(peers::folder());
            let part = part.expect("a folder for parts");
            let inner = part.path().join("all");
            fs::create_dir(&inner).expect("a folder for applications");
            extract(&archive, &inner);
            fs::write(inner.join(STAMP), "").expect("the folder can be marked");
            peers::move_in(&inner, &unpacked, part.path());
        },
    )?;
    Ok(unpacked.join(name))
}

/// The applications in `data/reports/mtp`, which are from public problem reports.
pub const REPORTED: [&str; 9] =
    ["mcrash", "mfold", "mres2", "mzero", "nback2", "nnames", "xcrash", "xdup", "xpar"];

/// Returns the compiled assembly of one of [`REPORTED`].
///
/// # Errors
/// If there is no shared folder, or no runtime for its compiler.
///
/// # Panics
/// If compiling fails.
pub fn reported_application(name: &str) -> Result<PathBuf, Skip> {
    let sources = required()?.join("data/reports/mtp");
    let folder = peers::folder().join("mtp-reports");
    let assembly = folder.join(name).join(format!("{name}.dll"));
    let source = fs::read_to_string(sources.join(format!("{name}.cs")));
    let source = source.unwrap_or_else(|error| panic!("cannot read the source of {name}: {error}"));
    let stamp = folder.join(name).join(STAMP);
    let is_ready = || fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == source);
    peers::once(is_ready, collector::compiler, |(runtime, compiler)| {
        let mut build = Command::new("bash");
        build.arg(sources.join("build")).arg(&folder).arg(name);
        build.env("DOTNET_ROOT", runtime.root()).env("CSC", compiler.join("csc"));
        peers::run(build.envs(runtime.variables()));
        fs::write(&stamp, &source).expect("the folder can be marked");
    })?;
    Ok(assembly)
}

/// Returns the lines of a table with expected outcomes in the shared folder, without comments and heading.
///
/// # Errors
/// If there is no shared folder.
///
/// # Panics
/// If there is no such table.
pub fn expected_outcomes(folder: &str, table: &str) -> Result<Vec<Vec<String>>, Skip> {
    let path = required()?.join("apps/mtp").join(folder).join(table);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    Ok(rows.map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}
