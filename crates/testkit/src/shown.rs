//! The runtap commands in documentation, as words. The program's own tests check whether they are valid.

use std::fs;
use std::path::Path;

/// Splits a line into words like a shell, up to a comment, a pipe or the next command. `None` if it does not run
/// runtap.
pub fn words(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    if !line.starts_with("runtap ") {
        return None;
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(end), letter) if letter == end => quote = None,
            (Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | '&' | ';') => break,
            (None, '#') if word.is_none() => break,
            (None, ' ') => {
                words.extend(word.take());
                // Two blanks separate a command from its description.
                if letters.as_str().starts_with(' ') {
                    break;
                }
            }
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

/// Returns the commands in the code blocks of a page.
pub fn in_page(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut in_block, mut shown) = (false, Vec::new());
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            shown.extend(words(line));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_like_in_a_shell() {
        let split = |line| words(line).map(|words| words.join("|"));
        assert_eq!(split("  runtap a 'b c' \"d \\\" e\" | jq .x").as_deref(), Some("runtap|a|b c|d \" e"));
        assert_eq!(split("sudo runtap a   what it does").as_deref(), Some("runtap|a"));
        assert_eq!(split("runtap a # b").as_deref(), Some("runtap|a"));
        assert_eq!(split("runtap -o x.y#z '' &").as_deref(), Some("runtap|-o|x.y#z|"));
        assert_eq!(split("dotnet app.dll"), None);
    }
}
