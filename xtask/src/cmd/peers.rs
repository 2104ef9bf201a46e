//! `cargo xtask peers`: real .NET runtimes and Microsoft's tools, to test against, in `target/peers`.
//!
//! Owns: the names that tests look for (`dotnet-8`, `dotnet-9`, `dotnet-10`, `dotnet-trace`, …) and where they come
//! from: the shared folder; else a `dotnet` on the search path, linked to; and, with `--download`, the packages of
//! docs/peers.md. Every archive's SHA-256 is checked. Safe to interrupt and to call again. Refuses to: leave anything
//! half unpacked under a final name, or bring anything into the product.

mod download;
mod installed;
mod shared;
mod unpack;

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::args::Args;
use crate::output;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Something that is ready under `target/peers`.
#[derive(Debug)]
struct Peer {
    /// The folder's name.
    name: String,
    /// Where it came from, for the reader.
    from: String,
}

/// The folder that peers are put into, held by one xtask at a time.
#[derive(Debug)]
struct Peers<'a> {
    ws: &'a Workspace,
    folder: PathBuf,
    _lock: File,
}

pub(crate) fn command(ws: &Workspace, args: &Args) -> Result<()> {
    if let Some(why) = no_peers_here() {
        bail!(why);
    }
    let peers = Peers::open(ws)?;
    let mut ready = peers.bring()?;
    if args.has("--download") {
        ready.extend(download::bring(&peers)?);
    }
    report(&ready);
    if ready.is_empty() {
        bail!("{NOTHING}");
    }
    Ok(())
}

/// The step of `cargo xtask ci`: whatever this machine has, without the network.
pub(crate) fn from_here(ws: &Workspace) -> Result<Outcome> {
    if let Some(why) = no_peers_here() {
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let peers = Peers::open(ws)?;
    let mut ready = peers.bring()?;
    ready.extend(download::already_here(&peers));
    report(&ready);
    if ready.is_empty() {
        return Ok(Outcome::Skipped(format!("{NOTHING}; tests that need one say that they are skipped")));
    }
    Ok(Outcome::Passed)
}

const NOTHING: &str =
    "no real runtime: no shared folder (RUNTAP_SHARED), no dotnet on the search path; --download brings some";

fn no_peers_here() -> Option<&'static str> {
    let fits = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    (!fits).then_some("the peers are programs for x86-64 Linux with glibc")
}

impl<'a> Peers<'a> {
    fn open(ws: &'a Workspace) -> Result<Self> {
        let folder = ws.peers();
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let lock = File::create(folder.join(".lock")).context("cannot create the lock file")?;
        lock.lock().context("cannot lock target/peers")?;
        unpack::remove_parts(&folder)?;
        Ok(Self { ws, folder, _lock: lock })
    }

    /// From the shared folder, where a failure is one; else what is installed.
    fn bring(&self) -> Result<Vec<Peer>> {
        match self.ws.shared()? {
            Some(folder) => shared::bring(self, &folder),
            None => installed::bring(self),
        }
    }
}

fn report(ready: &[Peer]) {
    for peer in ready {
        output::note(&format!("{:<22} {}", peer.name, peer.from));
    }
}
