//! What is wrong with the machine, where nothing of it is looked at.

use crate::doctor::Finding;
use runtap_discover::System;

use crate::error::Error;

/// What is wrong with the machine: nothing is known.
#[allow(clippy::unused_async, reason = "the same as on Linux")]
pub(super) async fn machine(_system: System) -> Result<Vec<Finding>, Error> {
    Ok(Vec::new())
}
