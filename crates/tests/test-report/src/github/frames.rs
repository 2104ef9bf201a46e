//! Source locations in stacks of .NET: `at A.B(String c) in /src/File.cs:line 12`.

use crate::{Attempt, Location, TestResult};

/// Returns the location of a failure in a file below `root`, with a relative path with `/`: the location of the topmost
/// such frame, or else the declaration of the test.
pub(super) fn place(result: &TestResult, attempt: &Attempt, root: &str) -> Option<Location> {
    let stacks = attempt.exceptions.iter().flat_map(|exception| exception.stack.lines());
    let declared = result.location.clone();
    stacks.filter_map(frame).chain(declared).find_map(|at| {
        let file = below(&at.file, root)?;
        Some(Location { file, line: at.line })
    })
}

fn frame(line: &str) -> Option<Location> {
    let (_, place) = line.rsplit_once(" in ")?;
    let (file, line) = place.trim_end().rsplit_once(':')?;
    // The runtime prints `line`; other tools print only the number.
    let line = line.trim_start_matches("line ").parse().ok()?;
    (!file.is_empty()).then(|| Location { file: file.to_owned(), line: Some(line) })
}

/// Returns `path` relative to `root`. `None` if the path is not below the root.
fn below(path: &str, root: &str) -> Option<String> {
    let (path, root) = (path.replace('\\', "/"), root.replace('\\', "/"));
    let root = root.trim_end_matches('/');
    let relative = path.strip_prefix(root)?.strip_prefix('/')?;
    let leaves = relative.split('/').any(|part| part == "..");
    (!leaves && !relative.is_empty()).then(|| relative.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Exception;

    #[test]
    fn the_topmost_frame_below_the_root_is_the_place() {
        let stack = "   at Assert.Fail() in /_/lib/Assert.cs:line 3\r\n   at System.Inner()\n   \
            at A.B(String in) in /src/app/Tests.cs:line 12\n   at A.C() in /src/app/Other.cs:line 9";
        let exceptions = vec![Exception { stack: stack.to_owned(), ..Exception::default() }];
        let attempt = Attempt { exceptions, ..Attempt::default() };
        let declared = Location { file: "C:\\src\\app\\Tests.cs".to_owned(), line: None };
        let result = TestResult { location: Some(declared), ..TestResult::default() };
        let at = |root| place(&result, &attempt, root).map(|at| (at.file, at.line));
        assert_eq!(at("/src/app/"), Some(("Tests.cs".to_owned(), Some(12))));
        assert_eq!(at("/src"), Some(("app/Tests.cs".to_owned(), Some(12))));
        assert_eq!(at("C:/src"), Some(("app/Tests.cs".to_owned(), None)));
        assert_eq!(at("/src/ap"), None);
        assert_eq!(below("/src/app/../secret", "/src/app"), None);
    }
}
