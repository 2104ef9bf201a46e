//! Walking over a zip file and those in it.
//!
//! Owns: which entries count, unpacking within limits. The envelope is read by `rawzip`, deflate by `flate2`.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive, ZipVerification};

use super::{JarError, Options, Reason, Unread};

/// What a jmod has before its zip file.
const JMOD: &[u8] = b"JM\x01\x00";
const MANIFEST: &[u8] = b"META-INF/MANIFEST.MF";
const VERSIONS: &[u8] = b"META-INF/versions/";
/// Folders whose classes have the names below them.
const ROOTS: [&[u8]; 2] = [b"BOOT-INF/classes/", b"WEB-INF/classes/"];

/// Bytes that an archive may have unpacked, however small it is.
const FREE: u64 = 64 << 20;

/// Hands out the classes that a program would load from this archive and from those in it: the path and the bytes of
/// each. A class that `class` can't use is among the results, as is everything else that was not read.
///
/// # Errors
/// If the archive itself is no zip file.
pub fn for_each_class(
    bytes: &[u8],
    options: &Options,
    class: impl FnMut(&str, &[u8]) -> Result<(), Reason>,
) -> Result<Vec<Unread>, JarError> {
    let by_size = options.limits.ratio.saturating_mul(bytes.len() as u64).saturating_add(FREE);
    let limit = options.limits.total.min(by_size);
    let mut walk = Walk { options, class, total: 0, limit, classes: 0, full: false, unread: Vec::new() };
    walk.archive(bytes, "", options.limits.depth)?;
    Ok(walk.unread)
}

/// An entry of the central directory.
struct Entry {
    /// Its whole name.
    path: Vec<u8>,
    method: CompressionMethod,
    place: ZipArchiveEntryWayfinder,
    /// The release it is for.
    release: u16,
}

struct Walk<'o, F> {
    options: &'o Options,
    class: F,
    /// Bytes unpacked so far, and bytes of paths.
    total: u64,
    /// How many they may be.
    limit: u64,
    classes: usize,
    /// Whether the limit of classes or bytes was reached: nothing is read any more.
    full: bool,
    unread: Vec<Unread>,
}

impl<F: FnMut(&str, &[u8]) -> Result<(), Reason>> Walk<'_, F> {
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
            return Err(Reason::Limit { what: "bytes in all", limit: self.limit });
        }
        if is_archive(&entry.path) {
            let Some(inside) = depth.checked_sub(1) else {
                return Err(Reason::Limit { what: "archives in each other", limit: limits.depth.into() });
            };
            let bytes = self.unpack(archive, entry)?;
            self.archive(&bytes, &format!("{path}!/"), inside)?;
            return Ok(());
        }
        self.classes += 1;
        let bytes = self.unpack(archive, entry)?;
        (self.class)(path, &bytes)
    }

    /// The entries that count, in the order of the archive.
    fn entries(&mut self, archive: &Zip<'_>, is_jmod: bool) -> Result<Vec<Entry>, JarError> {
        let mut manifest = None;
        // The number in the order of the archive, by what a class loader would look for.
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
                // A folder or a resource.
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
            Ok(bytes) => says_multi_release(&bytes),
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
        // One byte more than allowed tells a limit from an end.
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
                if self.full { ("bytes in all", self.limit) } else { ("bytes", limits.entry) };
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

/// `META-INF/versions/11/a/B.class` → 11, `a/B.class`.
fn versioned_name(path: &[u8]) -> Option<(u16, &[u8])> {
    let rest =
        ROOTS.iter().find_map(|root| path.strip_prefix(*root)).unwrap_or(path).strip_prefix(VERSIONS)?;
    let slash = rest.iter().position(|byte| *byte == b'/')?;
    let (number, name) = rest.split_at_checked(slash)?;
    // 9 is the first release that looks there.
    let release =
        str::from_utf8(number).ok()?.parse().ok().filter(|release| *release >= 9).unwrap_or(u16::MAX);
    name.strip_prefix(b"/").map(|name| (release, name))
}

/// The release of Java from which on a multi-release jar has a class, by its path as [`for_each_class`] gives it, with whatever
/// begins it up to `!/`. `None`: it is for all that have no other.
pub fn release(path: &str) -> Option<u16> {
    let inside = path.rsplit_once("!/").map_or(path, |(_, inside)| inside);
    versioned_name(inside.as_bytes()).map(|(release, _)| release)
}

/// Whether the main section of a manifest has `Multi-Release: true`.
fn says_multi_release(manifest: &[u8]) -> bool {
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
    fn manifests() {
        assert!(says_multi_release(b"Manifest-Version: 1.0\r\nMulti-Release: true\r\n\r\n"));
        assert!(says_multi_release(b"multi-release:TRUE"));
        assert!(
            !says_multi_release(b"Manifest-Version: 1.0\n\nMulti-Release: true\n"),
            "of the main section only"
        );
        assert!(!says_multi_release(b"Multi-Release: false\n"));
    }

    #[test]
    fn versions() {
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
