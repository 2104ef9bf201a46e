//! Regrouping of selected tests that have no result although their process exited normally: the id of another test may
//! be the cause. `NUnit`'s adapter, for example, combines all ids into one filter, and ignores the part after an id
//! with `\\"`.

/// Returns groups of the tests without a result that should be run separately. Empty if this would not help, because no
/// id is suspicious, or the only suspicious test was already run alone.
pub(super) fn groups(
    chosen: &[String],
    mut explicit: impl Iterator<Item = impl AsRef<str>>,
    has_result: impl Fn(&String) -> bool,
) -> Vec<Vec<String>> {
    let missing = chosen.iter().filter(|uid| !has_result(uid)).cloned();
    let (mut odd, plain): (Vec<_>, Vec<_>) = missing.partition(|uid| is_odd(uid));
    let is_blameless = !chosen.iter().any(|uid| is_odd(uid)) && !explicit.any(|uid| is_odd(uid.as_ref()));
    if is_blameless || chosen.len() == 1 && odd.len() == 1 {
        return Vec::new();
    }
    let was_apart = chosen.iter().all(|uid| is_odd(uid));
    let half = if was_apart { odd.len() / 2 } else { 0 };
    let others = odd.split_off(half);
    [plain, odd, others].into_iter().filter(|uids| !uids.is_empty()).collect()
}

/// Returns whether an id has characters that end or escape a word in the filter languages of adapters.
fn is_odd(uid: &str) -> bool {
    uid.contains(|char: char| char.is_whitespace() || char == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups_of(chosen: &[&str], explicit: &[&str], have_results: &[&str]) -> Vec<Vec<String>> {
        let chosen: Vec<_> = chosen.iter().map(|uid| (*uid).to_owned()).collect();
        groups(&chosen, explicit.iter(), |uid| have_results.contains(&uid.as_str()))
    }

    #[test]
    fn suspicious_ids_are_separated_first_and_then_halved() {
        assert_eq!(groups_of(&["a", r"b\", "c"], &[], &["a"]), [vec!["c"], vec![r"b\"]]);
        assert_eq!(groups_of(&["a", "b b", r"c\", "d"], &[], &[]), [vec!["a", "d"], vec!["b b", r"c\"]]);
        assert_eq!(groups_of(&["b b", r"c\", "d d"], &[], &[]), [vec!["b b"], vec![r"c\", "d d"]]);
        assert_eq!(groups_of(&["b b", r"c\"], &[], &["b b"]), [vec![r"c\"]]);
        assert!(groups_of(&[r"c\"], &[], &[]).is_empty());
        assert_eq!(groups_of(&["a"], &[r"c\"], &[]), [vec!["a"]]);
    }

    #[test]
    fn ordinary_ids_are_not_suspected() {
        assert!(groups_of(&["a", "b", "c"], &["d"], &["a"]).is_empty());
        assert!(groups_of(&["a", "b b"], &[], &["a", "b b"]).is_empty());
    }
}
