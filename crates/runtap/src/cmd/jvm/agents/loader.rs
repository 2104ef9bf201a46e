//! Detection of a `java` that was built for musl: its JVM could not load the agent and would not start.
//!
//! Owns: finding the program as the system would, and reading its interpreter (`PT_INTERP`). A file that cannot be read is not
//! judged: for example, a script is started and reports its own errors.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::exit::{self, expected};

/// The type of the program header that names the dynamic loader.
const PT_INTERP: u32 = 3;
/// The maximum length of a path, in bytes.
const MAX_PATH_LEN: u64 = 4096;

/// Rejects a program that was built for musl.
///
/// # Errors
/// Fails if the program's interpreter is the loader of musl.
pub(super) fn check(program: &OsStr) -> anyhow::Result<()> {
    let Some(path) = find_program(program, env::var_os("PATH").as_deref()) else { return Ok(()) };
    let Ok(Some(interpreter)) = interpreter(&path) else { return Ok(()) };
    let name = Path::new(OsStr::from_bytes(&interpreter)).file_name().unwrap_or_default();
    if !name.as_bytes().starts_with(b"ld-musl-") {
        return Ok(());
    }
    let message = format!(
        "{} runs on musl (Alpine Linux), and the agent is made for glibc: its JVM can't load it",
        path.display()
    );
    let hint = "'runtap jvm hq' takes what the original Java agent sends: java -javaagent:bytefrog-tracer.jar=HOST:PORT";
    Err(expected(exit::REFUSED, message, hint.to_owned()))
}

/// Returns the executable file that a command resolves to.
fn find_program(program: &OsStr, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(path?).map(|folder| folder.join(program)).find(is_program)
}

/// Returns the interpreter that a 64-bit program requests; `None` if the file is not such a program, or requests none.
fn interpreter(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = File::open(path)?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0)?;
    // ELF, 64 bits, little-endian.
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return Ok(None);
    }
    let [.., size_low, size_high, count_low, count_high, _, _, _, _, _, _] = header;
    let (size, count) =
        (u16::from_le_bytes([size_low, size_high]), u16::from_le_bytes([count_low, count_high]));
    let table = word(&header, 32);
    for number in 0..u64::from(count) {
        let mut row = [0; 56];
        let Some(at) = table.checked_add(number * u64::from(size)) else { break };
        file.read_exact_at(&mut row, at)?;
        if row.starts_with(&PT_INTERP.to_le_bytes()) {
            let length = usize::try_from(word(&row, 32).min(MAX_PATH_LEN)).unwrap_or_default();
            let mut text = vec![0; length];
            file.read_exact_at(&mut text, word(&row, 8))?;
            text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(length));
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// Returns the 64-bit integer at an offset.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_this_system_is_read() {
        let shell = find_program("sh".as_ref(), Some("/no/such:/bin:/usr/bin".as_ref())).unwrap();
        assert!(shell.ends_with("sh"));
        let requested = interpreter(&shell).unwrap().unwrap();
        assert!(requested.starts_with(b"/lib"), "{}", String::from_utf8_lossy(&requested));
        let folder = tempfile::tempdir().unwrap();
        for bytes in
            [&b"#!/bin/sh\n"[..], b"", b"\x7fELF\x02\x01", &[b"\x7fELF\x02\x01", &[0xff; 90][..]].concat()]
        {
            let file = folder.path().join("java");
            std::fs::write(&file, bytes).unwrap();
            assert!(!matches!(interpreter(&file), Ok(Some(_))));
            check(file.as_os_str()).unwrap();
        }
    }
}
