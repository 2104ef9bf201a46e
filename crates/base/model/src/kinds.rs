//! Kinds of samples: an open set that each source can extend.
//!
//! A kind consists of a [`SampleClass`], which is what views and sinks need to know, and a number within the class. Its
//! name and unit are in the [table](KindTable) of the trace.

use crate::view::Unit;

/// What a sample says about its thread, independent of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleClass {
    /// A tick of a running thread.
    Running,
    /// A tick of a thread that waited, or ran code that the source cannot examine.
    Waiting,
    /// A tick of a thread in an unknown state.
    Unknown,
    /// Not a tick, but an event with a weight of its own.
    Weighted,
}

/// A kind of samples. The constants are the kinds of the CLR and exist in every trace; sources add others with
/// [`TraceBuilder::kind`](crate::TraceBuilder::kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleKind(u8); // The class in the upper two of five bits, the number in the others.

/// The properties of a kind of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KindInfo {
    /// The class of the samples.
    pub class: SampleClass,
    /// Name in files.
    pub name: &'static str,
    /// Description of a view of the samples, in a few words.
    pub about: &'static str,
    /// Unit of the weights. Ticks have a unit of time.
    pub unit: Unit,
}

/// Size of an encoded kind in bits.
pub(crate) const BITS: u32 = 5;

const NUMBER_BITS: u32 = 3;

/// Maximum number of kinds per class.
pub const MAX_KINDS: usize = 1 << NUMBER_BITS;

impl SampleKind {
    /// CLR: the thread was in managed code.
    pub const MANAGED: Self = Self::new(SampleClass::Running, 0);
    /// CLR: the thread was in native code or waited.
    pub const EXTERNAL: Self = Self::new(SampleClass::Waiting, 0);
    /// CLR: the runtime could not determine the state.
    pub const OTHER: Self = Self::new(SampleClass::Unknown, 0);
    /// An event of the view that the trace was made for; the view defines the unit of its weight.
    pub const EVENT: Self = Self::new(SampleClass::Weighted, 0);

    const fn new(class: SampleClass, number: u8) -> Self {
        let class = match class {
            SampleClass::Running => 0,
            SampleClass::Waiting => 1,
            SampleClass::Unknown => 2,
            SampleClass::Weighted => 3,
        };
        Self(class << NUMBER_BITS | number)
    }

    /// Returns the class.
    #[inline]
    pub fn class(self) -> SampleClass {
        match self.0 >> NUMBER_BITS {
            0 => SampleClass::Running,
            1 => SampleClass::Waiting,
            2 => SampleClass::Unknown,
            _ => SampleClass::Weighted,
        }
    }

    /// Returns whether the samples are ticks, whose weights are computed from their times.
    #[inline]
    pub fn is_tick(self) -> bool {
        self.class() != SampleClass::Weighted
    }

    /// Returns the CLR's kind of this class.
    pub(crate) fn first_of_class(self) -> Self {
        Self::new(self.class(), 0)
    }

    /// Encodes the kind in [`BITS`] bits.
    #[inline]
    pub(crate) fn to_bits(self) -> u32 {
        u32::from(self.0)
    }

    /// Decodes the result of [`to_bits`](Self::to_bits).
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self((bits & ((1 << BITS) - 1)) as u8)
    }
}

const CLR_KINDS: [KindInfo; 4] = [
    KindInfo {
        class: SampleClass::Running,
        name: "managed",
        about: "Samples of threads that ran managed code",
        unit: Unit::Nanoseconds,
    },
    KindInfo {
        class: SampleClass::Waiting,
        name: "external",
        about: "Samples of threads that ran native code or waited",
        unit: Unit::Nanoseconds,
    },
    KindInfo {
        class: SampleClass::Unknown,
        name: "other",
        about: "Samples of threads in an unknown state",
        unit: Unit::Nanoseconds,
    },
    KindInfo { class: SampleClass::Weighted, name: "event", about: "Events of the view", unit: Unit::Count },
];

/// The table of a trace's kinds.
#[derive(Debug, Clone)]
pub struct KindTable {
    kinds: Vec<(SampleKind, KindInfo)>,
}

impl Default for KindTable {
    fn default() -> Self {
        let kinds = CLR_KINDS.map(|info| (SampleKind::new(info.class, 0), info));
        Self { kinds: kinds.to_vec() }
    }
}

impl KindTable {
    /// Returns the kind with these properties, adding it if necessary. `None` if its class already has [`MAX_KINDS`]
    /// kinds.
    pub(crate) fn add(&mut self, info: KindInfo) -> Option<SampleKind> {
        if let Some((kind, _)) = self.kinds.iter().find(|(_, known)| *known == info) {
            return Some(*kind);
        }
        let number = self.kinds.iter().filter(|(_, known)| known.class == info.class).count();
        let number = u8::try_from(number).ok().filter(|number| usize::from(*number) < MAX_KINDS)?;
        let kind = SampleKind::new(info.class, number);
        self.kinds.push((kind, info));
        Some(kind)
    }

    /// Returns all kinds, starting with those of the CLR.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SampleKind, KindInfo)> + '_ {
        self.kinds.iter().copied()
    }

    /// Returns the index of a kind. `None` if it is not in this table.
    pub fn index(&self, kind: SampleKind) -> Option<usize> {
        if kind == kind.first_of_class() {
            return Some(usize::from(kind.0 >> NUMBER_BITS));
        }
        self.kinds.iter().position(|(known, _)| *known == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_keeps_its_class_and_gets_a_number() {
        let mut table = KindTable::default();
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for class in [SampleClass::Running, SampleClass::Waiting, SampleClass::Unknown, SampleClass::Weighted]
        {
            let mut seen = vec![];
            for name in names {
                let info = KindInfo { class, name, about: "", unit: Unit::Bytes };
                let kind = table.add(info);
                assert_eq!(kind, table.add(info), "each once");
                seen.extend(kind);
            }
            assert_eq!(seen.len(), MAX_KINDS - 1, "one is the CLR's");
            for (n, kind) in seen.iter().enumerate() {
                assert_eq!((kind.class(), kind.is_tick()), (class, class != SampleClass::Weighted));
                assert_eq!(SampleKind::from_bits(kind.to_bits()), *kind);
                assert!(kind.to_bits() < 1 << BITS);
                assert!(!seen[..n].contains(kind));
                assert!(table.index(*kind).is_some_and(|index| table.kinds[index].1.name == names[n]));
            }
        }
        assert_eq!(table.iter().len(), 4 * MAX_KINDS);
    }

    #[test]
    fn kinds_of_the_clr_are_in_every_table() {
        let table = KindTable::default();
        let all = [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER, SampleKind::EVENT];
        assert_eq!(all.map(|kind| table.index(kind)), [0, 1, 2, 3].map(Some));
    }
}
