//! Scripts of `cmd.exe`.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;

use super::ScriptError;

/// What each script begins with, by which it is known again.
pub(super) const HEAD: &[u8] = b"@rem Written by runtap mtp --write-module: it may be replaced.\r\n@";

/// Each word in quotation marks, in which only a per cent sign has a meaning.
pub(super) fn script(path: &Path, words: &[OsString]) -> Result<Vec<u8>, ScriptError> {
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cmd")) {
        return Err(ScriptError::Name);
    }
    // Else names beyond ASCII are taken for another alphabet's.
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

/// Its name does it.
#[expect(clippy::unnecessary_wraps, reason = "the same as on Unix")]
pub(super) fn make_executable(_file: &File) -> io::Result<()> {
    Ok(())
}
