//! Copies files of other processes up to the size they had when copying started.
//!
//! A sparse file of a few bytes may have a size of petabytes: holes are not read and stay holes, and the free space is
//! checked before copying. Source: `lseek(2)`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

#[cfg_attr(unix, path = "copy/unix.rs")]
#[cfg_attr(windows, path = "copy/windows.rs")]
mod native;

use self::native::{parts, room};

/// Copies a file into an empty file, preserving holes.
///
/// # Errors
/// If `from` is not a regular file, there is not enough free space, or `from` became shorter during the copy.
pub fn copy(from: &File, to: &File) -> io::Result<()> {
    let meta = from.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let len = meta.len();
    let needed = parts(from, len).try_fold(0u64, |sum, part| part.map(|(start, end)| sum + (end - start)))?;
    if needed > room(to)? {
        return Err(io::ErrorKind::StorageFull.into());
    }
    // Write at most the counted bytes, even if the file changes meanwhile.
    let mut left = needed;
    let (mut source, mut target) = (from, to);
    for part in parts(from, len) {
        let (start, end) = part?;
        let most = (end - start).min(left);
        source.seek(SeekFrom::Start(start))?;
        target.seek(SeekFrom::Start(start))?;
        // `io::copy` copies inside the kernel if the file systems support it.
        match io::copy(&mut source.take(most), &mut target)? {
            copied if copied < most => return Err(io::ErrorKind::UnexpectedEof.into()),
            copied if copied < end - start => {
                return Err(io::Error::other("it changed while it was being copied"));
            }
            copied => left -= copied,
        }
    }
    to.set_len(len)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn holes_are_preserved() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        from.write_all_at(b"first", 0).unwrap();
        from.write_all_at(b"last", 1 << 40).unwrap();
        from.set_len(1 << 41).unwrap();
        copy(&from, &to).unwrap();
        let meta = to.metadata().unwrap();
        assert_eq!(meta.len(), 1 << 41);
        assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
        let mut bytes = [0; 5];
        to.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"first");
        to.read_exact_at(&mut bytes[..4], 1 << 40).unwrap();
        assert_eq!(&bytes[..4], b"last");
    }

    #[test]
    fn every_byte_is_copied() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let bytes: Vec<u8> = (0..=250).cycle().take(3_000_007).collect();
        from.write_all_at(&bytes, 0).unwrap();
        copy(&from, &to).unwrap();
        let mut copied = vec![0; bytes.len()];
        to.read_exact_at(&mut copied, 0).unwrap();
        assert!(copied == bytes && to.metadata().unwrap().len() == bytes.len() as u64);
        // An empty file is valid too.
        let empty = tempfile::tempfile().unwrap();
        copy(&tempfile::tempfile().unwrap(), &empty).unwrap();
        assert_eq!(empty.metadata().unwrap().len(), 0);
    }

    #[test]
    fn a_device_is_rejected() {
        let to = tempfile::tempfile().unwrap();
        let error = copy(&File::open("/dev/zero").unwrap(), &to).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), to.metadata().unwrap().len()),
            ("it is not a regular file", 0)
        );
    }
}
