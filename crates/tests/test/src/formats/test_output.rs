//! The output of tests, kept with a size limit until the tests end.

/// The maximum size of the output of one test, and of all running tests, in bytes.
const MAX_TEST_BYTES: usize = 16 << 20;
const MAX_TOTAL_BYTES: usize = 64 << 20;

/// The mark at the end of truncated output.
const MARK: &str = "\n[the output was longer, and is truncated here]\n";

/// The size of the output of all running tests of a command.
#[derive(Debug, Default)]
pub(crate) struct OutputSize(usize);

/// The output of one test.
#[derive(Debug, Default)]
pub(crate) struct TestOutput {
    text: String,
    is_truncated: bool,
}

impl TestOutput {
    pub(crate) fn push(&mut self, text: &str, held: &mut OutputSize) {
        if self.is_truncated {
            return;
        }
        let room = MAX_TEST_BYTES.saturating_sub(self.text.len()).min(MAX_TOTAL_BYTES.saturating_sub(held.0));
        let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.text.push_str(kept);
        held.0 = held.0.saturating_add(kept.len());
        self.is_truncated = kept.len() < text.len();
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text, and releases its size.
    pub(crate) fn take(self, held: &mut OutputSize) -> String {
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
    fn output_is_limited_per_test_and_in_total() {
        let mut held = OutputSize::default();
        let long = "é".repeat(MAX_TEST_BYTES);
        let print = |text: &str, held: &mut OutputSize| {
            let mut printed = TestOutput::default();
            printed.push(text, held);
            printed.push(text, held);
            printed
        };
        let all: Vec<_> = (0..6).map(|_| print(&long, &mut held)).collect();
        assert_eq!(held.0, MAX_TOTAL_BYTES);
        let sizes: Vec<_> = all.into_iter().map(|it| it.take(&mut held).len() - MARK.len()).collect();
        assert_eq!(sizes, [MAX_TEST_BYTES, MAX_TEST_BYTES, MAX_TEST_BYTES, MAX_TEST_BYTES, 0, 0]);
        assert_eq!(held.0, 0);
        assert_eq!(print("ab", &mut held).take(&mut held), "abab");
    }
}
