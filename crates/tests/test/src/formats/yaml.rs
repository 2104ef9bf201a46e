//! The subset of YAML in diagnostics of TAP: keys, quoted and unquoted scalars, and text blocks. Nested lists and maps
//! are skipped.

/// Returns the keys and values of a text without common indentation.
pub(crate) fn read(text: &str) -> Vec<(&str, String)> {
    let lines: Vec<_> = text.lines().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        at += 1;
        let Some((key, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '-', '#'])) else {
            continue;
        };
        let value = value.trim();
        let is_block = matches!(value, "|" | "|-" | "|+" | ">" | ">-" | ">+");
        let inner = lines.get(at..).unwrap_or_default();
        let size = inner.iter().take_while(|line| line.starts_with(' ') || line.is_empty()).count();
        let inner = inner.get(..size).unwrap_or_default();
        at += size;
        if is_block {
            let indent = |line: &&str| line.len() - line.trim_start().len();
            let least = inner.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
            let lines = inner.iter().map(|line| line.get(least..).unwrap_or_default());
            let joint = if value.starts_with('>') { " " } else { "\n" };
            all.push((key, lines.collect::<Vec<_>>().join(joint).trim_end().to_owned()));
        } else {
            all.push((key, scalar(value)));
        }
    }
    all
}

fn scalar(text: &str) -> String {
    if let Some(inner) = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        return inner.replace("''", "'");
    }
    let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => {}
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_and_blocks_are_parsed() {
        let text = "a: 'it''s'\nb: \"x\\ny\"\nc: |-\n  one\n    two\n\n  three\nd:\n  - list\ne: 1.5\n- no\nf: >\n  x\n  y";
        let of = |key, value: &str| (key, value.to_owned());
        let expected = [
            of("a", "it's"),
            of("b", "x\ny"),
            of("c", "one\n  two\n\nthree"),
            of("d", ""),
            of("e", "1.5"),
            of("f", "x y"),
        ];
        assert_eq!(read(text), expected);
        assert_eq!(read("'\na: '\né: \""), [of("a", "'"), of("é", "\"")]);
    }
}
