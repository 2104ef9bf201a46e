//! Fingerprints that distinguish builds of a module: hashes of its files.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;

use crate::Module;
use sha2::{Digest as _, Sha256};

/// The number of bytes that are hashed at the beginning and at the end of a larger file, together with its length.
/// Build ids are located there, and hashing everything would take too long (a processor without SHA instructions hashes
/// 256 KiB in a millisecond). A collision of two builds is harmless, because the tests of a module are listed again.
const HASHED_BYTES: u64 = 64 << 10;

/// Returns the first 128 bits of the SHA-256 of the module's file, and of the `.dll` beside it if the file is a
/// launcher. `None` if the file cannot be read.
pub(crate) fn fingerprint(module: &Module) -> Option<String> {
    let mut hash = Sha256::new();
    add(&mut hash, module.path()).ok()?;
    let mut managed = module.path().to_owned().into_os_string();
    managed.push(".dll");
    // Application hosts are identical for all programs of one name.
    let _ = add(&mut hash, Path::new(&managed));
    Some(hex(&hash.finalize(), 16))
}

/// Formats the first bytes of a hash as hexadecimal digits.
pub(crate) fn hex(digest: &[u8], bytes: usize) -> String {
    digest.iter().take(bytes).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn add(hash: &mut Sha256, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    hash.update(length.to_le_bytes());
    add_all((&file).take(HASHED_BYTES), hash)?;
    if length > HASHED_BYTES {
        file.seek(SeekFrom::Start(length - HASHED_BYTES.min(length - HASHED_BYTES)))?;
        add_all(file.take(HASHED_BYTES), hash)?;
    }
    Ok(())
}

fn add_all(mut from: impl Read, hash: &mut Sha256) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => hash.update(buffer.get(..length).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_change_of_the_program_changes_the_fingerprint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Shop");
        let module = Module::new(&path);
        assert_eq!(fingerprint(&module), None);
        fs::write(&path, "a").unwrap();
        let alone = fingerprint(&module).unwrap();
        assert_eq!((alone.len(), fingerprint(&module).unwrap()), (32, alone.clone()));
        fs::write(directory.path().join("Shop.dll"), "b").unwrap();
        let both = fingerprint(&module).unwrap();
        assert_ne!(alone, both);
        fs::write(directory.path().join("Shop.dll"), "c").unwrap();
        assert_ne!(both, fingerprint(&module).unwrap());
    }

    #[test]
    fn both_ends_of_a_large_file_are_hashed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Shop");
        let module = Module::new(&path);
        let mut bytes = vec![0; usize::try_from(HASHED_BYTES).unwrap() + 10];
        let mut with = |change: &mut dyn FnMut(&mut Vec<u8>)| {
            change(&mut bytes);
            fs::write(&path, &bytes).unwrap();
            fingerprint(&module).unwrap()
        };
        let plain = with(&mut |_| ());
        let end = with(&mut |bytes| *bytes.last_mut().unwrap() = 1);
        let start = with(&mut |bytes| *bytes.first_mut().unwrap() = 1);
        assert_eq!(std::collections::HashSet::from([plain, end, start]).len(), 3);
    }
}
