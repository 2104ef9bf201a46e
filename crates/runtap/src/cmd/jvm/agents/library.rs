//! `runtap jvm agent`: the agent's library as a file, for JVMs that are started with `-agentpath:` by somebody else.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtap_os::output::PendingFile;

use super::carried::Carried;
use crate::cli::JvmAgent;
use crate::exit;
use crate::output::Output;

pub(super) fn run(options: &JvmAgent, output: Output) -> anyhow::Result<u8> {
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from("libruntap_jvm_agent.so"));
    let carried = Carried::unpack()?;
    write(&path, &carried.bytes)?;
    let shown = std::path::absolute(&path).unwrap_or(path);
    output.note(format_args!(
        "written; for a collector ('runtap jvm hq'): java -agentpath:{}=host=127.0.0.1,port=8765 …",
        shown.display()
    ));
    Ok(exit::OK)
}

/// In one step: a JVM may have loaded what is there under this name, and would die if its bytes changed. Nobody but us may write
/// to it, and no link of another user leads there: whoever can change it runs code in these JVMs.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let draft = PendingFile::loadable(path)?;
    draft.file().write_all(bytes).with_context(|| format!("can't write {}", path.display()))?;
    draft.appear_whole()?;
    Ok(())
}
