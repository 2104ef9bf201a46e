//! Returns the user of the process at the other end of a TCP connection over the loopback interface.
//!
//! The kernel is queried for one socket by its addresses (`sock_diag(7)`, `linux/inet_diag.h`). Systems that do not
//! support the query are read by the table of all sockets (`/proc/net/tcp`, `net/ipv4/tcp_ipv4.c`, `get_tcp4_sock`).
//! All users of a machine can connect over its loopback interface, and the kernel records who created each socket. A
//! socket that is missing, not connected or without a process has no user.
//!
//! The cost of a query does not depend on the number of sockets. Listeners divide their limited slots among users with
//! [`Shares`].

#[cfg(any(target_os = "linux", test))]
mod diag;
mod shares;
#[cfg(any(target_os = "linux", test))]
mod table;

use std::net::SocketAddr;

pub use shares::Shares;

/// Returns the user who created the socket at the other end of a connection, where `peer` is the address of that end
/// and `own` the address of this end.
///
/// `None` if unknown: the connection is closed, has not been accepted yet, or the operating system does not report
/// users. Only Linux does ([`is_known`]).
pub fn user_of(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    #[cfg(target_os = "linux")]
    return linux::user_of(canonical(peer), canonical(own));
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (canonical(peer), canonical(own));
        None
    }
}

/// Returns whether the operating system reports the user at the other end of a connection to `address`: only Linux
/// does, and only for loopback addresses.
pub fn is_known(address: SocketAddr) -> bool {
    cfg!(target_os = "linux") && address.ip().to_canonical().is_loopback()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::diag::Answer;
    use super::{diag, table};

    /// Whether the kernel supports the query.
    static ANSWERS: AtomicBool = AtomicBool::new(false);

    pub(super) fn user_of(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        match diag::ask(peer, own) {
            Answer::User(user) => {
                ANSWERS.store(true, Ordering::Relaxed);
                return Some(user);
            }
            Answer::Nobody => {
                ANSWERS.store(true, Ordering::Relaxed);
                return None;
            }
            Answer::Missing => {}
        }
        // A kernel without support for the query reports every socket as missing, including this end of the connection.
        if ANSWERS.load(Ordering::Relaxed) || diag::ask(own, peer) != Answer::Missing {
            ANSWERS.store(true, Ordering::Relaxed);
            return None;
        }
        table::user_of(peer, own)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn both_ends_of_a_connection_have_the_current_user_until_one_is_closed() {
        let us = std::fs::metadata("/proc/self").unwrap().uid();
        let any = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))];
        for any in any {
            // IPv6 may be unavailable.
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (near, far) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
            assert_eq!(user_of(far, near), None, "no process has accepted it");
            let (server, peer) = listener.accept().unwrap();
            assert_eq!(peer, near);
            assert_eq!(user_of(peer, server.local_addr().unwrap()), Some(us));
            assert_eq!(user_of(far, near), Some(us));
            drop(client);
            assert_eq!(user_of(peer, server.local_addr().unwrap()), None);
            // The listener has the address of the requested end, but is a different socket.
            assert_eq!(user_of(listener.local_addr().unwrap(), near), None);
        }
    }

    #[test]
    fn only_loopback_addresses_are_known() {
        assert!(is_known("127.8.0.1:1".parse().unwrap()) && is_known("[::1]:1".parse().unwrap()));
        assert!(is_known("[::ffff:127.0.0.1]:1".parse().unwrap()));
        assert!(!is_known("10.0.0.1:1".parse().unwrap()) && !is_known("0.0.0.0:1".parse().unwrap()));
    }
}
