//! Queries the kernel for a single socket by its addresses (`sock_diag(7)`, `linux/inet_diag.h`).

use std::net::SocketAddr;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;
/// `TCP_ESTABLISHED`. In other states the kernel may report root as the owner of a socket that its process has closed.
const ESTABLISHED: u8 = 1;
/// Size of a netlink message header in bytes.
const HEADER: usize = 16;
/// Offset of the socket's ports, addresses, interface and cookie in `inet_diag_msg`.
const ID: usize = 4;

/// The kernel's answer to a query for a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The socket is connected and was created by this user.
    User(u32),
    /// The socket is no longer connected, or no process owns it.
    Nobody,
    /// There is no socket with these addresses, or the kernel does not support the query.
    Missing,
}

/// Queries the socket with the local address `local` and the remote address `remote`.
#[cfg(target_os = "linux")]
pub(crate) fn ask(local: SocketAddr, remote: SocketAddr) -> Answer {
    exchange(&request(local, remote)).map_or(Answer::Missing, |answer| parse(&answer, local, remote))
}

#[cfg(target_os = "linux")]
fn exchange(request: &[u8]) -> std::io::Result<Vec<u8>> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

    let (flags, protocol) = (SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG));
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    rustix::net::send(&socket, request, SendFlags::empty())?;
    let mut buffer = vec![0; 8 << 10];
    // The kernel has queued the answer when `send` returns.
    let (_, count) = rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT)?;
    buffer.truncate(count);
    Ok(buffer)
}

/// Returns the address family and the ports and addresses as used in requests and answers.
fn id(local: SocketAddr, remote: SocketAddr) -> (u8, Vec<u8>) {
    let mut bytes = Vec::with_capacity(36);
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    let mut family = AF_INET;
    for address in [local, remote] {
        match address {
            SocketAddr::V4(address) => {
                bytes.extend(address.ip().octets());
                bytes.extend([0; 12]);
            }
            SocketAddr::V6(address) => {
                family = AF_INET6;
                bytes.extend(address.ip().octets());
            }
        }
    }
    (family, bytes)
}

fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let (family, id) = id(local, remote);
    let mut body = vec![family, TCP, 0, 0];
    body.extend(u32::MAX.to_ne_bytes()); // states: all
    body.extend(id);
    body.extend(0u32.to_ne_bytes()); // interface: any
    body.extend([0xff; 8]); // cookie: none
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(1u16.to_ne_bytes()); // NLM_F_REQUEST
    message.extend([0; 8]); // sequence and port
    message.extend(body);
    message
}

/// Parses an answer: family, state, timer, retransmissions, addresses, expiry, two queues, user, inode. If there is no
/// such connection, the kernel returns the listener at its address instead.
pub(crate) fn parse(answer: &[u8], local: SocketAddr, remote: SocketAddr) -> Answer {
    let (_, id) = id(local, remote);
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let Some(body) = answer.get(HEADER..).filter(|_| kind == Some(SOCK_DIAG_BY_FAMILY)) else {
        return Answer::Missing;
    };
    let word = |at: usize| body.get(at..at + 4)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
    // The kernel fills in only the first four bytes of an IPv4 address.
    let is_meant = match local {
        SocketAddr::V4(_) => {
            body.get(ID..ID + 8) == id.get(..8) && body.get(ID + 20..ID + 24) == id.get(20..24)
        }
        SocketAddr::V6(_) => body.get(ID..ID + 36) == id.get(..36),
    };
    let Some(state) = body.get(1).filter(|_| is_meant) else { return Answer::Missing };
    match (*state, word(ID + 48 + 12), word(ID + 48 + 16)) {
        (ESTABLISHED, Some(user), Some(1..)) => Answer::User(user),
        _ => Answer::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    /// An answer about the connection from one port to another.
    fn answer(state: u8, user: u32, inode: u32, ports: [u16; 2]) -> Vec<u8> {
        let mut bytes = request(at(ports[0]), at(ports[1]));
        bytes.truncate(HEADER);
        bytes.extend([AF_INET, state, 0, 0]);
        bytes.extend(id(at(ports[0]), at(ports[1])).1);
        bytes.extend([0; 12]);
        for word in [0, 0, 0, user, inode] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn the_user_of_a_connected_socket() {
        let parse = |bytes: &[u8]| parse(bytes, at(40_001), at(8765));
        let ports = [40_001, 8765];
        assert_eq!(parse(&answer(1, 1000, 5, ports)), Answer::User(1000));
        assert_eq!(parse(&answer(1, 0, 0, ports)), Answer::Nobody, "no process has accepted it");
        assert_eq!(parse(&answer(6, 0, 0, ports)), Answer::Nobody, "closed");
        assert_eq!(parse(&answer(10, 1000, 5, [40_001, 0])), Answer::Missing, "the listener of that port");
        let mut error = answer(1, 1000, 5, ports);
        error[4] = 2;
        assert_eq!(parse(&error), Answer::Missing);
        let whole = answer(1, 1000, 5, ports);
        for end in 0..whole.len() {
            assert_ne!(parse(&whole[..end]), Answer::User(1000), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_answer(bytes in prop::collection::vec(any::<u8>(), 0..200), port: u16) {
            let _ = parse(&bytes, at(port), at(1));
        }
    }
}
