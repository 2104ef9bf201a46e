//! The amount of memory that a process has mapped, from which the size of a dump is estimated. Source: `proc(5)`, "maps".

/// The amount of mapped memory, by permission. Reserved addresses without permissions are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// The number of readable bytes.
    pub readable: u64,
    /// The number of readable and writable bytes.
    pub writable: u64,
}

/// Parses lines of the form `START-END rwxp …` and ignores others.
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
