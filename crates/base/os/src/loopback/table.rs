//! Reads the kernel's table of all TCP sockets (`/proc/net/tcp`) on systems that cannot be queried for one socket. IPv4
//! only.

#[cfg(target_os = "linux")]
use std::net::SocketAddr;
use std::net::SocketAddrV4;

/// The table of this process's network namespace.
#[cfg(target_os = "linux")]
const TABLE: &str = "/proc/self/net/tcp";
/// `TCP_ESTABLISHED`. In other states the kernel may report root as the owner of a socket that its process has closed.
const ESTABLISHED: &str = "01";

/// Returns the user who created the socket at the other end of a connection. `None` if unknown.
#[cfg(target_os = "linux")]
pub(crate) fn user_of(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let (SocketAddr::V4(peer), SocketAddr::V4(own)) = (peer, own) else { return None };
    find(&std::fs::read_to_string(TABLE).ok()?, peer, own)
}

/// Finds the user of a socket by its addresses in a table with the columns
/// `sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …`.
fn find(table: &str, peer: SocketAddrV4, own: SocketAddrV4) -> Option<u32> {
    let (local, remote) = (format_address(peer), format_address(own));
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next()? != local || words.next()? != remote || words.next()? != ESTABLISHED {
            return None;
        }
        let (user, inode) = (words.nth(3)?, words.nth(1)?);
        // A socket without an inode belongs to no process.
        if inode == "0" { None } else { user.parse().ok() }
    })
}

/// Formats an address as in the table: the IPv4 address as a native-endian number, and the port.
fn format_address(address: SocketAddrV4) -> String {
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    #[cfg(target_os = "linux")]
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    fn line(state: &str, user: &str, inode: &str) -> String {
        let (local, remote) = (format_address(at(40_001)), format_address(at(8765)));
        format!(
            "   3: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {user}        0 {inode} 1 0 20 4 30 10 -1\n"
        )
    }

    fn at(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
    }

    #[test]
    fn the_user_of_a_connected_socket() {
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let user = |line: &str| find(&format!("{header}{line}"), at(40_001), at(8765));
        assert_eq!(user(&line("01", "1000", "123456")), Some(1000));
        assert_eq!(user(&line("01", "1000", "0")), None, "no process has it");
        // The kernel reports root as the owner of closed sockets.
        for state in ["04", "05", "06", "08"] {
            assert_eq!(user(&line(state, "0", "0")), None, "{state}");
        }
        assert_eq!(user(""), None);
        assert_eq!(find(&line("01", "7", "1"), at(40_002), at(8765)), None, "another socket");
        assert_eq!(find(&line("01", "7", "1"), at(8765), at(40_001)), None, "the end of this process");
        #[cfg(target_endian = "little")]
        assert_eq!(format_address(at(8765)), "0100007F:223D");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_connection_of_this_process_has_its_user() {
        use std::os::unix::fs::MetadataExt as _;
        let listener = TcpListener::bind(at(0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let user = std::fs::metadata("/proc/self").unwrap().uid();
        assert_eq!(user_of(peer, server.local_addr().unwrap()), Some(user));
        drop(client);
        assert_eq!(user_of(peer, server.local_addr().unwrap()), None);
    }

    proptest! {
        #[test]
        fn any_table(text in "[ 0-9A-F:\n]{0,300}", port: u16) {
            let _ = find(&text, at(port), at(1));
        }
    }
}
