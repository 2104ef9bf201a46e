//! A second opinion on an agent's counts: a library in C (`jvm_counter.c`) that a JVM loads beside the agent and that counts
//! by JVMTI's own method events. It shares no code with the agent. Compiled when a test needs it, with the compiler (`cc`)
//! and the `jvmti.h` of this machine. Refuses to compare: what counts as equal is the test's to say.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Jdk, Skip, run};

const SOURCE: &str = include_str!("jvm_counter.c");

/// A method as a class file names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountedMethod {
    /// The internal name of its class: `shop/Main`.
    pub class: String,
    /// Its name: `<init>`.
    pub name: String,
    /// Its descriptor: `(I)V`.
    pub descriptor: String,
}

impl CountedMethod {
    /// Whether its class is hidden (that of a lambda, say), which no agent is shown: `shop/Main$$Lambda.0x00007f…`.
    pub fn is_hidden(&self) -> bool {
        // HotSpot puts the address behind a dot (JVMTI's signature, JDK 17 and later) or a slash (JDK 11).
        ["$$Lambda", ".0x", "+0x", "/0x"].iter().any(|mark| self.class.contains(mark))
    }
}

/// What a method did until the machine ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often it was entered.
    pub entries: u64,
    /// How often it was left, in any way.
    pub exits: u64,
    /// How often it was left by an exception; counted in `exits` as well.
    pub thrown: u64,
}

/// The compiled library.
#[derive(Debug, Clone)]
pub struct JvmCounter {
    library: PathBuf,
}

impl JvmCounter {
    /// Compiles it into a folder.
    ///
    /// # Errors
    /// There is no C compiler, or no JDK with headers.
    ///
    /// # Panics
    /// When it does not compile.
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

    /// The option by which a JVM loads it: it counts the classes whose internal names begin with one of these (`shop/`), or all
    /// without any, and writes to this file at the end.
    ///
    /// # Panics
    /// When a name or the path has one of the separators `;` and `:`.
    pub fn option(&self, prefixes: &[&str], out: &Path) -> OsString {
        let separates = |text: &str| text.contains([';', ':']);
        let shown = out.to_str().expect("a path of ours");
        assert!(
            !separates(shown) && !prefixes.iter().any(|prefix| separates(prefix)),
            "{prefixes:?} {shown}"
        );
        let mut option = OsString::from("-agentpath:");
        option.push(&self.library);
        option.push(format!("=out={shown};prefix={}", prefixes.join(":")));
        option
    }

    /// What it wrote.
    ///
    /// # Panics
    /// When the file is not there or not whole: the machine was killed, or had more than half a million methods.
    #[track_caller]
    pub fn counts(out: &Path) -> BTreeMap<CountedMethod, Counts> {
        let text = fs::read_to_string(out)
            .unwrap_or_else(|error| panic!("the counter wrote no {}: {error}", out.display()));
        parse(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
    }
}

/// A method may have been unloaded and loaded again, by several loaders too: what they did is added up.
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

/// Where `jvmti.h` is: any JDK's will do for all versions.
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
    fn it_counts_what_a_program_does() {
        if let Err(skip) = each_version() {
            skip.report();
        }
    }

    #[test]
    fn a_file_that_is_cut_is_no_count() {
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
