//! Third-party readers: Debian's `lcov` and `genhtml`, the Python package pycobertura. (npm's jacoco-parse:
//! `tests/viewer/coverage.test.js`.)

use std::fs::{self, File};
use std::path::Path;

use runtap_bytefrog_proto::Dialect;
use runtap_jvm::coverage::{Coverage, Format, WriteOptions};
use runtap_testkit::{installed, require, run};

use crate::program::{Program, sources};
use crate::sample::sample;

fn write(format: Format, coverage: &Coverage, folder: &Path, options: &WriteOptions<'_>) -> String {
    let name = format!("coverage{}", format.extension());
    format.write(coverage, File::create(folder.join(&name)).unwrap(), options).unwrap();
    name
}

/// Parses `lines......: 63.6% (7 of 11 lines)` as 7, 11.
fn summary(text: &str, what: &str) -> (u64, u64) {
    let line =
        text.lines().find(|line| line.trim_start().starts_with(what)).unwrap_or_else(|| panic!("{text}"));
    let (_, numbers) = line.split_once('(').unwrap_or_else(|| panic!("{line}"));
    let mut numbers = numbers.split(' ').filter_map(|word| word.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn lcov_counts_the_same() {
    let mut lcov = require!(installed("lcov"));
    let folder = tempfile::tempdir().unwrap();
    let file = write(Format::Lcov, &sample(), folder.path(), &WriteOptions::default());
    lcov.current_dir(folder.path()).args(["--summary", &file]);
    let said = run(lcov);
    let text = format!("{}{}", said.expect_code(0).text(), said.stderr);
    assert_eq!((summary(&text, "lines"), summary(&text, "functions")), ((7, 11), (7, 9)));
    assert!(!text.contains("WARNING"), "{text}");
}

/// lcov drops files without lines, so they are not written: lcov's totals equal those of the coverage.
#[test]
fn lcov_takes_every_file_of_a_trace_in_which_lines_of_some_are_known() {
    let mut lcov = require!(installed("lcov"));
    let mut coverage = sample();
    for class in coverage.packages.get_mut("shop/sub").unwrap().classes.values_mut() {
        class.methods.iter_mut().for_each(|method| method.lines.clear());
    }
    assert_eq!(coverage.sources_without_lines(), 1);
    let folder = tempfile::tempdir().unwrap();
    let file = write(Format::Lcov, &coverage, folder.path(), &WriteOptions::default());
    lcov.current_dir(folder.path()).args(["-q", "-a", &file, "-o", "same.info"]);
    run(lcov).expect_code(0);
    let records = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        let mut lines: Vec<String> = text
            .lines()
            .filter(|line| ["SF:", "FN:", "DA:"].iter().any(|tag| line.starts_with(tag)))
            .map(str::to_owned)
            .collect();
        lines.sort();
        lines
    };
    assert_eq!(records("same.info"), records(&file));
    assert_eq!(records(&file).iter().filter(|line| line.starts_with("SF:")).count(), 3);
    // Methods without a file are written for other readers; lcov ignores them.
    coverage.has_lines = false;
    for class in coverage.packages.values_mut().flat_map(|package| package.classes.values_mut()) {
        class.methods.iter_mut().for_each(|method| method.lines.clear());
    }
    let file = write(Format::Lcov, &coverage, folder.path(), &WriteOptions::default());
    assert_eq!(records(&file).iter().filter(|line| line.starts_with("FN:")).count(), 9);
    let mut lcov = require!(installed("lcov"));
    lcov.current_dir(folder.path()).args(["--summary", &file]);
    let said = run(lcov);
    assert!(said.stderr.contains("no valid records found"), "{said}");
}

#[test]
fn lcov_adds_up_two_files() {
    let mut lcov = require!(installed("lcov"));
    let folder = tempfile::tempdir().unwrap();
    let file = write(Format::Lcov, &sample(), folder.path(), &WriteOptions::default());
    lcov.current_dir(folder.path()).args(["-q", "-a", &file, "-a", &file, "-o", "sum.info"]);
    run(lcov).expect_code(0);
    let sum = fs::read_to_string(folder.path().join("sum.info")).unwrap();
    assert!(sum.contains("DA:7,30\n") && sum.contains("FNDA:20,Shop.lambda$total$0(I)I\n"), "{sum}");
}

#[test]
fn genhtml_shows_the_source_of_a_real_program() {
    let mut genhtml = require!(installed("genhtml"));
    let program = require!(Program::run());
    let coverage = program.coverage(Dialect::V4);
    let folder = tempfile::tempdir().unwrap();
    let locate = |path: &str| {
        let found = sources().join(path.strip_prefix("demo/")?);
        found.is_file().then(|| found.to_string_lossy().into_owned())
    };
    let options = WriteOptions { locate: Some(&locate), ..WriteOptions::default() };
    let file = write(Format::Lcov, &coverage, folder.path(), &options);
    genhtml.current_dir(folder.path()).args(["-o", "page", "--title", "Shop", &file]);
    let said = run(genhtml);
    let text = format!("{}{}", said.expect_code(0).text(), said.stderr);
    let totals = coverage.totals();
    assert_eq!(summary(&text, "lines"), (totals.lines.covered, totals.lines.total()));
    assert_eq!(summary(&text, "functions"), (totals.methods.covered, totals.methods.total()));
    let index = fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    assert!(index.contains("Shop"), "{index}");
    // The page of the file marks lines that ran and lines that did not.
    let page = find(&folder.path().join("page"), "Shop.java.gcov.html").expect("a page for the file");
    let page = fs::read_to_string(page).unwrap();
    for (class, code) in [("lineCov", "stock--;"), ("lineNoCov", "throw new IllegalArgumentException")] {
        let line = page.lines().find(|line| line.contains(code)).unwrap_or_else(|| panic!("{page}"));
        assert!(line.contains(class), "{line}");
    }
}

fn find(folder: &Path, name: &str) -> Option<std::path::PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).find_map(|path| {
        if path.is_dir() {
            find(&path, name)
        } else {
            path.file_name().is_some_and(|n| n == name).then_some(path)
        }
    })
}

#[test]
fn pycobertura_finds_every_line() {
    let mut pycobertura = require!(installed("pycobertura"));
    let folder = tempfile::tempdir().unwrap();
    let file = write(Format::Cobertura, &sample(), folder.path(), &WriteOptions::default());
    pycobertura.current_dir(folder.path()).args(["show", "--format", "json", &file]);
    let shown = run(pycobertura).expect_code(0).json();
    assert_eq!((&shown["total"]["Stmts"], &shown["total"]["Miss"]), (&11.into(), &4.into()), "{shown}");
    let files = shown["files"].as_array().unwrap();
    let of =
        |name: &str| files.iter().find(|file| file["Filename"] == name).unwrap_or_else(|| panic!("{shown}"));
    let shop = of("shop/Shop.java");
    assert_eq!(
        (&shop["Stmts"], &shop["Miss"], &shop["Missing"]),
        (&7.into(), &3.into(), &"8-12".into()),
        "{shown}"
    );
    assert_eq!(of("shop/sub/Odd.java")["Miss"], 0);
    assert_eq!(of("Plain.java")["Miss"], 0);
}
