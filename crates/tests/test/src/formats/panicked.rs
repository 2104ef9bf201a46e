//! Parsing of the output of a failed Rust test: the message, location and stack printed by the panic hook.

use crate::formats::Detail;

/// Parses the output of a failed test. A test that returned an error has printed `Error: …`.
pub(crate) fn read(output: &str) -> (Detail, Option<(String, u32)>) {
    let mut lines = output.lines();
    let mut detail = Detail::default();
    for line in lines.by_ref() {
        if let Some((_, place)) = line.split_once("' panicked at ").or_else(|| split_numbered(line)) {
            let place = place.strip_suffix(':').unwrap_or(place);
            let mut parts = place.rsplitn(3, ':');
            let (_column, line) = (parts.next(), parts.next().and_then(|line| line.parse().ok()));
            let place = parts.next().zip(line).map(|(file, line)| (file.to_owned(), line));
            "panic".clone_into(&mut detail.kind);
            let mut message = String::new();
            let mut is_stack = false;
            for line in lines.by_ref() {
                if line.starts_with("note: ") {
                    continue;
                }
                if line == "stack backtrace:" {
                    is_stack = true;
                } else {
                    let text = if is_stack { &mut detail.stack } else { &mut message };
                    text.push_str(line);
                    text.push('\n');
                }
            }
            message.trim_end().clone_into(&mut detail.message);
            detail.stack.pop();
            return (detail, place);
        }
        if let Some(error) = line.strip_prefix("Error: ") {
            let mut rest = error.to_owned();
            for line in lines {
                rest.push('\n');
                rest.push_str(line);
            }
            rest.trim_end().clone_into(&mut detail.message);
            return (detail, None);
        }
    }
    output.trim_end().clone_into(&mut detail.message);
    (detail, None)
}

/// Splits `thread 'name' (123) panicked at …`.
fn split_numbered(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("thread '")?;
    rest.split_once(") panicked at ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_panic_message_are_parsed() {
        for head in ["thread 'a' panicked at src/a.rs:3:5:", "thread 'a' (77) panicked at src/a.rs:3:5:"] {
            let text =
                format!("hello\n\n{head}\nleft\n right\nnote: run with `X`\nstack backtrace:\n   0: f\n");
            let (detail, place) = read(&text);
            assert_eq!(place, Some(("src/a.rs".into(), 3)));
            let expected =
                Detail { message: "left\n right".into(), kind: "panic".into(), stack: "   0: f".into() };
            assert_eq!(detail, expected);
        }
    }

    #[test]
    fn errors_and_other_output_are_messages() {
        assert_eq!(read("x\nError: \"an\nerror\"\n").0.message, "\"an\nerror\"");
        assert_eq!(read("only text\n").0.message, "only text");
        assert_eq!(read(""), (Detail::default(), None));
        assert_eq!(read("thread 'a' panicked at nowhere").1, None);
    }
}
