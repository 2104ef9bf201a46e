//! Checks whether the target can load a library as a profiler. Loading another file fails without harm, but with an
//! unspecific code, and at startup without any error.

use std::io::Read;
use std::path::Path;

use runtap_os::objfile::elf::{FileType, Header};

use super::{Objection, Target};

/// Checks whether `path` is a library for the target's processor.
///
/// # Errors
/// The reason why it is not. Files that cannot be read here may be readable for the target.
pub(super) fn check(target: &Target, path: &Path) -> Result<(), Objection> {
    match target.metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_other) => return Err(Objection::NotAFile { path: path.to_owned() }),
        Err(source) => return Err(Objection::Missing { what: "profiler", path: path.to_owned(), source }),
    }
    let not_a_library = |why: String| Objection::NotALibrary { path: path.to_owned(), why };
    let Ok(bytes) = head(target, path) else { return Ok(()) };
    let library = Header::decode(&bytes).map_err(|error| not_a_library(error.to_string()))?;
    if library.file_type != FileType::SHARED {
        return Err(not_a_library("it is an ELF file of another type".to_owned()));
    }
    let Some(own) = target.executable().and_then(|path| head(target, path).ok()) else { return Ok(()) };
    match Header::decode(&own) {
        Ok(own) if (own.machine, own.class) != (library.machine, library.class) => {
            Err(Objection::OtherProcessor {
                path: path.to_owned(),
                library: library.machine.to_string(),
                target: own.machine.to_string(),
            })
        }
        _ => Ok(()),
    }
}

fn head(target: &Target, path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    target.open(path)?.take(Header::LEN as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
