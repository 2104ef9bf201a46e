//! The users whose agents a collector accepts.
//!
//! Owns: the decision for an address, and the lookup of user names. The protocol has no password, and every local user can
//! connect to the loopback interface: there only the current user, root and further named users may connect. The owner
//! of a connection from another machine is unknown.

use std::net::SocketAddr;

use runtap_os::my_uid;
use thiserror::Error;

/// The name that stands for all users.
const ALL: &str = "all";

/// A user that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no such user in /etc/passwd")]
pub struct UnknownUser(pub String);

/// Returns the ids of the users whose processes may connect at these addresses: the current user, root, and users that
/// are given by name or id; `all` stands for all users. `None` if all users may connect.
///
/// # Errors
/// Fails if a user does not exist.
pub fn allowed_users(names: &[String], addresses: &[SocketAddr]) -> Result<Option<Vec<u32>>, UnknownUser> {
    let is_known =
        !addresses.is_empty() && addresses.iter().all(|address| runtap_os::loopback::is_known(*address));
    let mut users = vec![my_uid(), 0];
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    for name in names {
        match user_id(name, &passwd) {
            _ if name == ALL => return Ok(None),
            Some(user) => users.push(user),
            None => return Err(UnknownUser(name.clone())),
        }
    }
    Ok(is_known.then_some(users))
}

/// Returns the id of a user given by id or by name. Lines of `/etc/passwd` have the form `name:x:uid:…`.
fn user_id(name: &str, passwd: &str) -> Option<u32> {
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
    fn users_are_found_by_name_and_id() {
        assert_eq!(user_id("www-data", PASSWD), Some(33));
        assert_eq!(user_id("1000", PASSWD), Some(1000));
        assert_eq!(
            (user_id("broken", PASSWD), user_id("www", PASSWD), user_id("", PASSWD)),
            (None, None, None)
        );
    }

    #[test]
    fn users_are_restricted_only_if_all_addresses_are_loopback() {
        let loopback: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let beyond: SocketAddr = "192.0.2.1:1".parse().unwrap();
        assert_eq!(allowed_users(&[], &[beyond]).unwrap(), None);
        assert_eq!(allowed_users(&[], &[loopback, beyond]).unwrap(), None);
        assert_eq!(allowed_users(&["all".to_owned()], &[loopback]).unwrap(), None);
        if runtap_os::loopback::is_known(loopback) {
            assert_eq!(allowed_users(&[], &[loopback]).unwrap(), Some(vec![my_uid(), 0]));
            assert_eq!(allowed_users(&["77".to_owned()], &[loopback]).unwrap(), Some(vec![my_uid(), 0, 77]));
        }
        assert!(allowed_users(&["no such user".to_owned()], &[loopback]).is_err());
    }
}
