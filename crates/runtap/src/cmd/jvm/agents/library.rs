//! `runtap jvm agent`: the agent's library as a file, for JVMs that are started with `-agentpath:` by somebody else.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::carried::Carried;
use crate::cli::JvmAgent;
use crate::exit::{self, expected};
use crate::output::Output;

pub(super) fn run(options: &JvmAgent, output: Output) -> anyhow::Result<u8> {
    let path = options.output.clone().unwrap_or_else(|| PathBuf::from("libruntap_jvm_agent.so"));
    let carried = Carried::unpack()?;
    write(&path, &carried.bytes)
        .map_err(|error| expected(exit::FAILED, format!("cannot write {}: {error}", path.display()), None))?;
    let shown = std::path::absolute(&path).unwrap_or(path);
    output.note(format_args!(
        "written; for a collector ('runtap jvm hq'): java -agentpath:{}=host=127.0.0.1,port=8765 …",
        shown.display()
    ));
    Ok(exit::OK)
}

/// In one step: a JVM may have loaded what is there under this name, and would die if its bytes changed.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut new = name.to_owned();
    new.push(format!(".{:016x}", runtap_transport::random_u64()));
    let new = folder.join(new);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&new)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}
