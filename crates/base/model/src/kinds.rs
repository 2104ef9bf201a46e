//! What samples are: an open set of kinds, which each source extends by its own.
//!
//! A kind is a [`Class`], which says what every view and sink has to know of it, and a number among those of its class. What
//! it is called and what its weights count stands in the trace's [table](KindTable).

use crate::view::Unit;

/// What a sample tells of its thread, whatever the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A tick: the thread ran.
    Running,
    /// A tick: the thread waited, or was where the source can't look.
    Waiting,
    /// A tick of which the source can't tell.
    Unclear,
    /// No tick: something that happened, with a weight of its own.
    Weighed,
}

/// A kind of samples. Those of the CLR are constants, and in every trace; further ones come from
/// [`TraceBuilder::kind`](crate::TraceBuilder::kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleKind(u8); // The class in the upper two of five bits, the number below.

/// What a source says of a kind that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KindInfo {
    /// What every view has to know.
    pub class: Class,
    /// What files call it.
    pub name: &'static str,
    /// What its weights count. Ticks count time.
    pub unit: Unit,
}

/// How many bits a kind takes.
pub(crate) const BITS: u32 = 5;

const NUMBER_BITS: u32 = 3;

/// How many kinds a class can have.
pub const MAX_KINDS: usize = 1 << NUMBER_BITS;

impl SampleKind {
    /// The CLR: in managed code.
    pub const MANAGED: Self = Self::new(Class::Running, 0);
    /// The CLR: outside of it, in native code or waiting.
    pub const EXTERNAL: Self = Self::new(Class::Waiting, 0);
    /// The CLR: the runtime could not tell.
    pub const OTHER: Self = Self::new(Class::Unclear, 0);
    /// An event of the view that the trace was made for, which says what its weight counts.
    pub const EVENT: Self = Self::new(Class::Weighed, 0);

    const fn new(class: Class, number: u8) -> Self {
        let class = match class {
            Class::Running => 0,
            Class::Waiting => 1,
            Class::Unclear => 2,
            Class::Weighed => 3,
        };
        Self(class << NUMBER_BITS | number)
    }

    /// What it tells, whatever the source.
    #[inline]
    pub fn class(self) -> Class {
        match self.0 >> NUMBER_BITS {
            0 => Class::Running,
            1 => Class::Waiting,
            2 => Class::Unclear,
            _ => Class::Weighed,
        }
    }

    /// Whether its samples are ticks, whose weights follow from their times.
    #[inline]
    pub fn is_tick(self) -> bool {
        self.class() != Class::Weighed
    }

    /// The kind of the CLR that is of the same class.
    pub(crate) fn first_of_class(self) -> Self {
        Self::new(self.class(), 0)
    }

    /// The kind in [`BITS`] bits.
    #[inline]
    pub(crate) fn to_bits(self) -> u32 {
        u32::from(self.0)
    }

    /// The kind of [`to_bits`](Self::to_bits).
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self((bits & ((1 << BITS) - 1)) as u8)
    }
}

const OF_THE_CLR: [KindInfo; 4] = [
    KindInfo { class: Class::Running, name: "managed", unit: Unit::Nanoseconds },
    KindInfo { class: Class::Waiting, name: "external", unit: Unit::Nanoseconds },
    KindInfo { class: Class::Unclear, name: "other", unit: Unit::Nanoseconds },
    KindInfo { class: Class::Weighed, name: "event", unit: Unit::Count },
];

/// The kinds of a trace, each once.
#[derive(Debug, Clone)]
pub struct KindTable {
    kinds: Vec<(SampleKind, KindInfo)>,
}

impl Default for KindTable {
    fn default() -> Self {
        let kinds = OF_THE_CLR.map(|info| (SampleKind::new(info.class, 0), info));
        Self { kinds: kinds.to_vec() }
    }
}

impl KindTable {
    /// The kind of this description, which is added if it is new. `None`: its class has [`MAX_KINDS`] others.
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

    /// All kinds, those of the CLR first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (SampleKind, KindInfo)> + '_ {
        self.kinds.iter().copied()
    }

    /// The place of a kind among all of them.
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
    fn a_kind_keeps_its_class_and_gets_a_number_of_its_own() {
        let mut table = KindTable::default();
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for class in [Class::Running, Class::Waiting, Class::Unclear, Class::Weighed] {
            let mut seen = vec![];
            for name in names {
                let info = KindInfo { class, name, unit: Unit::Bytes };
                let kind = table.add(info);
                assert_eq!(kind, table.add(info), "each once");
                seen.extend(kind);
            }
            assert_eq!(seen.len(), MAX_KINDS - 1, "one is the CLR's");
            for (n, kind) in seen.iter().enumerate() {
                assert_eq!((kind.class(), kind.is_tick()), (class, class != Class::Weighed));
                assert_eq!(SampleKind::from_bits(kind.to_bits()), *kind);
                assert!(kind.to_bits() < 1 << BITS);
                assert!(!seen[..n].contains(kind));
                assert!(table.index(*kind).is_some_and(|index| table.kinds[index].1.name == names[n]));
            }
        }
        assert_eq!(table.iter().len(), 4 * MAX_KINDS);
    }

    #[test]
    fn those_of_the_clr_are_in_every_table() {
        let table = KindTable::default();
        let all = [SampleKind::MANAGED, SampleKind::EXTERNAL, SampleKind::OTHER, SampleKind::EVENT];
        assert_eq!(all.map(|kind| table.index(kind)), [0, 1, 2, 3].map(Some));
    }
}
