//! Processes that outlive a command and still have its port in their environment, where no command is started.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// Fails: it can't be done here.
///
/// # Errors
/// Always.
#[allow(clippy::unused_async, reason = "the same as elsewhere")]
pub async fn guard_port(_path: &Path, _users: &BTreeSet<u32>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
