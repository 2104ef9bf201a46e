//! Information about the program: `runtap.version/1`, `runtap.licenses/1` and their texts.

use std::io;

use serde::Serialize;

use crate::{Print, TextOptions};

/// The document `runtap.version/1`.
#[derive(Debug, Serialize)]
pub struct VersionDocument {
    schema: &'static str,
    version: &'static str,
    commit: Option<&'static str>,
    target: &'static str,
}

impl VersionDocument {
    /// Creates the document for a version built from a commit for a target.
    pub fn new(version: &'static str, commit: Option<&'static str>, target: &'static str) -> Self {
        Self { schema: "runtap.version/1", version, commit, target }
    }
}

impl Print for VersionDocument {
    fn print(&self, out: &mut dyn io::Write, _: &TextOptions<'_>) -> io::Result<()> {
        let commit = self.commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
        writeln!(out, "runtap {}{commit} {}", self.version, self.target)
    }
}

const TEXT_MARKER: &str = "%%%% ";

/// The document `runtap.licenses/1`.
#[derive(Debug, Serialize)]
pub struct LicensesDocument<'a> {
    schema: &'static str,
    packages: Vec<Package<'a>>,
    texts: Vec<Text<'a>>,
}

#[derive(Debug, Serialize)]
struct Package<'a> {
    name: &'a str,
    version: Option<&'a str>,
    repository: Option<&'a str>,
    /// License expression of the authors.
    license: &'a str,
    /// Numbers of the license texts that apply here.
    texts: Vec<u32>,
}

#[derive(Debug, Serialize)]
struct Text<'a> {
    number: u32,
    text: &'a str,
}

impl<'a> LicensesDocument<'a> {
    /// Parses a list with a line for each package, with tabs between name, version, repository, license and the numbers
    /// of the texts, followed by the texts, each after a line `%%%% NUMBER`.
    pub fn read(list: &'a str) -> Self {
        let (table, texts) = list.split_once(TEXT_MARKER).unwrap_or((list, ""));
        let some = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        let package = |line: &'a str| {
            let mut cells = line.split('\t');
            let mut cell = || cells.next().unwrap_or_default();
            let (name, version, repository, license) = (cell(), some(cell()), some(cell()), cell());
            let texts = cell().split(' ').filter_map(|number| number.parse().ok()).collect();
            Package { name, version, repository, license, texts }
        };
        let text = |part: &'a str| {
            let (number, text) = part.split_once('\n')?;
            Some(Text { number: number.parse().ok()?, text })
        };
        Self {
            schema: "runtap.licenses/1",
            packages: table.lines().map(package).collect(),
            texts: texts.split("\n%%%% ").filter_map(text).collect(),
        }
    }
}

impl Print for LicensesDocument<'_> {
    fn print(&self, out: &mut dyn io::Write, options: &TextOptions<'_>) -> io::Result<()> {
        let heading = options.heading();
        writeln!(
            out,
            "runtap contains the software listed below; the numbers refer to the license texts after the list.\n"
        )?;
        for Package { name, version, repository, license, texts } in &self.packages {
            let numbers: Vec<String> = texts.iter().map(|number| format!("[{number}]")).collect();
            let version = version.map_or_else(String::new, |version| format!(" {version}"));
            writeln!(out, "{name}{version}: {license} {}", numbers.join(" "))?;
            if let Some(repository) = repository {
                writeln!(out, "    {repository}")?;
            }
        }
        for Text { number, text } in &self.texts {
            writeln!(out, "\n{heading}[{number}]{heading:#}\n\n{}", text.trim_end())?;
        }
        Ok(())
    }
}
