//! The real `dotnet test`: the command-line part of an SDK with a runtime, in `target/peers` once for all tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::peers::{STAMP, folder, move_in, once};
use crate::shared::{extract, shared_archive};
use crate::{RealRuntime, Skip};

/// Path below the shared folder.
const ARCHIVE: &str = "peers/dotnet-test-cli-10.0.401.tar.xz";
const NAME: &str = "dotnet-test-cli";
const VERSION: &str = "10.0.401";

/// `dotnet test` of SDK 10.0.401. It only supports `--test-modules`, because projects need the rest of the SDK.
#[derive(Debug, Clone)]
pub struct DotnetTest {
    root: PathBuf,
}

impl DotnetTest {
    /// Returns it from `target/peers`, or makes it from the runtime and the shared folder's archive.
    ///
    /// # Errors
    /// If there is no shared folder, no `xz`, or no .NET 10.
    ///
    /// # Panics
    /// If the archive cannot be unpacked.
    pub fn available() -> Result<Self, Skip> {
        let root = folder().join(NAME);
        let needed = || Ok((shared_archive(ARCHIVE)?, RealRuntime::available(10)?));
        let make = |(archive, runtime): (PathBuf, RealRuntime)| {
            let part = tempfile::Builder::new().prefix(".part-").tempdir_in(folder());
            let part = part.expect("a folder for parts");
            let copy = runtime.linked_into(part.path());
            extract(&archive, copy.root());
            fs::write(copy.root().join(STAMP), "").expect("the folder can be marked");
            move_in(copy.root(), &root, part.path());
        };
        once(|| root.join(STAMP).is_file(), needed, make)?;
        Ok(Self { root })
    }

    /// Returns the command `dotnet test --test-modules MODULES` in a folder, which is also its home and gets the file
    /// that selects the platform's runner. Add options.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn command(&self, folder: &std::path::Path, modules: &str) -> Command {
        let choice = r#"{"test":{"runner":"Microsoft.Testing.Platform"}}"#;
        fs::write(folder.join("global.json"), choice).expect("the runner can be chosen");
        let mut command = Command::new(self.root.join("dotnet"));
        command.args(["test", "--test-modules", modules]).current_dir(folder);
        command.env("HOME", folder).env("DOTNET_ROOT", &self.root);
        command.env("DOTNET_CLI_HOME", folder).env("DOTNET_NOLOGO", "1");
        command.env("DOTNET_GENERATE_ASPNET_CERTIFICATE", "false").env("DOTNET_CLI_TELEMETRY_OPTOUT", "1");
        command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        command
    }

    /// Returns the version of the SDK.
    pub fn version(&self) -> &'static str {
        VERSION
    }
}
