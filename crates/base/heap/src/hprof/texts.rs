//! Texts that occur more than once. The contents of arrays are only kept as a hash and a short beginning.

use runtap_model::order;

use crate::dense::{Map, small};
use crate::{Graph, ObjectId};

/// The greatest array that is compared, in bytes.
const MAX_ARRAY: u64 = 1 << 20;
/// The length of the beginning that is kept, in bytes.
const SAMPLE: usize = 80;
/// The greatest number of different contents for which a beginning is kept.
const MAX_SAMPLES: usize = 1 << 20;
/// The basic types of arrays that contain texts.
const CHAR: u8 = 5;
const BYTE: u8 = 8;

/// The texts of strings with equal contents in separate arrays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepeatedTexts {
    /// The number of arrays that contain the text of a string.
    pub arrays: u64,
    /// The sum of the sizes of arrays that would not be needed if equal texts shared one, in bytes.
    pub wasted_bytes: u64,
    /// The texts that occur more than once, the greatest waste first.
    pub texts: Vec<RepeatedText>,
}

/// A text that several arrays contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedText {
    /// The text, or its beginning. Unpaired surrogates are replaced by U+FFFD.
    pub text: String,
    /// Whether the text is longer.
    pub is_truncated: bool,
    /// The number of arrays.
    pub copies: u64,
    /// The sum of the sizes of all but one of them in bytes.
    pub wasted_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct Content {
    sample: u32,
    sample_bytes: u8,
    is_truncated: bool,
    is_char: bool,
    is_wide: bool,
    copies: u32,
    bytes: u64,
    array_bytes: u64,
}

/// Collects contents.
#[derive(Debug, Default)]
pub(super) struct Texts {
    by_hash: Map<u64, u32>,
    contents: Vec<Content>,
    samples: Vec<u8>,
    /// Arrays in order, and what they contain.
    arrays: Vec<(ObjectId, u32)>,
    /// The strings in order, and whether a byte array of theirs contains UTF-16.
    strings: Vec<(ObjectId, bool)>,
}

impl Texts {
    /// Whether the contents of an array are compared.
    pub(super) fn takes(basic_type: u8, bytes: u64) -> bool {
        matches!(basic_type, CHAR | BYTE) && bytes <= MAX_ARRAY
    }

    pub(super) fn add_text(&mut self, string: ObjectId, coder: Option<u8>) {
        self.strings.push((string, coder == Some(1)));
    }

    pub(super) fn add_array(&mut self, array: ObjectId, basic_type: u8, bytes: &[u8]) {
        use std::hash::{BuildHasher as _, Hasher as _};
        let mut hasher = self.by_hash.hasher().build_hasher();
        hasher.write(bytes);
        hasher.write_u8(basic_type);
        let new = small(self.contents.len());
        let content = *self.by_hash.entry(hasher.finish()).or_insert(new);
        if content == new {
            let kept = if self.contents.len() < MAX_SAMPLES { bytes.len().min(SAMPLE) } else { 0 };
            self.contents.push(Content {
                sample: small(self.samples.len()),
                sample_bytes: u8::try_from(kept).unwrap_or(u8::MAX),
                is_truncated: kept < bytes.len(),
                is_char: basic_type == CHAR,
                is_wide: false,
                copies: 0,
                bytes: 0,
                array_bytes: 0,
            });
            self.samples.extend_from_slice(bytes.get(..kept).unwrap_or_default());
        }
        self.arrays.push((array, content));
    }

    /// Counts the arrays to which strings refer.
    pub(super) fn finish(mut self, graph: &Graph) -> RepeatedTexts {
        let mut is_used = vec![false; self.arrays.len()];
        let mut result = RepeatedTexts::default();
        for (string, is_wide) in &self.strings {
            let Some(array) = graph.references_of(*string).first() else { continue };
            let Ok(place) = self.arrays.binary_search_by_key(array, |(array, _)| *array) else { continue };
            let Some(is_used) = is_used.get_mut(place).filter(|is_used| !**is_used) else { continue };
            *is_used = true;
            result.arrays += 1;
            if let Some((_, content)) = self.arrays.get(place)
                && let Some(content) = self.contents.get_mut(*content as usize)
            {
                content.copies += 1;
                content.array_bytes = graph.size_of(*array);
                content.bytes += content.array_bytes;
                content.is_wide = *is_wide;
            }
        }
        let Self { contents, samples, .. } = self;
        for content in contents.iter().filter(|content| content.copies > 1) {
            let wasted_bytes = content.bytes.saturating_sub(content.array_bytes);
            result.wasted_bytes = result.wasted_bytes.saturating_add(wasted_bytes);
            let start = content.sample as usize;
            let sample = samples.get(start..start + usize::from(content.sample_bytes)).unwrap_or_default();
            result.texts.push(RepeatedText {
                text: content.decode(sample),
                is_truncated: content.is_truncated,
                copies: content.copies.into(),
                wasted_bytes,
            });
        }
        order::sort_by_key(&mut result.texts, |text| std::cmp::Reverse(text.wasted_bytes));
        result
    }
}

impl Content {
    /// Decodes a text: big-endian units of an array of `char`, otherwise Latin-1, or UTF-16 in the order of x86.
    fn decode(&self, sample: &[u8]) -> String {
        let units = sample.as_chunks::<2>().0.iter();
        let replaced = |c: Result<char, _>| c.unwrap_or(char::REPLACEMENT_CHARACTER);
        match (self.is_char, self.is_wide) {
            (true, _) => {
                char::decode_utf16(units.map(|unit| u16::from_be_bytes(*unit))).map(replaced).collect()
            }
            (false, true) => runtap_wire::Utf16::new(sample).to_string(),
            (false, false) => sample.iter().map(|byte| char::from(*byte)).collect(),
        }
    }
}
