//! Whose agents a collector lets in.
//!
//! Owns: the answer for an address, and names of users. The protocol has no password, and every user of a machine reaches its
//! loopback interface: there our own user and root may connect, and whom `--allow-user` names. Elsewhere nobody can say whose a
//! connection is.

use std::net::SocketAddr;

use runtap_os::my_uid;

use crate::exit::usage;

/// The word for every user.
const ALL: &str = "all";

/// The numbers of the users whose processes may connect at these addresses. `None`: everybody may.
///
/// # Errors
/// There is no such user.
pub(super) fn allowed(names: &[String], addresses: &[SocketAddr]) -> anyhow::Result<Option<Vec<u32>>> {
    let is_known =
        !addresses.is_empty() && addresses.iter().all(|address| runtap_os::loopback::is_known(*address));
    let mut users = vec![my_uid(), 0];
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    for name in names {
        match number(name, &passwd) {
            _ if name == ALL => return Ok(None),
            Some(user) => users.push(user),
            None => {
                return Err(usage(format!("--allow-user '{name}': there is no such user in /etc/passwd")));
            }
        }
    }
    Ok(is_known.then_some(users))
}

/// A user by number, or by the name that `/etc/passwd` has: `name:x:uid:…`.
fn number(name: &str, passwd: &str) -> Option<u32> {
    name.parse().ok().or_else(|| {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\nbroken\n";

    #[test]
    fn users_by_name_and_number() {
        assert_eq!(number("www-data", PASSWD), Some(33));
        assert_eq!(number("1000", PASSWD), Some(1000));
        assert_eq!((number("broken", PASSWD), number("www", PASSWD), number("", PASSWD)), (None, None, None));
    }

    #[test]
    fn only_where_the_system_knows_whose_a_connection_is() {
        let loopback: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let beyond: SocketAddr = "192.0.2.1:1".parse().unwrap();
        assert_eq!(allowed(&[], &[beyond]).unwrap(), None);
        assert_eq!(allowed(&[], &[loopback, beyond]).unwrap(), None);
        assert_eq!(allowed(&["all".to_owned()], &[loopback]).unwrap(), None);
        if runtap_os::loopback::is_known(loopback) {
            assert_eq!(allowed(&[], &[loopback]).unwrap(), Some(vec![my_uid(), 0]));
            assert_eq!(allowed(&["77".to_owned()], &[loopback]).unwrap(), Some(vec![my_uid(), 0, 77]));
        }
        assert!(allowed(&["no such user".to_owned()], &[loopback]).is_err());
    }
}
