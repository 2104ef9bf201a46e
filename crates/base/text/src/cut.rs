//! Truncation of lines to the width of the terminal.

/// Truncates a line to `columns` characters, ending with an ellipsis. Does nothing if `columns` is `None`.
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
    fn long_lines_are_truncated() {
        assert_eq!(cut("äbcde".to_owned(), Some(4)), "äbc…");
        assert_eq!(cut("äbcd".to_owned(), Some(4)), "äbcd");
        assert_eq!(cut("äbcde".to_owned(), None), "äbcde");
        assert_eq!(cut("ab".to_owned(), Some(1)), "…");
    }
}
