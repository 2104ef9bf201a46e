//! Types and nodes of a graph. A node is a few numbers of variable length in a blob of bytes: its type and size, and the
//! differences between its number and those of the nodes that it references.

use runtap_wire::{DecodeError, DecodeErrorKind, Reader};

use crate::dense::{at, small};
use crate::gcdump::text;

/// The bytes by which a node without references may share the bytes of another one.
const SHARED_NODE: usize = 16;

/// A type of a graph.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) name: String,
    pub(super) module: Option<String>,
    /// The size of nodes that state none, in bytes.
    size: u32,
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    pub(super) type_index: u32,
    pub(super) bytes: u64,
    /// The number of references, and their bytes.
    count: u32,
    references: &'a [u8],
    number: u32,
}

/// The types and nodes of a graph.
#[derive(Debug)]
pub(super) struct Nodes<'a> {
    pub(super) types: Vec<Type>,
    offsets: Vec<u32>,
    blob: &'a [u8],
    /// The bytes of all addresses.
    addresses: &'a [u8],
}

impl<'a> Nodes<'a> {
    /// Reads the types.
    pub(super) fn types(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = length(r, "number of types")?;
        let mut types = Vec::new();
        for _ in 0..count {
            let name = text(r, "name of a type")?.unwrap_or_default();
            let size = r.i32("size of a type")?;
            // Writers that do not know a module's name write its address.
            let is_name = |module: &String| !module.is_empty() && !module.starts_with("Module(0x");
            let module = text(r, "module of a type")?.filter(is_name);
            types.push(Type { name, module, size: u32::try_from(size).unwrap_or_default() });
        }
        Ok(Self { types, offsets: Vec::new(), blob: &[], addresses: &[] })
    }

    /// Reads the nodes. If that fails, the nodes that can be read remain.
    pub(super) fn read(&mut self, r: &mut Reader<'a>) -> Result<(), DecodeError> {
        let count = length(r, "number of nodes")?;
        let available = count.min(r.remaining() / 4);
        let offsets = r.bytes(available * 4, "offsets of nodes")?;
        self.offsets = offsets.as_chunks().0.iter().map(|offset| u32::from_le_bytes(*offset)).collect();
        if available < count {
            return Err(r
                .bytes((count - available) * 4, "offsets of nodes")
                .err()
                .unwrap_or_else(|| r.error("offsets of nodes", DecodeErrorKind::Invalid("are incomplete"))));
        }
        let size = length(r, "size of nodes")?;
        self.blob = r.rest().get(..size).unwrap_or_else(|| r.rest());
        r.bytes(size, "nodes")?;
        self.check(r)?;
        let count = length(r, "number of addresses")?;
        self.addresses = r.bytes(count.saturating_mul(8), "addresses")?;
        Ok(())
    }

    /// Checks that nodes do not share bytes, apart from those without references: a small file could otherwise describe
    /// any number of references.
    fn check(&mut self, r: &Reader<'_>) -> Result<(), DecodeError> {
        let mut limit = self.blob.len().saturating_add(self.offsets.len().saturating_mul(SHARED_NODE));
        for number in 0..self.count() {
            let Some(node) = self.node(number) else {
                return Err(r.error("nodes", DecodeErrorKind::Invalid("contain an invalid one")));
            };
            let Some(left) = limit.checked_sub(node.count as usize) else {
                self.offsets.clear();
                return Err(r.error("nodes", DecodeErrorKind::Invalid("overlap")));
            };
            limit = left;
        }
        Ok(())
    }

    pub(super) fn count(&self) -> u32 {
        small(self.offsets.len())
    }

    /// Returns the address of a node. `None` if the file does not state it.
    pub(super) fn address(&self, number: u32) -> Option<u64> {
        self.addresses.as_chunks().0.get(number as usize).map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns a node. `None` if it is invalid.
    pub(super) fn node(&self, number: u32) -> Option<Node<'a>> {
        let mut rest = self.blob.get(at(&self.offsets, number) as usize..)?;
        let type_and_flag = compact(&mut rest)?;
        let type_index = u32::try_from(type_and_flag >> 1).ok()?;
        let own = self.types.get(type_index as usize)?;
        let bytes = if type_and_flag & 1 == 1 {
            // Sizes are written as 32 bits, whose highest one is no sign.
            u64::from(compact(&mut rest)?.cast_unsigned())
        } else {
            own.size.into()
        };
        let count = u32::try_from(compact(&mut rest)?).ok().filter(|count| *count as usize <= rest.len())?;
        Some(Node { type_index, bytes, count, references: rest, number })
    }
}

impl Node<'_> {
    /// Returns the numbers of the nodes that the node references.
    pub(super) fn references(&self) -> impl Iterator<Item = u32> {
        let (mut rest, number) = (self.references, self.number);
        (0..self.count).map_while(move |_| Some(number.wrapping_add_signed(compact(&mut rest)?)))
    }
}

/// Reads a count, which must not be negative.
fn length(r: &mut Reader<'_>, what: &'static str) -> Result<usize, DecodeError> {
    let start = r.clone();
    let count = r.i32(what)?;
    usize::try_from(count).map_err(|_negative| {
        start.error(
            what,
            DecodeErrorKind::Unexpected { value: count.cast_unsigned().into(), expected: "a count" },
        )
    })
}

/// Reads a number of 1 to 5 bytes: 7 bits each, the highest first, with the sign in the highest bit of the first byte.
fn compact(rest: &mut &[u8]) -> Option<i32> {
    let (first, mut tail) = rest.split_first()?;
    let mut value = i32::from(*first << 1) << 24 >> 25;
    let mut has_more = first & 0x80 != 0;
    let mut bytes = 1;
    while has_more {
        let (next, after) = tail.split_first()?;
        bytes += 1;
        if bytes > 5 {
            return None;
        }
        value = value << 7 | i32::from(next & 0x7f);
        has_more = next & 0x80 != 0;
        tail = after;
    }
    *rest = tail;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_a_sign_and_at_most_five_bytes() {
        for (bytes, value) in [
            (&[0][..], Some(0)),
            (&[0x3f], Some(63)),
            (&[0x40], Some(-64)),
            (&[0x7f], Some(-1)),
            (&[0x80, 0x40], Some(64)),
            (&[0xff, 0x3f], Some(-65)),
            (&[0x87, 0xff, 0xff, 0xff, 0x7f], Some(i32::MAX)),
            (&[0x80], None),
            (&[], None),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0], None),
        ] {
            assert_eq!(compact(&mut &*bytes), value, "{bytes:x?}");
        }
    }
}
