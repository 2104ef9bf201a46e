//! `cargo xtask peers`: installs real .NET runtimes and Microsoft's tools in `target/peers`, for tests.
//!
//! The names are those that tests look for (`dotnet-8`, `dotnet-9`, `dotnet-10`, `dotnet-trace`, …). The sources are
//! the shared folder; otherwise a `dotnet` on the search path, which is linked to; and, with `--download`, the packages
//! of docs/peers.md. The SHA-256 of every archive is checked. The command can be interrupted and repeated: incomplete
//! files never have a final name.
//! half unpacked under a final name, or bring anything into the product.

mod download;
mod installed;
mod shared;
mod unpack;

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use xtask::args::Args;
use xtask::output;
use xtask::step::Outcome;
use xtask::workspace::Workspace;

/// A peer that is installed in `target/peers`.
#[derive(Debug)]
struct Peer {
    /// Name of the folder.
    name: String,
    /// Description of its source.
    from: String,
}

/// The folder of the peers, locked by one xtask at a time.
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

/// The step of `cargo xtask ci --all`, which does not use the network.
pub(crate) fn from_here(ws: &Workspace) -> Result<Outcome> {
    if let Some(why) = no_peers_here() {
        return Ok(Outcome::Skipped(why.to_owned()));
    }
    let peers = Peers::open(ws)?;
    let mut ready = peers.bring()?;
    ready.extend(download::already_here(&peers));
    report(&ready);
    if ready.is_empty() {
        return Ok(Outcome::Skipped(format!("{NOTHING}; tests that need a runtime are skipped")));
    }
    Ok(Outcome::Passed)
}

const NOTHING: &str = "no real runtime: no shared folder (RUNTAP_SHARED), no dotnet on the search path; --download downloads some";

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

    /// Installs peers from the shared folder, where failures are errors, or else from what is installed.
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
