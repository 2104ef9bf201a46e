//! Builds the Debian package (deb(5), Debian Policy 4.7) from the directory of an archive: file locations, `control`,
//! `copyright`, the changelog, and lintian overrides for the intentionally static program. A package is an ar archive
//! of two tar archives, so no Debian tools are needed. The package contains no maintainer scripts.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};

use super::contents::{self, SHELLS, THIRD_PARTY, copy, make, write};
use super::pack;
use super::source::Source;
use xtask::workspace::Workspace;

const MAINTAINER: &str = "The runtap developers <runtap@users.noreply.github.com>";
/// Debian revision of the version.
const REVISION: &str = "1";
const DOC: &str = "usr/share/doc/runtap";

/// Where shells search for the completions of installed programs.
const COMPLETIONS: [(&str, &str); SHELLS.len()] = [
    ("bash", "usr/share/bash-completion/completions/runtap"),
    ("zsh", "usr/share/zsh/vendor-completions/_runtap"),
    ("fish", "usr/share/fish/vendor_completions.d/runtap.fish"),
];

/// Explains to lintian why the program differs from Debian's own.
const OVERRIDES: &str = "\
# One file for every Linux: docs/design/static-binary.md.
runtap: statically-linked-binary [usr/bin/runtap]
runtap: shared-library-lacks-prerequisites [usr/bin/runtap]
# No package of the archive, so no bug asks for it.
runtap: initial-upload-closes-no-bugs [usr/share/doc/runtap/changelog.Debian.gz:1]
";

/// Writes `dist/runtap_VERSION_ARCH.deb` and returns its path.
pub(super) fn package(
    ws: &Workspace,
    source: &Source,
    architecture: &str,
    (from, dist): (&Path, &Path),
) -> Result<PathBuf> {
    let work = dist.join(".deb");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    let (data, control) = (work.join("data"), work.join("control"));
    make(&control)?;
    lay_out(ws, source, from, &data)?;
    let mut sums = String::new();
    let mut bytes = 0;
    for file in contents::files(&data)? {
        let said = ws.tool("md5sum").arg(&file).folder(&data).quiet().capture()?;
        sums.push_str(&said);
        bytes += fs::metadata(data.join(&file))?.len();
    }
    write(&control.join("md5sums"), sums)?;
    write(&control.join("control"), control_file(&source.version, architecture, bytes))?;
    for (folder, archive) in [(&control, "control.tar.xz"), (&data, "data.tar.xz")] {
        pack::tar_xz(ws, source.time, folder, &["."], &work.join(archive))?;
    }
    let place = dist.join(format!("runtap_{}-{REVISION}_{architecture}.deb", source.version));
    let mut members = vec![("debian-binary", b"2.0\n".to_vec())];
    for name in ["control.tar.xz", "data.tar.xz"] {
        members.push((name, fs::read(work.join(name))?));
    }
    let mut file = File::create(&place).with_context(|| format!("cannot create {}", place.display()))?;
    file.write_all(&ar(source.time, &members))?;
    fs::remove_dir_all(&work)?;
    Ok(place)
}

fn lay_out(ws: &Workspace, source: &Source, from: &Path, data: &Path) -> Result<()> {
    let place = |path: &str| -> Result<PathBuf> {
        let place = data.join(path);
        make(place.parent().context("a file lies in a directory")?)?;
        Ok(place)
    };
    copy(&from.join("runtap"), &place("usr/bin/runtap")?)?;
    for (shell, path) in COMPLETIONS {
        copy(&from.join("completions").join(format!("runtap.{shell}")), &place(path)?)?;
    }
    for page in contents::files(&from.join("man"))? {
        let name = format!("usr/share/man/man1/{}.gz", page.display());
        gzip(&fs::read(from.join("man").join(&page))?, &place(&name)?)?;
    }
    let doc = |name: &str| place(&format!("{DOC}/{name}"));
    gzip(&fs::read(from.join("CHANGELOG.md"))?, &doc("changelog.gz")?)?;
    gzip(&fs::read(from.join(THIRD_PARTY))?, &doc(&format!("{THIRD_PARTY}.gz"))?)?;
    gzip(debian_changelog(source).as_bytes(), &doc("changelog.Debian.gz")?)?;
    copy(&from.join("sbom.cdx.json"), &doc("sbom.cdx.json")?)?;
    let mit = fs::read_to_string(ws.root().join("LICENSE-MIT")).context("cannot read LICENSE-MIT")?;
    write(&doc("copyright")?, copyright(&mit))?;
    write(&place("usr/share/lintian/overrides/runtap")?, OVERRIDES)?;
    for file in contents::files(data)? {
        let mode = if file == Path::new("usr/bin/runtap") { 0o755 } else { 0o644 };
        fs::set_permissions(data.join(&file), fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Compresses without the name and time of the file, like `gzip -9n`.
fn gzip(content: &[u8], to: &Path) -> Result<()> {
    let mut file = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    file.write_all(content)?;
    write(to, file.finish()?)
}

fn control_file(version: &str, architecture: &str, bytes: u64) -> String {
    format!(
        "Package: runtap\n\
         Version: {version}-{REVISION}\n\
         Architecture: {architecture}\n\
         Maintainer: {MAINTAINER}\n\
         Installed-Size: {}\n\
         Section: devel\n\
         Priority: optional\n\
         Homepage: {}\n\
         Description: profiles, events and dumps of running .NET and Java programs\n \
         runtap lists, queries, traces and dumps running programs, and writes files in\n \
         formats that common viewers open. It needs no SDK, no JDK and no restart of the\n \
         programs.\n",
        bytes.div_ceil(1024),
        env!("CARGO_PKG_REPOSITORY")
    )
}

fn debian_changelog(source: &Source) -> String {
    format!(
        "runtap ({}-{REVISION}) unstable; urgency=medium\n\n  * Changes are in changelog.gz.\n\n -- {MAINTAINER}  {}\n",
        source.version,
        source.mail_time()
    )
}

/// Returns a machine-readable copyright file (DEP-5). Debian systems contain the text of the Apache license.
fn copyright(mit: &str) -> String {
    let mut indented = String::new();
    for line in mit.lines().skip_while(|line| !line.starts_with("Permission")) {
        let _ = writeln!(indented, " {}", if line.is_empty() { "." } else { line });
    }
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: runtap\n\
         Source: {}\n\
         Comment: The licences of the libraries in the program are in {THIRD_PARTY}.gz.\n\n\
         Files: *\n\
         Copyright: 2026 The runtap developers\n\
         License: Expat or Apache-2.0\n\n\
         License: Expat\n{indented}\n\
         License: Apache-2.0\n \
         On Debian systems, the full text of the Apache License, version 2.0, is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        env!("CARGO_PKG_REPOSITORY")
    )
}

/// Returns an archive in the common ar format (deb(5)): headers of 60 bytes, and a line break after members of odd
/// length.
fn ar(time: i64, members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut file = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let (owner, mode) = (0, "100644");
        let header = format!("{name:<16}{time:<12}{owner:<6}{owner:<6}{mode:<8}{:<10}`\n", content.len());
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(content);
        if content.len() % 2 == 1 {
            file.push(b'\n');
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::source;

    #[test]
    fn an_archive_has_headers_of_sixty_bytes_and_even_members() {
        let file =
            ar(1_700_000_000, &[("debian-binary", b"2.0\n".to_vec()), ("x", b"abc".to_vec()), ("y", vec![])]);
        assert_eq!(file.len(), 8 + 60 + 4 + 60 + 4 + 60);
        let header = std::str::from_utf8(&file[8..68]).unwrap();
        assert_eq!(header, "debian-binary   1700000000  0     0     100644  4         `\n");
        assert_eq!(&file[72..73], b"x");
        assert_eq!(file[72 + 60 + 3], b'\n');
    }

    #[test]
    fn control_files_have_lines_that_dpkg_takes() {
        let control = control_file("0.1.0", "amd64", 2049);
        assert!(control.contains("\nInstalled-Size: 3\n"), "{control}");
        assert!(control.contains("\nVersion: 0.1.0-1\n"), "{control}");
        let (_, described) = control.split_once("Description: ").unwrap();
        assert!(
            described.lines().skip(1).all(|line| line.starts_with(' ') && !line.starts_with("  ")),
            "{control}"
        );
        let text = copyright("MIT License\n\nCopyright\n\nPermission is granted\n\nmore\n");
        assert!(
            text.contains("License: Expat\n Permission is granted\n .\n more\n\nLicense: Apache-2.0\n On"),
            "{text}"
        );
        assert!(debian_changelog(&source::tests::sample()).ends_with(">  Tue, 14 Nov 2023 22:13:20 +0000\n"));
    }
}
