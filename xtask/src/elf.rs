//! Reads the parts of an ELF file that show whether it is static: the program headers and the dynamic section of 64-bit
//! little-endian files (System V ABI, chapter 5). Anything unknown is an error.

use anyhow::{Context as _, Result, bail};

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;

/// What a file needs at run time besides itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Linking {
    /// The loader that the kernel must start it with.
    pub interpreter: Option<String>,
    /// The number of shared libraries it needs.
    pub needed: usize,
}

impl Linking {
    /// Returns whether it needs nothing.
    pub fn is_static(&self) -> bool {
        self.interpreter.is_none() && self.needed == 0
    }
}

/// Reads what a file needs.
pub fn linking(file: &[u8]) -> Result<Linking> {
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit little-endian ELF file");
    }
    let table = usize::try_from(u64_at(file, 32)?)?;
    let (size, count) = (u16_at(file, 54)?, u16_at(file, 56)?);
    let mut linking = Linking { interpreter: None, needed: 0 };
    for index in 0..usize::from(count) {
        let header = table + index * usize::from(size);
        let kind = u32_at(file, header)?;
        if kind != PT_INTERP && kind != PT_DYNAMIC {
            continue;
        }
        let start = usize::try_from(u64_at(file, header + 8)?)?;
        let length = usize::try_from(u64_at(file, header + 32)?)?;
        let end = start.checked_add(length).context("a segment wraps around")?;
        let segment = file.get(start..end).context("a segment ends behind the file")?;
        if kind == PT_INTERP {
            let path = segment.split(|byte| *byte == 0).next().unwrap_or_default();
            linking.interpreter = Some(String::from_utf8_lossy(path).into_owned());
        } else {
            let (entries, _) = segment.as_chunks::<16>();
            let tags = entries.iter().map(|entry| u64_at(entry, 0)).collect::<Result<Vec<u64>>>()?;
            linking.needed = tags.iter().filter(|tag| **tag == DT_NEEDED).count();
        }
    }
    Ok(linking)
}

/// The field `e_machine`.
pub fn machine(file: &[u8]) -> Result<u16> {
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        bail!("not a 64-bit little-endian ELF file");
    }
    u16_at(file, 18)
}

fn bytes<const N: usize>(file: &[u8], offset: usize) -> Result<[u8; N]> {
    let rest = file.get(offset..).and_then(|rest| rest.first_chunk::<N>());
    rest.copied().with_context(|| format!("the file ends before offset {offset}"))
}

pub(crate) fn u16_at(file: &[u8], offset: usize) -> Result<u16> {
    bytes(file, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(file: &[u8], offset: usize) -> Result<u32> {
    bytes(file, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(file: &[u8], offset: usize) -> Result<u64> {
    bytes(file, offset).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with one program header of each given kind; all of them cover the same `content`.
    fn elf(kinds: &[u32], content: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * kinds.len()];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = u8::try_from(kinds.len()).unwrap();
        let start = u64::try_from(file.len()).unwrap();
        for (index, kind) in kinds.iter().enumerate() {
            let at = 64 + 56 * index;
            file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            file[at + 8..at + 16].copy_from_slice(&start.to_le_bytes());
            file[at + 32..at + 40].copy_from_slice(&u64::try_from(content.len()).unwrap().to_le_bytes());
        }
        file.extend_from_slice(content);
        file
    }

    #[test]
    fn a_loader_or_a_library_makes_it_dynamic() {
        assert!(linking(&elf(&[1, 6], b"")).unwrap().is_static());
        let loaded = linking(&elf(&[PT_INTERP], b"/lib/ld.so\0")).unwrap();
        assert_eq!(loaded.interpreter.as_deref(), Some("/lib/ld.so"));
        assert!(!loaded.is_static());
        let mut dynamic = vec![0; 32];
        dynamic[0] = 1;
        assert_eq!(linking(&elf(&[PT_DYNAMIC], &dynamic)).unwrap().needed, 1);
        dynamic[0] = 30;
        assert!(linking(&elf(&[PT_DYNAMIC], &dynamic)).unwrap().is_static());
    }

    #[test]
    fn the_machine_is_in_the_header() {
        let mut file = elf(&[], b"");
        file[18] = 183;
        assert_eq!(machine(&file).unwrap(), 183);
        assert!(machine(&file[..19]).is_err());
        assert!(machine(b"MZ").is_err());
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let whole = elf(&[PT_INTERP], b"/lib/ld.so\0");
        for length in 0..whole.len() {
            assert!(linking(&whole[..length]).is_err(), "{length} bytes");
        }
    }
}
