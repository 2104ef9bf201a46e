//! Message templates: `Order {OrderId} costs {Price:F2}`. Format specifiers are ignored: values format themselves.

use std::fmt::{self, Display};

/// Writes the template with its arguments. A placeholder without an argument is kept; `{{` and `}}` are braces.
pub(super) fn fill(
    template: &str,
    arguments: &[(&str, &dyn Display)],
    text: &mut dyn fmt::Write,
) -> fmt::Result {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once(['{', '}']) {
        text.write_str(before)?;
        let opens = rest.as_bytes().get(before.len()) == Some(&b'{');
        let brace = if opens { '{' } else { '}' };
        if let Some(behind) = after.strip_prefix(brace) {
            text.write_char(brace)?;
            rest = behind;
            continue;
        }
        rest = after;
        let place = if opens { after.split_once('}') } else { None };
        let named = place.and_then(|(place, behind)| {
            let name = place.split([':', ',']).next().unwrap_or(place).trim();
            let (_, value) = arguments.iter().find(|(argument, _)| *argument == name)?;
            Some((value, behind))
        });
        match named {
            Some((value, behind)) => {
                write!(text, "{value}")?;
                rest = behind;
            }
            None => text.write_char(brace)?,
        }
    }
    text.write_str(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled() {
        let arguments: &[(&str, &dyn Display)] = &[("A", &1), ("B", &"x{A}")];
        for (template, expected) in [
            ("a {A} b {B}", "a 1 b x{A}"),
            ("{A:F2}{A,5}{ A }", "111"),
            ("{{A}} }}", "{A} }"),
            ("{C} {", "{C} {"),
            ("} é {A", "} é {A"),
            ("", ""),
        ] {
            let mut text = String::new();
            fill(template, arguments, &mut text).unwrap();
            assert_eq!(text, expected);
        }
    }
}
