//! The fields of a header after the name of a thread.

use runtap_model::thread_dump::{DumpedThread, ThreadKind};

/// The fields of a header.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Header {
    /// The address of the thread's structure in the JVM.
    pub(super) address: u64,
    /// The id of the thread in Java. `None` for threads of the JVM.
    id: Option<u64>,
    tid: Option<u64>,
    is_daemon: bool,
    priority: Option<i32>,
    cpu_ns: Option<u64>,
    elapsed_ns: Option<u64>,
}

impl Header {
    /// Parses the text after the quote that ends the name. `None` if it is not a header.
    pub(super) fn parse(fields: &str) -> Option<Self> {
        let mut header = Self::default();
        let (mut address, mut has_priority) = (None, false);
        for (index, field) in fields.strip_prefix(' ')?.split_ascii_whitespace().enumerate() {
            // The state follows the ids, as words.
            if let Some(nid) = field.strip_prefix("nid=") {
                header.tid = self::address(nid).or_else(|| nid.parse().ok());
                header.address = address?;
                return has_priority.then_some(header);
            }
            match field.split_once('=') {
                Some(("prio", value)) => header.priority = Some(value.parse().ok()?),
                Some(("os_prio", value)) => has_priority = value.parse::<i64>().is_ok(),
                Some(("cpu", value)) => header.cpu_ns = Some(duration(value.strip_suffix("ms")?, 1e6)?),
                Some(("elapsed", value)) => {
                    header.elapsed_ns = Some(duration(value.strip_suffix('s')?, 1e9)?);
                }
                Some(("tid", value)) => address = Some(self::address(value)?),
                Some(("allocated" | "defined_classes", _)) => {}
                None if field == "daemon" => header.is_daemon = true,
                None if index == 0 => header.id = Some(field.strip_prefix('#')?.parse().ok()?),
                // The id of the thread in the kernel, which `nid` has too.
                None if field.starts_with('[') && field.ends_with(']') => {}
                _ => return None,
            }
        }
        None
    }

    pub(super) fn is_java(&self) -> bool {
        self.id.is_some()
    }

    pub(super) fn into_thread(self, name: &str) -> DumpedThread {
        let is_java = self.is_java();
        DumpedThread {
            kind: if is_java { ThreadKind::Platform } else { ThreadKind::Runtime },
            tid: self.tid,
            id: self.id,
            name: Some(name.to_owned()),
            is_daemon: is_java.then_some(self.is_daemon),
            priority: self.priority,
            cpu_ns: self.cpu_ns,
            elapsed_ns: self.elapsed_ns,
            ..DumpedThread::default()
        }
    }
}

/// Parses `0x1f`.
pub(super) fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Parses a decimal number of units of `unit_ns` nanoseconds.
fn duration(text: &str, unit_ns: f64) -> Option<u64> {
    let value: f64 = text.parse().ok()?;
    let ns = (value * unit_ns).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    (0.0..1e18).contains(&ns).then_some(ns as u64)
}
