//! Installs peers from the shared folder: runtimes with its own `unpack`, which checks their checksums, and tools from
//! archives.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::unpack::{self, Archive};
use super::{Peer, Peers};

/// Major versions, each in a root of its own, so that tests know which one they use.
const MAJORS: [u8; 3] = [8, 9, 10];

/// Name below `target/peers` (and of the only folder in the archive), and archive below the shared folder.
const TOOLS: [(&str, &str); 4] = [
    ("dotnet-trace", "peers/dotnet-trace.tar.xz"),
    ("tebench", "peers/tebench/tebench.tar.xz"),
    ("dncli", "peers/dncli/dncli.tar.xz"),
    ("mspipe", "peers/mspipe/mspipe.tar.xz"),
];

/// Programs without libraries of their own: name, the tool whose folder they are copied to, and their source.
const GUESTS: [(&str, &str, &str); 2] =
    [("tegc", "tebench", "peers/tebench/analysis"), ("tedump", "tebench", "peers/tebench/analysis")];

pub(super) fn bring(peers: &Peers<'_>, shared: &Path) -> Result<Vec<Peer>> {
    let mut ready = Vec::new();
    let sums = shared.join("runtimes/SHA256SUMS");
    let sums = fs::read_to_string(&sums).with_context(|| format!("cannot read {}", sums.display()))?;
    for major in MAJORS {
        let version = version_of(&sums, major)
            .with_context(|| format!("the shared folder has no archive of .NET {major}"))?;
        let name = format!("dotnet-{major}");
        let folder = peers.folder.join(&name);
        unpack::remove_link(&folder)?;
        let script = shared.join("runtimes/unpack");
        peers.ws.tool("bash").arg(script).arg(version).arg(&folder).quiet().capture()?;
        ready.push(Peer { name, from: format!("{version} from the shared folder, sha256 checked") });
    }
    for (name, archive) in TOOLS {
        let archive = Archive { path: &shared.join(archive), inner: name, executables: &[] };
        let sum = unpack::sha256(archive.path)?;
        unpack::unpack(peers, name, &sum, &archive)?;
        ready.push(Peer {
            name: name.to_owned(),
            from: format!("from the shared folder, sha256 {}", unpack::short(&sum)),
        });
    }
    for (name, host, from) in GUESTS {
        for file in [format!("{name}.runtimeconfig.json"), format!("{name}.dll")] {
            unpack::copy(&shared.join(from).join(&file), &peers.folder.join(host).join(&file))?;
        }
        ready.push(Peer { name: name.to_owned(), from: format!("from the shared folder, beside {host}") });
    }
    Ok(ready)
}

/// Returns the version of the archive `dotnet-MAJOR.x.y-linux-x64.tar.xz` that `SHA256SUMS` lists.
fn version_of(sums: &str, major: u8) -> Option<&str> {
    let files = sums.lines().filter_map(|line| line.split_whitespace().nth(1));
    let mut versions =
        files.filter_map(|file| file.strip_prefix("dotnet-")?.strip_suffix("-linux-x64.tar.xz"));
    versions.find(|version| version.split('.').next() == Some(&major.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_of_each_major() {
        let sums = "aa  dotnet-10.0.12-linux-x64.tar.xz\nbb  dotnet-8.0.33-linux-x64.tar.xz\ncc  other-9.0.1-linux-x64.tar.xz\n";
        assert_eq!(version_of(sums, 10), Some("10.0.12"));
        assert_eq!(version_of(sums, 8), Some("8.0.33"));
        assert_eq!(version_of(sums, 9), None);
        assert_eq!(version_of(sums, 1), None);
    }
}
