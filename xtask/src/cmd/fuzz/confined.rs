//! A separate root for a fuzz target (`confined.sh`): a target that writes elsewhere changes nothing and fails. No
//! privileges are needed; on systems without namespaces, which is reported, targets run unconfined.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::output;
use crate::process::Tool;
use crate::workspace::Workspace;

/// How a target is confined on this system.
#[derive(Debug)]
pub(crate) struct Confined {
    unshare: &'static [&'static str],
    script: PathBuf,
    /// Mount point of the root, which only the target sees.
    mount_point: PathBuf,
}

impl Confined {
    /// Detects how to confine targets. `None` if this system has no mount namespaces for this user.
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
        output::note("no mount namespaces for this user; targets run unconfined");
        Ok(None)
    }

    /// Returns a command that runs `program` so that it can write only below `writable` and in a private `/tmp`.
    pub(crate) fn tool(&self, ws: &Workspace, writable: &[&Path], program: &Path) -> Tool {
        let mut tool = ws.tool("unshare").args(self.unshare).arg("sh").arg(&self.script);
        tool = tool.arg(&self.mount_point).arg(ws.root()).args(writable).arg("--");
        tool.quiet().env("TMPDIR", "/tmp").arg(program)
    }
}
