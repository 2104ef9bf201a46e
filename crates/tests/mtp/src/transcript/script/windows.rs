//! Scripts for `cmd.exe`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

use super::ScriptError;

/// The beginning of every script, which identifies scripts of runtap.
pub(super) const HEAD: &[u8] = b"@rem Written by runtap mtp --write-module: it may be replaced.\r\n@";

/// Returns the text of the script. Each word is quoted; within quotes only a per cent sign is special.
pub(super) fn script(path: &Path, words: &[OsString]) -> Result<Vec<u8>, ScriptError> {
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cmd")) {
        return Err(ScriptError::Name);
    }
    // Without this, non-ASCII names would be read in another encoding.
    let mut text = [HEAD, b"chcp 65001 >nul\r\n@"].concat();
    for word in words {
        let word =
            word.to_str().filter(|word| !word.contains(['"', '\r', '\n'])).ok_or(ScriptError::Unquotable)?;
        if word.contains('\0') {
            return Err(ScriptError::Nul);
        }
        text.extend_from_slice(format!("\"{}\" ", word.replace('%', "%%")).as_bytes());
    }
    text.extend_from_slice(b"%*\r\n");
    Ok(text)
}

/// Does nothing: the file's extension makes it executable.
#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}
