//! Reading of ZIP files and the archives in them.
//!
//! Selects the relevant entries and unpacks them within limits. `rawzip` parses the ZIP structure, `flate2` inflates.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive, ZipVerification};

use super::{JarError, Options, Reason, Unread};

/// The bytes before the ZIP file in a JMOD file.
const JMOD: &[u8] = b"JM\x01\x00";
const MANIFEST: &[u8] = b"META-INF/MANIFEST.MF";
const VERSIONS: &[u8] = b"META-INF/versions/";
/// The folders whose classes are named by the path below them.
const ROOTS: [&[u8]; 2] = [b"BOOT-INF/classes/", b"WEB-INF/classes/"];

/// The number of bytes that may be unpacked from an archive of any size.
const BASE_LIMIT: u64 = 64 << 20;

/// Passes the classes that a program would load from this archive and from the archives in it to `class`: the path
/// and the bytes of each. Returns the entries that were not read, including classes for which `class` failed.
///
/// # Errors
/// Fails if the bytes are not a ZIP file.
pub fn for_each_class(
    bytes: &[u8],
    options: &Options,
    class: impl FnMut(&str, &[u8]) -> Result<(), Reason>,
) -> Result<Vec<Unread>, JarError> {
    let by_size = options.limits.ratio.saturating_mul(bytes.len() as u64).saturating_add(BASE_LIMIT);
    let limit = options.limits.total.min(by_size);
    let mut walk =
        ArchiveWalk { options, class, total: 0, limit, classes: 0, full: false, unread: Vec::new() };
    walk.archive(bytes, "", options.limits.depth)?;
    Ok(walk.unread)
}

/// An entry of the central directory.
struct Entry {
    /// The full name.
    path: Vec<u8>,
    method: CompressionMethod,
    place: ZipArchiveEntryWayfinder,
    /// The first Java release that the entry applies to.
    release: u16,
}

struct ArchiveWalk<'o, F> {
    options: &'o Options,
    class: F,
    /// The total size of unpacked bytes and paths so far.
    total: u64,
    /// The limit of `total`.
    limit: u64,
    classes: usize,
    /// Whether a limit was reached, so that nothing more is read.
    full: bool,
    unread: Vec<Unread>,
}

impl<F: FnMut(&str, &[u8]) -> Result<(), Reason>> ArchiveWalk<'_, F> {
    fn archive(&mut self, bytes: &[u8], prefix: &str, depth: u8) -> Result<(), JarError> {
        let (bytes, is_jmod) = bytes.strip_prefix(JMOD).map_or((bytes, false), |zip| (zip, true));
        let archive =
            ZipArchive::from_slice(bytes).map_err(|error| JarError::NotAnArchive(error.to_string()))?;
        for entry in self.entries(&archive, is_jmod)? {
            if self.full {
                return Ok(());
            }
            let path = format!("{prefix}{}", String::from_utf8_lossy(&entry.path));
            self.total = self.total.saturating_add(path.len() as u64);
            if let Err(reason) = self.entry(&archive, &entry, &path, depth) {
                self.unread.push(Unread { path, reason });
            }
        }
        Ok(())
    }

    fn entry(&mut self, archive: &Zip<'_>, entry: &Entry, path: &str, depth: u8) -> Result<(), Reason> {
        let limits = self.options.limits;
        if self.classes + self.unread.len() >= limits.classes {
            self.full = true;
            return Err(Reason::Limit { what: "classes", limit: limits.classes as u64 });
        }
        if self.total > self.limit {
            self.full = true;
            return Err(Reason::Limit { what: "bytes in total", limit: self.limit });
        }
        if is_archive(&entry.path) {
            let Some(inside) = depth.checked_sub(1) else {
                return Err(Reason::Limit { what: "nested archives", limit: limits.depth.into() });
            };
            let bytes = self.unpack(archive, entry)?;
            self.archive(&bytes, &format!("{path}!/"), inside)?;
            return Ok(());
        }
        self.classes += 1;
        let bytes = self.unpack(archive, entry)?;
        (self.class)(path, &bytes)
    }

    /// Returns the relevant entries, in the order of the archive.
    fn entries(&mut self, archive: &Zip<'_>, is_jmod: bool) -> Result<Vec<Entry>, JarError> {
        let mut manifest = None;
        // The entries with their position in the archive, by the name that a class loader would look up.
        let mut chosen: BTreeMap<Vec<u8>, (usize, Entry)> = BTreeMap::new();
        let mut versioned = Vec::new();
        for (number, record) in archive.entries().enumerate() {
            let record = record.map_err(|error| JarError::NotAnArchive(error.to_string()))?;
            let path = record.file_path().as_bytes().to_vec();
            let (method, place) = (record.compression_method(), record.wayfinder());
            let mut entry = Entry { path, method, place, release: 0 };
            if entry.path == MANIFEST {
                manifest = Some(entry);
            } else if !entry.path.ends_with(b".class") && !is_archive(&entry.path) {
                // Folders and resources are ignored.
            } else if let Some((release, name)) = versioned_name(&entry.path) {
                entry.release = release;
                versioned.push((name.to_vec(), number, entry));
            } else {
                let name = ROOTS.iter().find_map(|root| entry.path.strip_prefix(*root));
                let name = name.or_else(|| entry.path.strip_prefix(b"classes/").filter(|_| is_jmod));
                chosen.entry(name.unwrap_or(&entry.path).to_vec()).or_insert((number, entry));
            }
        }
        if !versioned.is_empty() && manifest.is_some_and(|entry| self.is_multi_release(archive, &entry)) {
            for (name, number, entry) in versioned {
                let newer = chosen.get(&name).is_none_or(|(_, known)| known.release < entry.release);
                if newer && entry.release <= self.options.release {
                    chosen.insert(name, (number, entry));
                }
            }
        }
        let mut entries: Vec<_> = chosen.into_values().collect();
        entries.sort_unstable_by_key(|(number, _)| *number);
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    fn is_multi_release(&mut self, archive: &Zip<'_>, manifest: &Entry) -> bool {
        match self.unpack(archive, manifest) {
            Ok(bytes) => is_multi_release_manifest(&bytes),
            Err(reason) => {
                self.unread.push(Unread { path: String::from_utf8_lossy(MANIFEST).into_owned(), reason });
                false
            }
        }
    }

    fn unpack(&mut self, archive: &Zip<'_>, entry: &Entry) -> Result<Vec<u8>, Reason> {
        let damaged = |error: rawzip::Error| Reason::Damaged(error.to_string());
        let found = archive.get_entry(entry.place).map_err(damaged)?;
        let limits = self.options.limits;
        let left = self.limit.saturating_sub(self.total);
        let limit = limits.entry.min(left);
        let packed = found.data();
        let mut bytes = Vec::new();
        // Read one byte more than allowed, to distinguish the limit from the end.
        let read = match entry.method {
            CompressionMethod::STORE => packed.take(limit.saturating_add(1)).read_to_end(&mut bytes),
            CompressionMethod::DEFLATE => {
                DeflateDecoder::new(packed).take(limit.saturating_add(1)).read_to_end(&mut bytes)
            }
            other => return Err(Reason::Method(other.as_u16())),
        };
        read.map_err(|error| Reason::Damaged(error.to_string()))?;
        let length = bytes.len() as u64;
        self.total = self.total.saturating_add(length);
        if length > limit {
            self.full = limit == left;
            let (what, limit) =
                if self.full { ("bytes in total", self.limit) } else { ("bytes", limits.entry) };
            return Err(Reason::Limit { what, limit });
        }
        let actual = ZipVerification { crc: rawzip::crc32(&bytes), uncompressed_size: length };
        found.claim_verifier().valid(actual).map_err(damaged)?;
        Ok(bytes)
    }
}

type Zip<'b> = ZipSliceArchive<&'b [u8]>;

fn is_archive(path: &[u8]) -> bool {
    path.ends_with(b".jar") || path.ends_with(b".war")
}

/// Splits the path of a versioned class: `META-INF/versions/11/a/B.class` gives 11 and `a/B.class`.
fn versioned_name(path: &[u8]) -> Option<(u16, &[u8])> {
    let rest =
        ROOTS.iter().find_map(|root| path.strip_prefix(*root)).unwrap_or(path).strip_prefix(VERSIONS)?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let (number, name) = rest.split_at_checked(slash)?;
    // Java 9 is the first release that supports such folders.
    let release =
        str::from_utf8(number).ok()?.parse().ok().filter(|release| *release >= 9).unwrap_or(u16::MAX);
    name.strip_prefix(b"/").map(|name| (release, name))
}

/// Returns the first Java release that a class in a multi-release JAR file applies to, by a path as passed by
/// [`for_each_class`], with any prefix up to `!/`. `None` for a class that applies to all releases without a
/// versioned one.
pub fn release(path: &str) -> Option<u16> {
    let inside = path.rsplit_once("!/").map_or(path, |(_, inside)| inside);
    versioned_name(inside.as_bytes()).map(|(release, _)| release)
}

/// Returns whether the main section of a manifest has `Multi-Release: true`.
fn is_multi_release_manifest(manifest: &[u8]) -> bool {
    let lines = manifest.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let main = lines.take_while(|line| !line.is_empty());
    let mut values = main.filter_map(|line| line.split_at_checked("Multi-Release:".len()));
    values.any(|(name, value)| {
        name.eq_ignore_ascii_case(b"Multi-Release:") && value.trim_ascii().eq_ignore_ascii_case(b"true")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_section_of_a_manifest_declares_multi_release() {
        assert!(is_multi_release_manifest(b"Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\n"));
        assert!(is_multi_release_manifest(b"multi-release:TRUE"));
        assert!(
            !is_multi_release_manifest(b"Manifest-Version: 1.0\n\nMulti-Release: true\n"),
            "of the main section only"
        );
        assert!(!is_multi_release_manifest(b"Multi-Release: false\n"));
    }

    #[test]
    fn paths_of_versioned_classes_have_a_release() {
        assert_eq!(versioned_name(b"META-INF/versions/11/a/B.class"), Some((11, b"a/B.class".as_slice())));
        assert_eq!(
            versioned_name(b"META-INF/versions/8/a/B.class"),
            Some((u16::MAX, b"a/B.class".as_slice()))
        );
        assert_eq!(versioned_name(b"META-INF/version/9/B.class"), None);
        assert_eq!(release("app.jar!/META-INF/versions/11/a/B.class"), Some(11));
        assert_eq!(release("app.war!/WEB-INF/lib/x.jar!/META-INF/versions/9/B.class"), Some(9));
        assert_eq!(release("app.jar!/a/B.class"), None);
    }
}
