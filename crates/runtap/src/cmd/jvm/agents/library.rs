//! `runtap jvm agent`: writes the agent's library to a file, for JVMs that are started with `-agentpath:` by other means.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use runtap_os::output::PendingFile;
use runtap_text::Output;

use super::carried;
use crate::cli::JvmAgent;
use crate::exit;

pub(super) fn run(options: &JvmAgent, output: Output) -> anyhow::Result<u8> {
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from("libruntap_jvm_agent.so"));
    let carried = carried::unpack()?;
    write(&path, &carried.bytes)?;
    let shown = std::path::absolute(&path).unwrap_or(path);
    output.note(format_args!(
        "Wrote the library. To connect to a collector ('runtap jvm hq'): java -agentpath:{}=host=127.0.0.1,port=8765 …",
        shown.display()
    ));
    Ok(exit::OK)
}

/// Writes the library atomically: a JVM that has loaded the existing file would crash if its contents changed. Only the owner
/// may write to the file, and links of other users are not followed, because any user who can change the file runs code in these
/// JVMs.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let draft = PendingFile::loadable(path)?;
    draft.file().write_all(bytes).with_context(|| format!("can't write {}", path.display()))?;
    draft.appear_whole()?;
    Ok(())
}
