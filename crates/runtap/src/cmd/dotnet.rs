//! Finds the `dotnet` host that runs `.dll` files.

use std::path::{Path, PathBuf};

use runtap_mtp::find_dotnet;

use crate::exit::expected;

/// Returns the given host, or the `dotnet` of the environment.
///
/// # Errors
/// No host is found; the error has the exit code `code`.
pub(super) fn host(given: Option<&Path>, code: u8) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let hint = "name one with --dotnet FILE, or set DOTNET_ROOT";
    find_dotnet().map_err(|error| expected(code, error.to_string(), hint.to_owned()))
}
