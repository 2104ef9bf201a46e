//! Restricts names to the processes of one user. Any user can give a program any name, so a name selects processes of the current
//! user only (as root: only root's) unless another user is specified.

use std::fs;

use runtap_discover::Process;
use runtap_os::my_uid;

use crate::error::Error;

/// The user whose processes a name selects: the given one, or the current user if `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserFilter<'a>(pub Option<&'a str>);

impl UserFilter<'_> {
    /// Whether this user is selected, by number or by the name in `/etc/passwd`.
    pub fn matches(self, uid: u32, user: &str) -> bool {
        match self.0 {
            None => uid == my_uid(),
            Some(given) => given.parse().map_or(given == user, |number: u32| number == uid),
        }
    }

    /// Whether the process belongs to the selected user.
    pub fn includes(self, process: &Process) -> bool {
        self.matches(process.uid, &process.user)
    }

    /// Rejects an unknown user: "no process has this name" would be misleading.
    ///
    /// # Errors
    /// Returns an error if `/etc/passwd` has no user with this name.
    pub fn check(self) -> Result<(), Error> {
        let Some(name) = self.0.filter(|given| given.parse::<u32>().is_err()) else { return Ok(()) };
        let Ok(passwd) = fs::read("/etc/passwd") else { return Ok(()) };
        let mut names =
            passwd.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':').next());
        if names.any(|known| known == Some(name.as_bytes())) {
            return Ok(());
        }
        Err(Error::UnknownUser(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_or_a_number() {
        let us = my_uid();
        assert!(UserFilter(None).matches(us, "whoever"));
        assert!(!UserFilter(None).matches(us + 1, "whoever"));
        assert!(UserFilter(Some("ann")).matches(us + 1, "ann"));
        assert!(UserFilter(Some("33")).matches(33, "www-data"));
        // A number is a user id, even if a user has that name.
        assert!(!UserFilter(Some("33")).matches(34, "33"));
    }

    #[test]
    fn an_unknown_user_is_rejected() {
        assert!(matches!(UserFilter(Some("n0b0dy:")).check(), Err(Error::UnknownUser(_))));
        for known in [None, Some("root"), Some("4000000")] {
            UserFilter(known).check().unwrap();
        }
    }
}
