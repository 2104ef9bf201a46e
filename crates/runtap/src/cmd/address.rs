//! Addresses of TCP that somebody has named: what they are, and what is to be known of those beyond this machine.

use std::net::SocketAddr;

use runtap_transport::remote::{AddressError, HostPort};

use crate::exit::{self, expected, usage};
use crate::output::Output;

/// How messages call the address of `router listen`.
pub(super) const LISTEN: &str = "HOST:PORT";

const BEYOND: &str = "stay on this machine (127.0.0.1), reach it from elsewhere through a tunnel such as 'ssh -L', or, on a \
                      network where you trust everybody, say --insecure";

/// The addresses of one side that is TCP.
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
