//! Resolves TCP addresses given by the user, and warns about addresses that other machines can reach.

use std::net::SocketAddr;

use runtap_transport::remote::{AddressError, HostPort};

use crate::exit::{self, expected, usage};
use crate::output::Output;

/// The name of the address of `router listen` in messages.
pub(super) const LISTEN: &str = "HOST:PORT";

const BEYOND: &str = "stay on this machine (127.0.0.1), reach it from elsewhere through a tunnel such as 'ssh -L', or, on a \
                      network where you trust everybody, say --insecure";

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
        AddressError::Beyond { .. } => expected(exit::USAGE, format!("{option}: {error}"), BEYOND.to_owned()),
        AddressError::Unknown { .. } => expected(exit::NO_TARGET, format!("{option}: {error}"), None),
        error => usage(format!("{option}: {error}")),
    };
    let parsed = HostPort::parse(address).map_err(wrong)?;
    let addresses = parsed.resolve(insecure).await.map_err(wrong)?;
    if addresses.iter().any(|address| !address.ip().to_canonical().is_loopback()) {
        output.warning(format_args!(
            "{address} is reached from other machines: what passes is not encrypted, and {}",
            if option == LISTEN { "can be read and changed on the way" } else { "nobody is asked who he is" }
        ));
    }
    Ok(addresses)
}
