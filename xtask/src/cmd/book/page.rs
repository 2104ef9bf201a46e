//! Parses a Markdown page: its links (including images) with their positions, and the anchors of its headings, by the
//! rule that GitHub and mdBook share.

use std::collections::BTreeMap;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// A link in a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The address in parentheses.
    pub(super) address: String,
    /// Byte range of the whole link in the page.
    pub(super) place: Range<usize>,
}

pub(super) fn links(text: &str) -> Vec<Link> {
    let mut links = Vec::new();
    for (event, place) in parser(text).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            links.push(Link { address: dest_url.into_string(), place });
        }
    }
    links
}

/// Returns the anchors of the headings in order.
pub(super) fn anchors(text: &str) -> Vec<String> {
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = Vec::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = slug(&heading.take().unwrap_or_default());
                let count = used.entry(anchor.clone()).or_default();
                anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

/// Returns the number of the line that contains a byte, starting at 1.
pub(super) fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH)
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_where_a_reader_sees_one() {
        let text = "[a](x.md#y) and ![i](p.png)\n\n| t |\n| --- |\n| [`b`](z.md) |\n\n    [no](code.md)\n\n`[no](code.md)`\n";
        let found: Vec<(String, &str)> =
            links(text).into_iter().map(|link| (link.address, text.get(link.place).unwrap())).collect();
        let wanted = [("x.md#y", "[a](x.md#y)"), ("p.png", "![i](p.png)"), ("z.md", "[`b`](z.md)")];
        assert_eq!(found, wanted.map(|(address, source)| (address.to_owned(), source)));
    }

    #[test]
    fn anchors_are_those_of_the_viewers() {
        let text =
            "# Live recording\n## `ps` does not list it\n## A, b & c_d\n## Live recording\n```\n# no\n```\n";
        assert_eq!(anchors(text), ["live-recording", "ps-does-not-list-it", "a-b--c_d", "live-recording-1"]);
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line("ab\nc\n", 0), 1);
        assert_eq!(line("ab\nc\n", 3), 2);
    }
}
