//! Resolves TCP addresses given by the user, and warns about addresses that other machines can reach.

use std::net::SocketAddr;

use runtap_route::messages;
use runtap_text::Output;
use runtap_transport::remote::{AddressError, HostPort};

use crate::exit::{self, expected, usage};

/// The address of `router listen` in messages.
pub(super) const LISTEN: &str = "HOST:PORT";

/// Resolves the TCP address of an option.
///
/// # Errors
/// The address is invalid, unknown, or not a loopback address although `insecure` is false.
pub(super) async fn resolve(
    option: &str,
    address: &str,
    insecure: bool,
    output: Output,
) -> anyhow::Result<Vec<SocketAddr>> {
    let wrong = |error: AddressError| match error {
        AddressError::Beyond { .. } => {
            expected(exit::USAGE, format!("{option}: {error}"), messages::NOT_LOOPBACK.to_owned())
        }
        AddressError::Unknown { .. } => expected(exit::NO_TARGET, format!("{option}: {error}"), None),
        error => usage(format!("{option}: {error}")),
    };
    let parsed = HostPort::parse(address).map_err(wrong)?;
    let addresses = parsed.resolve(insecure).await.map_err(wrong)?;
    if addresses.iter().any(|address| !address.ip().to_canonical().is_loopback()) {
        output.warning(messages::reachable(address, option == LISTEN));
    }
    Ok(addresses)
}
