//! Distinct names for the fields of an object.

use std::collections::{HashMap, HashSet};

use crate::shown::shown;

/// Returns the names of an object's fields as they are shown. Repeated names are numbered: `n`, `n_2`, `n_3`.
pub(super) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Box<str>> {
    let mut names: Vec<Box<str>> = names.map(|name| shown(name).into()).collect();
    let mut taken: HashSet<Box<str>> = names.iter().cloned().collect();
    if taken.len() == names.len() {
        return names;
    }
    let mut counts: HashMap<Box<str>, u32> = HashMap::new();
    for name in &mut names {
        let count = counts.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 {
            continue;
        }
        // Another field may have the numbered name.
        let mut numbered = format!("{name}_{count}");
        while !taken.insert(numbered.as_str().into()) {
            *count += 1;
            numbered = format!("{name}_{count}");
        }
        *name = numbered.into();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_names_are_numbered() {
        for (names, numbered) in [
            ("", ""),
            ("a b", "a b"),
            ("a a b a", "a a_2 b a_3"),
            ("a a a_2 a", "a a_3 a_2 a_4"),
            ("a_2 a a a_2 a", "a_2 a a_3 a_2_2 a_4"),
        ] {
            assert_eq!(distinct(names.split_whitespace()).join(" "), numbered);
        }
        assert_eq!(distinct(["", "", ""].into_iter()).join("|"), "|_2|_3");
    }

    #[test]
    fn names_that_are_equal_when_shown_are_numbered() {
        let long = "x".repeat(300);
        let names = [long.clone() + "a", long + "b"];
        let distinct = distinct(names.iter().map(String::as_str));
        assert_eq!(*distinct[1], format!("{}_2", distinct[0]));
    }
}
