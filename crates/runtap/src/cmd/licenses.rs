//! `runtap licenses`: the licences of runtap and of everything that is linked into it.
//!
//! The list is compiled in; `cargo xtask licenses` makes it, and the checks compare it with `Cargo.lock`.

use std::fmt;

use serde::Serialize;

use crate::output::{HEADING, Output};

/// A line for each piece of software, with tabs between name, version, repository, licence and the numbers of the
/// texts; then the texts, each below a line `%%%% NUMBER`.
const LIST: &str = include_str!("../../licenses.txt");
const MARK: &str = "%%%% ";

#[derive(Serialize)]
struct Licenses {
    schema: &'static str,
    packages: Vec<Package>,
    texts: Vec<Text>,
}

#[derive(Serialize)]
struct Package {
    name: &'static str,
    version: Option<&'static str>,
    repository: Option<&'static str>,
    /// As its authors offer it.
    license: &'static str,
    /// Numbers of the texts below which it is used here.
    texts: Vec<u32>,
}

#[derive(Serialize)]
struct Text {
    number: u32,
    text: &'static str,
}

pub(crate) fn run(output: Output) -> anyhow::Result<u8> {
    let licenses = read(LIST);
    if output.json() {
        output.document(&licenses)?;
    } else {
        output.text(&licenses)?;
    }
    Ok(crate::exit::OK)
}

fn read(list: &'static str) -> Licenses {
    let (table, texts) = list.split_once(MARK).unwrap_or((list, ""));
    let some = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    let package = |line: &'static str| {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        let (name, version, repository, license) = (cell(), some(cell()), some(cell()), cell());
        let texts = cell().split(' ').filter_map(|number| number.parse().ok()).collect();
        Package { name, version, repository, license, texts }
    };
    let text = |part: &'static str| {
        let (number, text) = part.split_once('\n')?;
        Some(Text { number: number.parse().ok()?, text })
    };
    Licenses {
        schema: "runtap.licenses/1",
        packages: table.lines().map(package).collect(),
        texts: texts.split("\n%%%% ").filter_map(text).collect(),
    }
}

impl fmt::Display for Licenses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "runtap contains the software below; the number is that of the text that follows the list.\n"
        )?;
        for Package { name, version, repository, license, texts } in &self.packages {
            let numbers: Vec<String> = texts.iter().map(|number| format!("[{number}]")).collect();
            let version = version.map_or_else(String::new, |version| format!(" {version}"));
            writeln!(f, "{name}{version}: {license} {}", numbers.join(" "))?;
            if let Some(repository) = repository {
                writeln!(f, "    {repository}")?;
            }
        }
        for Text { number, text } in &self.texts {
            writeln!(f, "\n{HEADING}[{number}]{HEADING:#}\n\n{}", text.trim_end())?;
        }
        Ok(())
    }
}
