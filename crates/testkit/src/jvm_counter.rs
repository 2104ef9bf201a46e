//! An independent count of method calls, to verify an agent's: a library in C (`jvm_counter.c`) that a JVM loads beside
//! the agent and that counts JVMTI's method events. It shares no code with the agent, and is compiled on demand with
//! the installed compiler (`cc`) and `jvmti.h`. Comparing the counts is the responsibility of the tests.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Jdk, Skip, run};

const SOURCE: &str = include_str!("jvm_counter.c");

/// A method, as named in class files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountedMethod {
    /// Internal name of its class: `shop/Main`.
    pub class: String,
    /// Name of the method: `<init>`.
    pub name: String,
    /// Descriptor: `(I)V`.
    pub descriptor: String,
}

impl CountedMethod {
    /// Returns whether its class is hidden (such as that of a lambda), so that agents do not see it:
    /// `shop/Main$$Lambda.0x00007f…`.
    pub fn is_hidden(&self) -> bool {
        // HotSpot writes the address after a dot (JVMTI's signature, JDK 17 and later) or a slash (JDK 11).
        ["$$Lambda", ".0x", "+0x", "/0x"].iter().any(|mark| self.class.contains(mark))
    }
}

/// The counts of a method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of entries.
    pub entries: u64,
    /// Number of exits of any kind.
    pub exits: u64,
    /// Number of exits by an exception, which are included in `exits`.
    pub thrown: u64,
}

/// The compiled library.
#[derive(Debug, Clone)]
pub struct JvmCounter {
    library: PathBuf,
}

impl JvmCounter {
    /// Compiles the library into a folder.
    ///
    /// # Errors
    /// If there is no C compiler, or no JDK with headers.
    ///
    /// # Panics
    /// If compiling fails.
    pub fn build(folder: &Path) -> Result<Self, Skip> {
        let compiler = Command::new("cc").arg("--version").output();
        if !compiler.is_ok_and(|output| output.status.success()) {
            return Err(Skip::because("there is no C compiler (cc)"));
        }
        let headers = headers()?;
        let (source, library) = (folder.join("jvm_counter.c"), folder.join("libjvm_counter.so"));
        fs::write(&source, SOURCE).expect("the folder can be written to");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread", "-o"]);
        cc.arg(&library).arg(&source).arg("-I").arg(&headers).arg("-I").arg(headers.join("linux"));
        run(cc).expect_code(0);
        Ok(Self { library })
    }

    /// Returns the option that makes a JVM load the library. It counts classes whose internal names start with one of
    /// the prefixes (`shop/`), or all if there are none, and writes the counts to `out` at exit.
    ///
    /// # Panics
    /// If a prefix or the path contains one of the separators `;` and `:`.
    pub fn option(&self, prefixes: &[&str], out: &Path) -> OsString {
        let separates = |text: &str| text.contains([';', ':']);
        let shown = out.to_str().expect("the path is UTF-8");
        assert!(
            !separates(shown) && !prefixes.iter().any(|prefix| separates(prefix)),
            "{prefixes:?} {shown}"
        );
        let mut option = OsString::from("-agentpath:");
        option.push(&self.library);
        option.push(format!("=out={shown};prefix={}", prefixes.join(":")));
        option
    }

    /// Reads the counts.
    ///
    /// # Panics
    /// If the file is missing or incomplete: the JVM was killed, or had more than half a million methods.
    #[track_caller]
    pub fn counts(out: &Path) -> BTreeMap<CountedMethod, Counts> {
        let text = fs::read_to_string(out)
            .unwrap_or_else(|error| panic!("the counter wrote no {}: {error}", out.display()));
        parse(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
    }
}

/// Adds up the counts of methods that were loaded several times.
fn parse(text: &str) -> Result<BTreeMap<CountedMethod, Counts>, String> {
    let mut counts = BTreeMap::<_, Counts>::new();
    let mut sum = 0;
    let mut lines = text.lines();
    for line in lines.by_ref() {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{line:?}: {error}"));
        match fields[..] {
            [class, name, descriptor, entries, exits, thrown] => {
                let method = CountedMethod {
                    class: class.to_owned(),
                    name: name.to_owned(),
                    descriptor: descriptor.to_owned(),
                };
                let count = counts.entry(method).or_default();
                count.entries += number(entries)?;
                count.exits += number(exits)?;
                count.thrown += number(thrown)?;
                sum += number(entries)?;
            }
            ["end", calls] if number(calls)? == sum && lines.next().is_none() => return Ok(counts),
            _ => return Err(format!("the counter wrote {line:?}")),
        }
    }
    Err("the counter's file has no end".to_owned())
}

/// Returns the folder of `jvmti.h`. That of any JDK suits all versions.
fn headers() -> Result<PathBuf, Skip> {
    let systems = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let known = Jdk::all().unwrap_or_default().into_iter().map(|jdk| jdk.home().to_owned());
    let home = env::var_os("JAVA_HOME").map(PathBuf::from);
    let mut found = home.into_iter().chain(known).chain(systems).map(|home| home.join("include"));
    let found = found.find(|include| include.join("jvmti.h").is_file());
    found.ok_or_else(|| Skip::because("there is no JDK with jvmti.h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "package shop;
public class Tills {
    static int sum(int n) { return n == 0 ? 0 : n + sum(n - 1); }
    static void fails(int n) { if (n % 2 == 0) throw new IllegalStateException(); }
    public static void main(String[] words) throws Exception {
        Thread[] threads = new Thread[3];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> { for (int n = 0; n < 100; n++) sum(9); });
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
        for (int n = 0; n < 50; n++) try { fails(n); } catch (IllegalStateException e) { }
    }
}
";

    fn each_version() -> Result<(), Skip> {
        let folder = tempfile::tempdir().unwrap();
        let counter = JvmCounter::build(folder.path())?;
        let source = folder.path().join("Tills.java");
        fs::write(&source, PROGRAM).unwrap();
        Jdk::with_compiler()?.compile([&source], folder.path());
        for jdk in Jdk::all()? {
            let out = folder.path().join("counts.tsv");
            let mut java = jdk.java();
            java.arg(counter.option(&["shop/"], &out)).arg("-cp").arg(folder.path()).arg("shop.Tills");
            run(java).expect_code(0);
            let counts = JvmCounter::counts(&out);
            fs::remove_file(&out).unwrap();
            let of = |name: &str, descriptor: &str| {
                let found = counts.iter().find(|(method, _)| method.name == name && !method.is_hidden());
                let (method, counts) = found.unwrap_or_else(|| panic!("{name}: {counts:#?}"));
                assert_eq!((&*method.class, &*method.descriptor), ("shop/Tills", descriptor));
                *counts
            };
            let major = jdk.major();
            assert_eq!(of("sum", "(I)I"), Counts { entries: 3000, exits: 3000, thrown: 0 }, "{major}");
            assert_eq!(of("fails", "(I)V"), Counts { entries: 50, exits: 50, thrown: 25 }, "{major}");
            let main = of("main", "([Ljava/lang/String;)V");
            assert_eq!(main, Counts { entries: 1, exits: 1, thrown: 0 }, "{major}");
            assert!(counts.keys().all(|method| method.class.starts_with("shop/")), "{counts:#?}");
        }
        Ok(())
    }

    #[test]
    fn calls_of_a_program_are_counted() {
        if let Err(skip) = each_version() {
            skip.report();
        }
    }

    #[test]
    fn a_truncated_file_is_rejected() {
        let whole = "a/B\tm\t()V\t3\t2\t1\na/B\tm\t()V\t1\t1\t0\nend\t4\n";
        let counts = parse(whole).unwrap();
        let all: Vec<_> = counts.values().collect();
        assert_eq!(all, [&Counts { entries: 4, exits: 3, thrown: 1 }]);
        for end in 0..whole.len() - 2 {
            assert!(parse(whole.get(..end).expect("ASCII")).is_err(), "{end}");
        }
        assert!(parse("full\t0\n").is_err());
        assert!(parse(&whole.replace("end\t4", "end\t5")).is_err());
    }
}
