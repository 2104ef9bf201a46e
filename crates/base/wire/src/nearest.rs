//! Suggestions for misspelled names.

/// The minimum number of equal letters of two words that differ in their endings.
const MIN_STEM: usize = 4;

/// Returns the nearest of the known names, in any case, if it is near enough: at most 2 letters or a third differ, and fewer
/// than half, or one of two letters; or only the ending differs, such as `retry` for `retries` and `timeout` for
/// `timeout-per-test`. `None` if no name is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_lowercase();
    let lower = |known: &'a str| (known.to_lowercase(), known);
    let near = known.into_iter().map(lower).filter_map(|(lower, known)| {
        let differ = strsim::osa_distance(&lower, &name);
        let length = known.chars().count();
        let is_near = differ <= 2.max(length / 3) && (differ * 2 < length || (differ, length) == (1, 2));
        // Two typing errors are nearer than a different ending.
        (is_near || is_same_stem(&lower, &name)).then_some((!is_near, differ, known))
    });
    near.min_by_key(|(is_stem, differ, _)| (*is_stem, *differ)).map(|(.., known)| known)
}

/// Returns whether one word starts with all but the last letter of the shorter word.
fn is_same_stem(one: &str, other: &str) -> bool {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let shorter = one.chars().count().min(other.chars().count());
    same >= MIN_STEM && same + 1 >= shorter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("klass", ["uid", "class"]), Some("class"));
        assert_eq!(nearest("max_fail", ["retries", "max-fail"]), Some("max-fail"));
        assert_eq!(nearest("idd", ["uid", "id"]), Some("id"));
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
