//! Owns: which of the known names was probably meant. Refuses to: put it into a sentence of its own.

/// Of a word with another ending, at least so many letters are the same.
const STEM: usize = 4;

/// The first of the nearest names, if it is near enough to be meant: at most 2 letters differ, and fewer than half; or it
/// is the same word with another ending, such as `retry` for `retries` and `timeout` for `timeout-per-test`.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let lower = |known: &'a str| (known.to_ascii_lowercase(), known);
    let near = known.into_iter().map(lower).filter_map(|(lower, known)| {
        let differ = strsim::levenshtein(&lower, &name);
        let is_near = differ <= 2 && differ * 2 < known.chars().count().max(2);
        // Two slips of the finger are nearer than any other ending.
        (is_near || is_same_stem(&lower, &name)).then_some((!is_near, differ, known))
    });
    near.min_by_key(|(is_stem, differ, _)| (*is_stem, *differ)).map(|(.., known)| known)
}

/// Whether all but the last letter of the shorter word begins the other.
fn is_same_stem(one: &str, other: &str) -> bool {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let shorter = one.chars().count().min(other.chars().count());
    same >= STEM && same + 1 >= shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_near() {
        assert_eq!(nearest("klass", ["uid", "class"]), Some("class"));
        assert_eq!(nearest("max_fail", ["retries", "max-fail"]), Some("max-fail"));
        assert_eq!(nearest("xy", ["uid", "class"]), None);
        assert_eq!(nearest("Owner", ["uid", "name"]), None);
        let keys = ["filter", "flaky", "max-fail", "retries", "slow", "timeout-per-test"];
        for (key, meant) in
            [("retry", "retries"), ("timeout", "timeout-per-test"), ("max-failures", "max-fail")]
        {
            assert_eq!(nearest(key, keys), Some(meant));
        }
        assert_eq!(nearest("timeouts-of-runs", keys), None);
        assert_eq!(nearest("Orders", ["OrderTests", "Ordes"]), Some("Ordes"));
    }
}
