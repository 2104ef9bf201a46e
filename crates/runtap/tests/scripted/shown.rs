//! The output for users, without parts that differ between runs.

/// Replaces durations by `TIME` and the scenario's folder by `DIR`.
pub(crate) fn normalized(text: &str, folder: &str) -> String {
    let text = text.replace(folder, "DIR");
    let mut out = String::new();
    for line in text.lines() {
        let line =
            if line.contains(" running for ") { after(line, " running for ") } else { line.to_owned() };
        out.push_str(&times(&line));
        out.push('\n');
    }
    out
}

/// Handles `… running for 123 ms in …`.
fn after(line: &str, mark: &str) -> String {
    let Some((before, rest)) = line.split_once(mark) else { return line.to_owned() };
    let mut words = rest.splitn(3, ' ');
    let rest = words.nth(2).map(|rest| format!(" {rest}")).unwrap_or_default();
    format!("{before}{mark}TIME{rest}")
}

/// Handles `(12 ms)`, `(1.203 s)` and `(2 min 3 s)`.
fn times(line: &str) -> String {
    let mut parts = line.split('(');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let time = part.split_once(')').filter(|(inner, _)| is_time(inner));
        match time {
            Some((_, rest)) => out.extend(["(TIME)", rest]),
            None => out.extend(["(", part]),
        }
    }
    out
}

fn is_time(text: &str) -> bool {
    let words: Vec<_> = text.split(' ').collect();
    words.len() >= 2
        && words.chunks(2).all(|pair| match pair {
            [number, unit] => number.parse::<f64>().is_ok() && ["ms", "s", "min"].contains(unit),
            _ => false,
        })
}
