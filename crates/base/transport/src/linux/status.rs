//! What `/proc/PID/status` says of a process: its users and groups, its numbers, its capabilities. Pure. Source: `proc(5)`,
//! `capabilities(7)`.

/// `CAP_SYS_PTRACE`: may look into and trace processes of others.
pub const CAP_SYS_PTRACE: u32 = 19;
/// `CAP_DAC_OVERRIDE`: file modes do not count.
const CAP_DAC_OVERRIDE: u32 = 1;

/// What `/proc/PID/status` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The process that this thread belongs to.
    pub tgid: u32,
    /// `R`, `S`, `T` (stopped), `t` (stopped by its tracer), `Z` (has ended) …
    pub state: char,
    /// Who traces it; 0 for nobody.
    pub tracer: u32,
    /// Real user id.
    pub uid: u32,
    /// Real, effective, saved, for files.
    pub uids: [u32; 4],
    /// The user by whose rights it opens files.
    pub effective_uid: u32,
    /// The group, likewise.
    pub effective_gid: u32,
    /// The further groups, likewise.
    pub groups: Vec<u32>,
    /// The id in the innermost pid namespace.
    pub ns_pid: u32,
    /// What it may do whatever its user.
    pub capabilities: Capabilities,
}

impl Status {
    /// Takes a `status` apart.
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

/// The rights of one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Whether it has this one.
    pub fn has(self, capability: u32) -> bool {
        self.0 >> capability & 1 == 1
    }

    /// Whether file modes do not bind it.
    pub fn overrides_modes(self) -> bool {
        self.has(CAP_DAC_OVERRIDE)
    }

    /// A capability set of `/proc/PID/status`, in hexadecimal.
    pub fn parse(text: &str) -> Option<Self> {
        u64::from_str_radix(text.trim(), 16).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ns_pid_counts() {
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
