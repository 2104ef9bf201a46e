//! Whose processes a name stands for. Anybody can call a program as somebody else's is called: so a name stands for processes
//! of our own user alone, of root's for root, unless another user is given.

use std::fs;

use runtap_discover::Process;
use runtap_os::my_uid;

use crate::error::Error;

/// Whose processes a name may stand for: those of our own user, or of this one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whose<'a>(pub Option<&'a str>);

impl Whose<'_> {
    /// Whether a user is meant: by number, or by the name that `/etc/passwd` has for it.
    pub fn is_meant(self, uid: u32, user: &str) -> bool {
        match self.0 {
            None => uid == my_uid(),
            Some(given) => given.parse().map_or(given == user, |number: u32| number == uid),
        }
    }

    /// Whether the process is of a user who is meant.
    pub fn has(self, process: &Process) -> bool {
        self.is_meant(process.uid, &process.user)
    }

    /// Refuses a user whom nobody knows: that none of his processes has a name would be true, and misleading.
    pub(crate) fn check(self) -> Result<(), Error> {
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
        assert!(Whose(None).is_meant(us, "whoever"));
        assert!(!Whose(None).is_meant(us + 1, "whoever"));
        assert!(Whose(Some("ann")).is_meant(us + 1, "ann"));
        assert!(Whose(Some("33")).is_meant(33, "www-data"));
        // A number is one, even where a user is called so.
        assert!(!Whose(Some("33")).is_meant(34, "33"));
    }

    #[test]
    fn a_user_whom_nobody_knows_is_refused() {
        assert!(matches!(Whose(Some("n0b0dy:")).check(), Err(Error::UnknownUser(_))));
        for known in [None, Some("root"), Some("4000000")] {
            Whose(known).check().unwrap();
        }
    }
}
