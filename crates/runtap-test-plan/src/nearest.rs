//! Owns: which of the known names was probably meant. Refuses to: put it into a sentence of its own.

/// The first of the nearest names, if it is near enough to be meant: at most 2 letters differ, and fewer than half.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let near = known.into_iter().map(|known| (distance(&known.to_ascii_lowercase(), &name), known));
    let (differ, known) = near.min_by_key(|(distance, _)| *distance)?;
    (differ <= 2 && differ * 2 < known.chars().count().max(2)).then_some(known)
}

/// How many letters have to be inserted, removed or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    // The distances between the letters of `a` so far and each beginning of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let here = (diagonal + usize::from(x != *y)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, here);
            left = here;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ() {
        let pairs = [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("flaw", "lawn", 2)];
        for (a, b, expected) in pairs {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_is_near() {
        assert_eq!(nearest("klass", ["uid", "class"]), Some("class"));
        assert_eq!(nearest("max_fail", ["retries", "max-fail"]), Some("max-fail"));
        assert_eq!(nearest("xy", ["uid", "class"]), None);
        assert_eq!(nearest("Owner", ["uid", "name"]), None);
    }
}
