//! Parses `/proc/PID/status`: users, groups, ids and capabilities of a process. Source: `proc(5)`, `capabilities(7)`.

/// `CAP_SYS_PTRACE`: permission to inspect and trace processes of other users.
pub const CAP_SYS_PTRACE: u32 = 19;
/// `CAP_DAC_OVERRIDE`: permission to ignore file modes.
const CAP_DAC_OVERRIDE: u32 = 1;

/// The contents of `/proc/PID/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Id of the process that the thread belongs to.
    pub tgid: u32,
    /// `R`, `S`, `T` (stopped), `t` (stopped by its tracer), `Z` (exited) …
    pub state: char,
    /// Process id of the tracer, or 0.
    pub tracer: u32,
    /// Real user id.
    pub uid: u32,
    /// Real, effective, saved and file system user id.
    pub uids: [u32; 4],
    /// Effective user id.
    pub effective_uid: u32,
    /// Effective group id.
    pub effective_gid: u32,
    /// Supplementary group ids.
    pub groups: Vec<u32>,
    /// Process id in the innermost pid namespace.
    pub ns_pid: u32,
    /// Effective capabilities.
    pub capabilities: Capabilities,
}

impl Status {
    /// Parses the file. `None` if required fields are missing or invalid.
    pub fn parse(status: &[u8]) -> Option<Self> {
        let (mut tgid, mut users, mut ns_pid) = (None, None, None);
        let mut found = Self::default();
        for line in status.split(|b| *b == b'\n') {
            let line = str::from_utf8(line).unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let mut values = value.split_ascii_whitespace();
            match key {
                "Tgid" => tgid = values.next()?.parse().ok(),
                "State" => found.state = values.next()?.chars().next()?,
                "TracerPid" => found.tracer = values.next()?.parse().ok()?,
                "Uid" => {
                    let mut id = || values.next()?.parse().ok();
                    users = Some([id()?, id()?, id()?, id()?]);
                }
                "Gid" => found.effective_gid = values.nth(1)?.parse().ok()?,
                "Groups" => found.groups = values.filter_map(|group| group.parse().ok()).collect(),
                "NSpid" => ns_pid = values.next_back()?.parse().ok(),
                "CapEff" => found.capabilities = Capabilities::parse(value)?,
                _ => {}
            }
        }
        found.tgid = tgid?;
        found.uids = users?;
        [found.uid, found.effective_uid, ..] = found.uids;
        // Kernels without pid namespaces have no NSpid.
        found.ns_pid = ns_pid.unwrap_or(found.tgid);
        Some(found)
    }
}

/// A set of capabilities, as a bit mask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Returns whether the set contains a capability.
    pub fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 == 1
    }

    /// Returns whether the process can ignore file modes.
    pub fn overrides_modes(self) -> bool {
        self.has(CAP_DAC_OVERRIDE)
    }

    /// Parses a hexadecimal capability set of `/proc/PID/status`. `None` if invalid.
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text.trim(), 16).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ns_pid_is_used() {
        let status = b"Name:\tx: y\nState:\tT (stopped)\nTgid:\t77\nTracerPid:\t5\nUid:\t1000\t0\t0\t0\n\
            Gid:\t1\t2\t3\t4\nGroups:\t7 8 \nNSpid:\t77\t12\t1\nCapEff:\t0000000000080002\n";
        let expected = Status {
            tgid: 77,
            state: 'T',
            tracer: 5,
            uid: 1000,
            uids: [1000, 0, 0, 0],
            effective_uid: 0,
            effective_gid: 2,
            groups: vec![7, 8],
            ns_pid: 1,
            capabilities: Capabilities(0x80002),
        };
        assert_eq!(Status::parse(status), Some(expected));
        assert_eq!(Status::parse(b"Tgid:\t5\nUid:\t0\t0\t0\t0\n").map(|s| s.ns_pid), Some(5));
        assert_eq!(Status::parse(b"Tgid:\t5\n"), None);
    }

    #[test]
    fn capabilities() {
        let all = Capabilities::parse("\t000001ffffffffff").unwrap();
        assert!(all.has(CAP_SYS_PTRACE) && all.overrides_modes());
        let docker = Capabilities::parse("00000000a80425fb").unwrap();
        assert!(!docker.has(CAP_SYS_PTRACE) && docker.overrides_modes());
        assert_eq!(Capabilities::parse("x"), None);
    }
}
