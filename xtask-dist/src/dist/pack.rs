//! Packs a directory into a reproducible archive with fixed owners, modes, order and times: tar archives compressed
//! with xz (by GNU tar and xz), and zip archives.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::time::UtcDateTime;
use rawzip::{CompressionMethod, ZipArchiveWriter};

use super::contents;
use xtask::workspace::Workspace;

/// Packs the entries `names` of `folder` into `archive`.
pub(super) fn tar_xz(ws: &Workspace, time: i64, folder: &Path, names: &[&str], archive: &Path) -> Result<()> {
    ws.tool("tar")
        .args(&["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"])
        // Independent of the user's umask.
        .args(&["--mode=u+rw,go=u,go-w", "--create", "--xz"])
        .arg(format!("--mtime=@{time}"))
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(folder)
        .args(names)
        // Several threads would split the input into blocks.
        .env("XZ_OPT", "-6 -T1")
        .env("XZ_DEFAULTS", "")
        .quiet()
        .run()
}

/// Packs the directory `name` in `folder` into `archive`.
pub(super) fn zip(time: i64, folder: &Path, name: &str, archive: &Path) -> Result<()> {
    let file = File::create(archive).with_context(|| format!("cannot create {}", archive.display()))?;
    let mut archive = ZipArchiveWriter::new(file);
    for path in contents::files(&folder.join(name))? {
        let content = fs::read(folder.join(name).join(&path))?;
        let inner = Path::new(name).join(&path).to_string_lossy().replace('\\', "/");
        let executable = path.extension().is_some_and(|it| it == "exe");
        let (mut entry, config) = archive
            .new_file(inner.as_str())
            .compression_method(CompressionMethod::DEFLATE)
            .last_modified(UtcDateTime::from_unix(time))
            .unix_permissions(if executable { 0o755 } else { 0o644 })
            .start()?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::best()));
        writer.write_all(&content)?;
        let (encoder, descriptor) = writer.finish()?;
        encoder.finish()?;
        entry.finish(descriptor)?;
    }
    archive.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::DeflateDecoder;
    use rawzip::ZipArchive;

    use super::*;

    #[test]
    fn a_zip_archive_has_every_file_and_is_the_same_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let text = "a line of text\n".repeat(100);
        fs::create_dir_all(folder.path().join("r/man")).unwrap();
        fs::write(folder.path().join("r/runtap.exe"), "MZ").unwrap();
        fs::write(folder.path().join("r/man/runtap.1"), &text).unwrap();
        let made = |name: &str| {
            let path = folder.path().join(name);
            zip(1_700_000_000, folder.path(), "r", &path).unwrap();
            fs::read(path).unwrap()
        };
        let bytes = made("a.zip");
        assert_eq!(bytes, made("b.zip"));
        let archive = ZipArchive::from_slice(&bytes).unwrap();
        let mut found = Vec::new();
        for entry in archive.entries() {
            let entry = entry.unwrap();
            let inner = archive.get_entry(entry.wayfinder()).unwrap();
            let mut content = String::new();
            DeflateDecoder::new(inner.data()).read_to_string(&mut content).unwrap();
            found.push((String::from_utf8_lossy(entry.file_path().as_ref()).into_owned(), content));
        }
        assert_eq!(
            found,
            [("r/man/runtap.1".to_owned(), text), ("r/runtap.exe".to_owned(), "MZ".to_owned())]
        );
    }
}
