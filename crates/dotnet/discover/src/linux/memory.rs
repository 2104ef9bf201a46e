//! How much memory a process has mapped, for guessing the size of a dump. Source: `proc(5)`, "maps".

/// Mapped memory, by what the process may do with it. Reserved addresses that it may not touch do not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Bytes that it may read.
    pub readable: u64,
    /// Bytes that it may read and write.
    pub writable: u64,
}

/// Lines `START-END rwxp …`; others count nothing.
pub(super) fn parse(maps: &[u8]) -> Memory {
    let mut memory = Memory::default();
    for line in maps.split(|b| *b == b'\n') {
        let Some((bytes, permissions)) = mapping(line) else { continue };
        if permissions.starts_with('r') {
            memory.readable = memory.readable.saturating_add(bytes);
        }
        if permissions.starts_with("rw") {
            memory.writable = memory.writable.saturating_add(bytes);
        }
    }
    memory
}

fn mapping(line: &[u8]) -> Option<(u64, &str)> {
    let mut fields = line.splitn(3, |b| *b == b' ');
    let (range, permissions) = (text(fields.next()?)?, text(fields.next()?)?);
    let (start, end) = range.split_once('-')?;
    let address = |digits| u64::from_str_radix(digits, 16).ok();
    Some((address(end)?.checked_sub(address(start)?)?, permissions))
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_memory_does_not_count() {
        let maps = b"7f0000000000-7f0000001000 r--p 00000000 08:01 42  /lib/gr\xfcn.so\n\
            7f0000001000-7f0000003000 rw-p 00000000 00:00 0  [heap]\n\
            7f0000003000-7f4000000000 ---p 00000000 00:00 0\n\
            7f4000000000-7f4000001000 --xp 00000000 00:00 0\n\
            odd\n";
        assert_eq!(parse(maps), Memory { readable: 0x3000, writable: 0x2000 });
    }
}
