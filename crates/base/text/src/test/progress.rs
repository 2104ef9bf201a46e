//! The progress of a run in a few lines: the counts of completed tests, and the tests that have been running for longest.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use anstyle::Style;
use runtap_model::order;
use runtap_mtp::{ActiveTests, LaunchId, ModuleId, RunEvent, Totals};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::format::{MAX_NAME, cleaned, time};
use crate::{Clean, DIM, ERROR, SUCCESS, WARNING};

/// The maximum number of running tests shown.
const MAX_SHOWN: usize = 8;
/// The maximum number of running tests shown in a single line.
const MAX_IN_LINE: usize = 3;

/// The minimum width of a terminal for aligned times, and the width of the aligned times.
const MIN_ALIGNED_COLUMNS: usize = 60;
const TIME_WIDTH: usize = 11;

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    started: Instant,
    modules: usize,
    ended: usize,
    titles: HashMap<ModuleId, String>,
    /// The running processes with their start times and tests.
    launches: BTreeMap<LaunchId, RunningLaunch>,
    /// The counts of completed tests, each test once.
    totals: Totals,
}

#[derive(Debug)]
struct RunningLaunch {
    module: ModuleId,
    since: Instant,
    /// The name and start time of each test.
    tests: ActiveTests<(String, Instant)>,
}

impl Progress {
    /// Creates the progress of a run with this number of modules that starts now.
    pub fn new(modules: usize) -> Self {
        Self {
            started: Instant::now(),
            modules,
            ended: 0,
            titles: HashMap::new(),
            launches: BTreeMap::new(),
            totals: Totals::default(),
        }
    }

    /// Sets the title of a module.
    pub(super) fn name(&mut self, module: ModuleId, title: &str) {
        self.titles.insert(module, title.to_owned());
    }

    /// Handles an event that happens now.
    pub(super) fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::LaunchStarted { module, launch, .. } => {
                let tests = ActiveTests::default();
                self.launches
                    .insert(*launch, RunningLaunch { module: *module, since: Instant::now(), tests });
            }
            RunEvent::TestStarted { launch, uid, name, .. } => {
                if let Some(launch) = self.launches.get_mut(launch) {
                    launch.tests.begin(uid.clone(), name, (name.clone(), Instant::now()));
                }
            }
            RunEvent::TestEnded { launch, result, so_far, .. } => {
                if let Some(launch) = self.launches.get_mut(launch) {
                    launch.tests.end(&result.uid, &result.name);
                }
                self.totals = *so_far;
            }
            RunEvent::LaunchEnded { launch, .. } => drop(self.launches.remove(launch)),
            RunEvent::ModuleEnded { .. } => self.ended += 1,
            _ => {}
        }
    }

    /// Returns the progress as lines for a terminal of this size, using at most half of its rows. If space is scarce, names are
    /// truncated while states and times are kept.
    pub(super) fn lines(&self, now: Instant, rows: usize, columns: usize) -> Vec<String> {
        // Some terminals wrap a line that fills the last column.
        let columns = columns.saturating_sub(1);
        let most = (rows / 2).clamp(1, MAX_SHOWN + 1);
        let elapsed = |since: Instant| time(now.saturating_duration_since(since));
        let running = self.running();
        let shown = if running.len() < most { running.len() } else { most.saturating_sub(2) };
        let mut lines = vec![self.head(&elapsed(self.started), columns)];
        // In a narrow terminal, padding would take space from names.
        let width = if columns < MIN_ALIGNED_COLUMNS { 0 } else { TIME_WIDTH };
        for (since, name, title) in running.iter().take(shown) {
            let since = format!("{:>width$} ", elapsed(*since));
            let line = match name {
                Some(name) => {
                    vec![
                        (WARNING, since),
                        (Style::new(), Clean(name).to_string()),
                        (DIM, format!(" {title}")),
                    ]
                }
                None => vec![(DIM, since + title)],
            };
            lines.push(fit(&line, columns));
        }
        if running.len() > shown && most > 1 {
            lines.push(fit(&[(DIM, format!("  {} more", running.len() - shown))], columns));
        }
        lines
    }

    /// Returns the progress as one line, for output that is not a terminal.
    pub(super) fn status_line(&self, now: Instant) -> String {
        let elapsed = |since: Instant| time(now.saturating_duration_since(since));
        let running = self.running();
        let shown = running.iter().take(MAX_IN_LINE).map(|(since, name, title)| {
            format!("{} ({})", cleaned(name.unwrap_or(title), MAX_NAME), elapsed(*since))
        });
        let mut shown: Vec<_> = shown.collect();
        if running.len() > MAX_IN_LINE {
            shown.push(format!("{} more", running.len() - MAX_IN_LINE));
        }
        let head = self.head(&elapsed(self.started), usize::MAX);
        let colon = if shown.is_empty() { "" } else { ": " };
        format!("{DIM}running{DIM:#} {head}{colon}{}\n", shown.join(", "))
    }

    /// Returns the start time, the name and the application of each running test, oldest first; the name is `None` for an
    /// application that runs no test.
    fn running(&self) -> Vec<(Instant, Option<&str>, &str)> {
        let mut running = Vec::new();
        for launch in self.launches.values() {
            let title = self.titles.get(&launch.module).map(String::as_str).unwrap_or_default();
            for (name, since) in launch.tests.iter() {
                running.push((*since, Some(name.as_str()), title));
            }
            if launch.tests.is_empty() {
                running.push((launch.since, None, title));
            }
        }
        order::sort(&mut running);
        running
    }

    /// Returns the counts and the elapsed time, in a form that fits the columns.
    fn head(&self, elapsed: &str, columns: usize) -> String {
        let Self { ended, modules, totals, .. } = self;
        let unit = if *modules == 1 { "application" } else { "applications" };
        let begins = [format!("{ended} of {modules} {unit} done, "), format!("{ended} of {modules}, ")];
        let plain = |text: &str| (Style::new(), text.to_owned());
        let counts = [
            (totals.passed, "passed", SUCCESS),
            (totals.failures(), "failed", ERROR),
            (totals.flaky, "flaky", WARNING),
            (totals.quarantined, "in quarantine", WARNING),
            (totals.skipped, "skipped", WARNING),
        ];
        for begin in begins {
            let mut head = vec![plain(&begin)];
            for (count, word, style) in counts {
                if count > 0 || word == "passed" {
                    head.extend([plain(", "), (style, format!("{count} {word}"))]);
                }
            }
            head.remove(1);
            head.push((DIM, format!(" {elapsed}")));
            if width_of(&head) <= columns {
                return fit(&head, columns);
            }
        }
        let mut head = vec![plain(&format!("{ended}/{modules} ")), (DIM, elapsed.to_owned())];
        // Failures first; counts that do not fit are left out.
        for (count, word, style) in [counts[1], counts[2], counts[0], counts[4], counts[3]] {
            let next = [plain(" "), (style, format!("{count} {word}"))];
            if count > 0 && width_of(&head) + width_of(&next) <= columns {
                head.extend(next);
            }
        }
        fit(&head, columns)
    }
}

fn width_of(parts: &[(Style, String)]) -> usize {
    parts.iter().map(|(_, text)| text.width()).sum()
}

/// Returns a line truncated to this number of columns, with an ellipsis if truncated.
fn fit(parts: &[(Style, String)], columns: usize) -> String {
    let is_truncated = width_of(parts) > columns;
    let mut left = columns.saturating_sub(usize::from(is_truncated));
    let mut line = String::new();
    for (style, text) in parts {
        let fits = |letter: &char| {
            let rest = left.checked_sub(letter.width().unwrap_or_default());
            left = rest.unwrap_or_default();
            rest.is_some()
        };
        let text: String = text.chars().take_while(fits).collect();
        line.extend([style.render().to_string(), text, style.render_reset().to_string()]);
    }
    if is_truncated && columns > 0 {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtap_mtp::{LaunchEnd, TestResult};

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    fn start_tests(progress: &mut Progress, launch: u64, tests: &[&str]) {
        let (module, launch) = (ModuleId(0), LaunchId(launch));
        progress.event(&RunEvent::LaunchStarted { module, launch, attempt: 1, part: (1, 1), pid: 1 });
        for test in tests {
            let (uid, name) = ((*test).to_owned(), format!("Test {test}"));
            progress.event(&RunEvent::TestStarted { module, launch, uid, name, attempt: 1 });
        }
    }

    #[test]
    fn running_tests_are_shown_oldest_first() {
        let mut progress = Progress::new(2);
        progress.name(ModuleId(0), "Shop.Tests");
        start_tests(&mut progress, 1, &["a", "b"]);
        start_tests(&mut progress, 2, &[]);
        let now = progress.started;
        let lines = plain(&progress.lines(now, 24, 80));
        assert_eq!(
            lines,
            [
                "0 of 2 applications done, 0 passed 0 ms",
                "       0 ms Test a Shop.Tests",
                "       0 ms Test b Shop.Tests",
                "       0 ms Shop.Tests"
            ]
        );
        progress.name(ModuleId(0), "広い名前のテスト");
        let narrow = plain(&progress.lines(now, 24, 16));
        assert!(narrow.iter().all(|line| line.width() < 16), "{narrow:?}");
        progress.event(&RunEvent::LaunchEnded {
            module: ModuleId(0),
            launch: LaunchId(1),
            end: LaunchEnd::default(),
        });
        assert_eq!(plain(&progress.lines(now, 24, 80)).len(), 2);
    }

    #[test]
    fn a_line_names_the_tests_that_run_for_longest() {
        let mut progress = Progress::new(2);
        let started = progress.started;
        let status_line = |progress: &Progress, seconds| {
            let now = started + std::time::Duration::from_secs(seconds);
            anstream::adapter::strip_str(&progress.status_line(now)).to_string()
        };
        assert_eq!(status_line(&progress, 30), "running 0 of 2 applications done, 0 passed 30.000 s\n");
        progress.totals = Totals { passed: 3, failed: 1, ..Totals::default() };
        start_tests(&mut progress, 1, &["a", "b", "c", "d", "e"]);
        for (place, test) in progress.launches.values_mut().flat_map(|it| it.tests.iter_mut()).enumerate() {
            test.1 = started + std::time::Duration::from_secs(u64::try_from(place).unwrap());
        }
        assert_eq!(
            status_line(&progress, 60),
            "running 0 of 2 applications done, 3 passed, 1 failed 1 min 0 s: Test a (1 min 0 s), Test b (59.000 s), Test c (58.000 s), 2 more\n"
        );
    }

    #[test]
    fn a_small_terminal_is_not_filled() {
        let mut progress = Progress::new(1);
        let many: Vec<String> = (0..50).map(|number| number.to_string()).collect();
        start_tests(&mut progress, 1, &many.iter().map(String::as_str).collect::<Vec<_>>());
        for (rows, expected) in [(1, 1), (2, 1), (4, 2), (8, 4), (24, 9), (100, 9)] {
            let lines = plain(&progress.lines(progress.started, rows, 80));
            assert_eq!(lines.len(), expected, "{rows}: {lines:?}");
        }
        assert_eq!(plain(&progress.lines(progress.started, 24, 80))[8], "  43 more");
    }

    #[test]
    fn narrow_terminals_truncate_names_and_keep_times() {
        let mut progress = Progress::new(12);
        progress.totals = Totals { passed: 1234, failed: 56, skipped: 7, ..Totals::default() };
        progress.name(ModuleId(0), "bin/Release/Shop.Tests.dll");
        start_tests(&mut progress, 1, &["of_something_with_a_name_that_is_long"]);
        let started = progress.started;
        for test in progress.launches.values_mut().flat_map(|launch| launch.tests.iter_mut()) {
            test.1 = started;
        }
        let now = started + std::time::Duration::from_millis(1500);
        let at = |columns| plain(&progress.lines(now, 24, columns));
        assert_eq!(at(80)[0], "0 of 12 applications done, 1234 passed, 56 failed, 7 skipped 1.500 s");
        assert_eq!(at(60)[0], "0 of 12, 1234 passed, 56 failed, 7 skipped 1.500 s");
        assert_eq!(at(45)[0], "0/12 1.500 s 56 failed 1234 passed 7 skipped");
        assert_eq!(at(40)[0], "0/12 1.500 s 56 failed 1234 passed");
        assert_eq!(at(20)[0], "0/12 1.500 s");
        assert_eq!(at(61)[1], "    1.500 s Test of_something_with_a_name_that_is_long bin/…");
        assert_eq!(at(20)[1], "1.500 s Test of_so…");
        for columns in 0..100 {
            assert!(at(columns).iter().all(|line| line.width() < columns.max(1)), "{columns}");
        }
    }

    #[test]
    fn tests_are_counted_and_not_their_attempts() {
        let mut progress = Progress::new(1);
        start_tests(&mut progress, 1, &["a"]);
        let mut ended = |so_far| {
            let result = TestResult { uid: "a".into(), ..TestResult::default() };
            progress.event(&RunEvent::TestEnded { module: ModuleId(0), launch: LaunchId(1), result, so_far });
            plain(&progress.lines(progress.started, 24, 80)).remove(0)
        };
        let failed = Totals { failed: 1, retried: 2, ..Totals::default() };
        assert_eq!(ended(failed), "0 of 1 application done, 0 passed, 1 failed 0 ms");
        let quarantined = Totals { failed: 1, quarantined: 1, ..Totals::default() };
        assert_eq!(ended(quarantined), "0 of 1 application done, 0 passed, 1 in quarantine 0 ms");
        let flaky = Totals { passed: 1, flaky: 1, retried: 2, ..Totals::default() };
        assert_eq!(ended(flaky), "0 of 1 application done, 1 passed, 1 flaky 0 ms");
    }
}
