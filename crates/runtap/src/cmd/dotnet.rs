//! The `dotnet` host that runs a `.dll`.

use std::path::{Path, PathBuf};

use runtap_mtp::find_dotnet;

use crate::exit::expected;

/// The one that was given, or else the one that `dotnet` itself would be; `code` is for where there is none.
pub(super) fn host(given: Option<&Path>, code: u8) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let hint = "name one with --dotnet FILE, or set DOTNET_ROOT";
    find_dotnet().map_err(|error| expected(code, error.to_string(), hint.to_owned()))
}
