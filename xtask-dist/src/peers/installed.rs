//! Links to an installed `dotnet`, without copying anything.
//!
//! An installation may contain several versions. A program for .NET 8 runs on the lowest suitable one, so the link is
//! named after that; the others are ignored.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Peer, Peers, unpack};
use xtask::output;
use xtask::process;

/// The version that test programs are built for.
const LOWEST_MAJOR: u32 = 8;

pub(super) fn bring(peers: &Peers<'_>) -> Result<Vec<Peer>> {
    let Some(dotnet) = process::find(peers.ws.root(), "dotnet") else { return Ok(Vec::new()) };
    let listed = peers.ws.tool(&dotnet.to_string_lossy()).arg("--list-runtimes").quiet().capture()?;
    let Some((version, root)) = lowest(&listed) else {
        output::note(&format!("{} has no runtime of .NET {LOWEST_MAJOR} or later", dotnet.display()));
        return Ok(Vec::new());
    };
    let name = format!("dotnet-{}", version.split('.').next().unwrap_or(version));
    let place = peers.folder.join(&name);
    unpack::remove_link(&place)?;
    if !place.exists() {
        unpack::link(&root, &place)?;
    }
    Ok(vec![Peer { name, from: format!("{version}, installed in {}", root.display()) }])
}

/// Returns the version and root of the runtime that a program for .NET 8 would run on.
fn lowest(listed: &str) -> Option<(&str, PathBuf)> {
    let runtimes = listed.lines().filter_map(|line| {
        let (version, folder) = line.strip_prefix("Microsoft.NETCore.App ")?.split_once(" [")?;
        let root = Path::new(folder.strip_suffix(']')?).parent()?.parent()?;
        Some((numbers(version)?, version, root.to_owned()))
    });
    let fitting =
        runtimes.filter(|(numbers, ..)| numbers.first().is_some_and(|major| *major >= LOWEST_MAJOR));
    // The lowest major version with its newest patch, according to the roll-forward rule.
    fitting
        .min_by_key(|(numbers, ..)| (numbers.first().copied(), std::cmp::Reverse(numbers.clone())))
        .map(|(_, version, root)| (version, root))
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_lowest_major_with_its_newest_patch() {
        let listed = "Microsoft.AspNetCore.App 8.0.20 [/opt/dotnet/shared/Microsoft.AspNetCore.App]\n\
            Microsoft.NETCore.App 6.0.36 [/opt/dotnet/shared/Microsoft.NETCore.App]\n\
            Microsoft.NETCore.App 8.0.9 [/opt/dotnet/shared/Microsoft.NETCore.App]\n\
            Microsoft.NETCore.App 8.0.20 [/opt/dotnet/shared/Microsoft.NETCore.App]\n\
            Microsoft.NETCore.App 10.0.1 [/opt/dotnet/shared/Microsoft.NETCore.App]\n";
        let (version, root) = lowest(listed).unwrap();
        assert_eq!((version, root.as_path()), ("8.0.20", Path::new("/opt/dotnet")));
    }

    #[test]
    fn old_and_invalid_versions_are_ignored() {
        assert_eq!(lowest("Microsoft.NETCore.App 7.0.1 [/d/shared/Microsoft.NETCore.App]\n"), None);
        assert_eq!(
            lowest("Microsoft.NETCore.App 11.0.0-preview.1 [/d/shared/Microsoft.NETCore.App]\nnonsense\n"),
            None
        );
    }
}
