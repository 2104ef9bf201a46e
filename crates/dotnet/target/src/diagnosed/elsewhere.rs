//! Problems of the machine, on systems other than Linux.

use crate::doctor::Finding;
use runtap_discover::System;

use crate::error::Error;

/// Returns no problems: this system is not examined.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn machine(_system: System) -> Result<Vec<Finding>, Error> {
    Ok(Vec::new())
}
