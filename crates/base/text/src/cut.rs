//! Lines that fit.

/// A line that has at most so many columns, where there is a limit. What does not fit is left out, which an ellipsis shows.
pub fn cut(mut line: String, columns: Option<usize>) -> String {
    if let Some(columns) = columns
        && let Some((end, _)) = line.char_indices().nth(columns)
    {
        let last = line.char_indices().nth(columns.saturating_sub(1)).map_or(end, |(last, _)| last);
        line.truncate(last);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits() {
        assert_eq!(cut("äbcde".to_owned(), Some(4)), "äbc…");
        assert_eq!(cut("äbcd".to_owned(), Some(4)), "äbcd");
        assert_eq!(cut("äbcde".to_owned(), None), "äbcde");
        assert_eq!(cut("ab".to_owned(), Some(1)), "…");
    }
}
