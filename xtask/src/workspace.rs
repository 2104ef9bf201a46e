//! Paths of the workspace, build results, real peers and the shared folder. All are determined at run time; none is
//! compiled in.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::process::Tool;

/// The cargo profile of released files, and the name of its folder below `target`.
pub const SHIPPED: &str = "shipped";

/// The folders that the subcommands use.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Finds the workspace of this xtask; cargo passes the folder of its package to the programs it runs.
    pub fn find() -> Result<Self> {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = match package.as_deref().and_then(Path::parent) {
            Some(root) => root.to_owned(),
            None => bail!("start this with `cargo xtask`, which says where the workspace is"),
        };
        let metadata = metadata(&root, &root.join("Cargo.toml"))?;
        let target =
            metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
        Ok(Self { target: PathBuf::from(target), root })
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lists the files of the project that match git's `patterns`, relative to its root, also those that are not committed.
    pub fn files(&self, patterns: &[&str]) -> Result<Vec<String>> {
        let listed = self
            .tool("git")
            .args(&["ls-files", "-co", "--exclude-standard"])
            .args(patterns)
            .quiet()
            .capture()?;
        // Deleted files that are not committed yet are listed too.
        Ok(listed.lines().filter(|file| self.root.join(file).is_file()).map(str::to_owned).collect())
    }

    /// The folder for cargo's build results; respects `CARGO_TARGET_DIR` and cargo's configuration.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// A program built with the profile [`SHIPPED`]: what is released and measured.
    pub fn shipped(&self, program: &str) -> PathBuf {
        self.target.join(SHIPPED).join(format!("{program}{}", env::consts::EXE_SUFFIX))
    }

    /// The workspace of the fuzz targets, which has its own lock file and flags.
    pub fn fuzz_manifest(&self) -> PathBuf {
        self.root.join("fuzz/Cargo.toml")
    }

    /// The folder where real peers are unpacked. Always below the root, because the tests look for them there.
    pub fn peers(&self) -> PathBuf {
        self.root.join("target/peers")
    }

    /// The folder with runtimes, programs and data for tests, if it exists: `RUNTAP_SHARED`, otherwise `shared` beside
    /// the workspace.
    pub fn shared(&self) -> Result<Option<PathBuf>> {
        if let Some(given) = env::var_os("RUNTAP_SHARED") {
            let given = self.root.join(given);
            if !given.is_dir() {
                bail!("RUNTAP_SHARED is {}, which is not a folder", given.display());
            }
            return Ok(Some(given));
        }
        let beside = self.root.parent().map(|parent| parent.join("shared"));
        Ok(beside.filter(|folder| folder.join("runtimes").is_dir()))
    }

    /// `cargo ARGS…` in the root folder.
    pub fn cargo(&self, args: &[&str]) -> Tool {
        Tool::cargo(&self.root).args(args)
    }

    /// Another tool in the root folder.
    pub fn tool(&self, program: &str) -> Tool {
        Tool::new(&self.root, program)
    }

    /// Members and targets, without resolving dependencies, which could need the network.
    pub fn metadata(&self, manifest: &Path) -> Result<Value> {
        metadata(&self.root, manifest)
    }
}

fn metadata(root: &Path, manifest: &Path) -> Result<Value> {
    let cargo =
        Tool::cargo(root).args(&["metadata", "--format-version", "1", "--no-deps", "--manifest-path"]);
    let text = cargo.arg(manifest).quiet().capture()?;
    serde_json::from_str(&text).context("cargo metadata printed no JSON")
}
