//! A root of its own for a fuzz target (`confined.sh`): a target that writes elsewhere changes nothing of the machine, and fails.
//!
//! Owns: whether this system permits that, and the command line. Refuses to: need privileges; without namespaces a target
//! runs as any program does, which is told, and confines its files itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::output;
use crate::process::Tool;
use crate::workspace::Workspace;

/// How a target gets a root of its own here.
#[derive(Debug)]
pub(crate) struct Confined {
    unshare: &'static [&'static str],
    script: PathBuf,
    /// Where the root is mounted, which only the target sees.
    mount_point: PathBuf,
}

impl Confined {
    /// `None` if this system has no mount namespaces for this user.
    pub(crate) fn find(ws: &Workspace) -> Result<Option<Self>> {
        let script = ws.root().join("xtask/src/cmd/fuzz/confined.sh");
        let mount_point = ws.target().join("fuzz-root");
        fs::create_dir_all(&mount_point)
            .with_context(|| format!("cannot create {}", mount_point.display()))?;
        let kinds: [&[&str]; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];
        for unshare in kinds {
            let confined = Self { unshare, script: script.clone(), mount_point: mount_point.clone() };
            if confined.tool(ws, &[], Path::new("true")).works() {
                return Ok(Some(confined));
            }
        }
        output::note("this system has no mount namespaces for this user: the targets run beside its files");
        Ok(None)
    }

    /// What runs `program` so that it can write below `writable` and in a `/tmp` of its own, and nowhere else.
    pub(crate) fn tool(&self, ws: &Workspace, writable: &[&Path], program: &Path) -> Tool {
        let mut tool = ws.tool("unshare").args(self.unshare).arg("sh").arg(&self.script);
        tool = tool.arg(&self.mount_point).arg(ws.root()).args(writable).arg("--");
        tool.quiet().env("TMPDIR", "/tmp").arg(program)
    }
}
