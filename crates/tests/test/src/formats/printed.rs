//! What tests have printed, kept until it is known what became of them. A test can print without end.

/// The most that is kept of one test, and of all tests that have not ended.
const MOST: usize = 16 << 20;
const MOST_OF_ALL: usize = 64 << 20;

/// What stands at the end of an output that is not kept to its end.
const MARK: &str = "\n[the output was longer, and is truncated here]\n";

/// How much the tests of one command have printed that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Held(usize);

/// The output of one test.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    text: String,
    is_truncated: bool,
}

impl Printed {
    pub(crate) fn push(&mut self, text: &str, held: &mut Held) {
        if self.is_truncated {
            return;
        }
        let room = MOST.saturating_sub(self.text.len()).min(MOST_OF_ALL.saturating_sub(held.0));
        let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.text.push_str(kept);
        held.0 = held.0.saturating_add(kept.len());
        self.is_truncated = kept.len() < text.len();
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text, which is no longer held.
    pub(crate) fn take(self, held: &mut Held) -> String {
        held.0 = held.0.saturating_sub(self.text.len());
        let mut text = self.text;
        if self.is_truncated {
            text.push_str(MARK);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_all_are_bounded_and_what_has_ended_makes_room() {
        let mut held = Held::default();
        let long = "é".repeat(MOST);
        let print = |text: &str, held: &mut Held| {
            let mut printed = Printed::default();
            printed.push(text, held);
            printed.push(text, held);
            printed
        };
        let all: Vec<_> = (0..6).map(|_| print(&long, &mut held)).collect();
        assert_eq!(held.0, MOST_OF_ALL);
        let sizes: Vec<_> = all.into_iter().map(|it| it.take(&mut held).len() - MARK.len()).collect();
        assert_eq!(sizes, [MOST, MOST, MOST, MOST, 0, 0]);
        assert_eq!(held.0, 0);
        assert_eq!(print("ab", &mut held).take(&mut held), "abab");
    }
}
