//! Two independent accounts of one run: the agent's reports to HQ, and JVMTI's own method events.
//!
//! Owns: running a program without and with the two libraries, and the definition of "equal"
//! ([`Opinions::differences`]). Does not know any program; those are in `real_programs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtap_bytefrog::Report;
use runtap_bytefrog_proto::{Configuration, Extension, JavaString, RecordMode};
use runtap_testkit::{CountedMethod, Counts, Finished, Jdk, JvmCounter, Running, Skip};

use crate::common::{Listening, library};

/// Returns jars of Debian's packages.
pub(crate) fn jars(names: &[&str]) -> Result<Vec<PathBuf>, Skip> {
    let path = |name: &&str| Path::new("/usr/share/java").join(name).with_extension("jar");
    let paths: Vec<PathBuf> = names.iter().map(path).collect();
    match paths.iter().find(|path| !path.is_file()) {
        Some(path) => Err(Skip::because(format!("{} is not here", path.display()))),
        None => Ok(paths),
    }
}

/// Splits a command line without quotes.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A program, and those of its packages that are traced.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// Its jars or directories.
    pub(crate) class_path: Vec<PathBuf>,
    /// Options of the virtual machine.
    pub(crate) options: Vec<String>,
    pub(crate) main: &'static str,
    pub(crate) arguments: Vec<String>,
    /// Files that exist in its working directory when it starts.
    pub(crate) files: Vec<(&'static str, Vec<u8>)>,
    /// Prefixes of the internal names of traced classes. No class of the boot loader may have one.
    pub(crate) packages: &'static [&'static str],
    /// The time limit.
    pub(crate) limit: Duration,
}

/// The time limit of each step in a sweep.
pub(crate) const LONG: Duration = Duration::from_mins(15);

/// The results of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) finished: Finished,
    /// All files of its working directory, by path.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Load {
    /// Runs the program in a directory, with additional options, after removing earlier files. Programs print their
    /// directory, so all runs have to use one.
    fn run(&self, jdk: &Jdk, folder: &Path, options: &[String]) -> Ran {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).unwrap();
        for (name, bytes) in &self.files {
            fs::write(folder.join(name), bytes).unwrap();
        }
        let mut java = jdk.java();
        java.current_dir(folder).args(options).args(["-Xverify:all", "-XX:-UsePerfData"]);
        let path = std::env::join_paths(&self.class_path).unwrap();
        java.args(&self.options).arg("-cp").arg(path).arg(self.main).args(&self.arguments);
        let finished = Running::start(java).wait_within(self.limit);
        let mut files = BTreeMap::new();
        collect(folder, folder, &mut files);
        Ran { finished, files }
    }

    /// Runs the program without the libraries.
    pub(crate) fn plain(&self, jdk: &Jdk, folder: &Path) -> Ran {
        let ran = self.run(jdk, folder, &[]);
        ran.finished.expect_code(0);
        ran
    }

    /// Runs the program with the agent and the counter. Its output and files have to equal those of a plain run.
    pub(crate) fn judged(
        &self,
        jdk: &Jdk,
        folder: &Path,
        counter: &JvmCounter,
        plain: &Ran,
        record: RecordMode,
    ) -> Opinions {
        let inclusions = self.packages.iter().map(|package| JavaString::from(format!("^{package}").as_str()));
        let hq = Listening::with(Configuration {
            inclusions: inclusions.collect(),
            exclusions: vec![JavaString::from(".*")],
            heartbeat_interval: 100,
            extension: Extension { record, ..Extension::default() },
            ..Configuration::default()
        });
        let results = tempfile::tempdir().unwrap();
        let out = results.path().join("counts");
        let counting = counter.option(self.packages, &out).into_string().unwrap();
        let port = hq.hq.address().port();
        let tracing = format!("-agentpath:{}=host=127.0.0.1,port={port}", library().display());
        let ran = self.run(jdk, folder, &[counting, tracing]);
        let who = format!("{} on JDK {}, {record:?}", self.name, jdk.major());
        ran.finished.expect_code(0);
        assert!(ran.finished.stdout == plain.finished.stdout, "{who}: {}", ran.finished);
        assert_eq!(ran.finished.stderr, plain.finished.stderr, "{who}");
        assert!(ran.files.keys().eq(plain.files.keys()), "{who}: {:?}", ran.files.keys());
        for (path, bytes) in &ran.files {
            assert!(Some(bytes) == plain.files.get(path), "{who}: {} is another", path.display());
        }
        let report = hq.report();
        assert_eq!(report.findings, [], "{who}");
        assert_eq!((report.counters.orphans, report.counters.drops), (0, 0), "{who}: {:?}", report.counters);
        Opinions { record, report, counted: JvmCounter::counts(&out) }
    }
}

fn collect(root: &Path, folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, into);
        } else {
            into.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
        }
    }
}

/// The accounts of the agent and of JVMTI of one run.
#[derive(Debug)]
pub(crate) struct Opinions {
    record: RecordMode,
    report: Report,
    counted: BTreeMap<CountedMethod, Counts>,
}

/// Calls that have started, calls that have returned (`None` if not recorded), and calls that an exception has ended.
type Seen = (u64, Option<u64>, u64);

/// The numbers of compared items.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) methods: usize,
    pub(crate) calls: u64,
    pub(crate) thrown: u64,
    /// Ends of constructors by an exception of `super()`: see [`Opinions::differences`].
    pub(crate) unborn: u64,
}

impl Opinions {
    fn seen(&self) -> BTreeMap<CountedMethod, Seen> {
        let mut seen = BTreeMap::<CountedMethod, Seen>::new();
        for method in &self.report.methods {
            let (class, rest) = method.signature.split_once('.').expect("class.method;access;descriptor");
            let (name, rest) = rest.split_once(';').expect("method;access;descriptor");
            let (_, descriptor) = rest.split_once(';').expect("access;descriptor");
            let key = CountedMethod { class: class.into(), name: name.into(), descriptor: descriptor.into() };
            let one = match (self.record, method.counted) {
                (RecordMode::Full, _) => (method.entries, Some(method.exits), method.bubbles),
                (_, Some((calls, thrown, _))) => (calls, None, thrown),
                (_, None) => continue,
            };
            assert_eq!(seen.insert(key, one), None, "{} is there twice", method.signature);
        }
        seen.retain(|_, (calls, ..)| *calls > 0);
        seen
    }

    /// Returns the differences between the two accounts, and the numbers of items on which they agree.
    ///
    /// Calls, returns and exceptions of every method are equal, with these exceptions:
    /// - Methods of hidden classes (lambdas): JVMTI does not pass their bytes to agents.
    /// - Empty finalizers: the agent leaves them unchanged, so that the JVM still recognizes them as empty.
    /// - Constructors, if calls are only counted: an exception that leaves `super()` can't be handled, so ends by
    ///   such an exception
    ///   are in JVMTI's counts only.
    pub(crate) fn differences(&self) -> (Compared, Vec<String>) {
        let (mut seen, mut compared, mut wrong) = (self.seen(), Compared::default(), Vec::new());
        for (method, counts) in &self.counted {
            let is = seen.remove(method);
            let empty_finalizer = is.is_none() && method.name == "finalize" && method.descriptor == "()V";
            if method.is_hidden() || empty_finalizer || counts.entries == 0 {
                continue;
            }
            let (calls, returned, thrown) =
                is.unwrap_or_else(|| (0, (self.record == RecordMode::Full).then_some(0), 0));
            let is_counted = self.record != RecordMode::Full && method.name == "<init>";
            let unborn = if is_counted { counts.thrown.saturating_sub(thrown) } else { 0 };
            let returns = counts.exits.saturating_sub(counts.thrown);
            let equal = calls == counts.entries
                && thrown + unborn == counts.thrown
                && returned.is_none_or(|returned| returned == returns);
            if !equal {
                wrong.push(format!("{method:?}: {counts:?}, the agent says {is:?}"));
            }
            compared.methods += 1;
            compared.calls += calls;
            compared.thrown += thrown;
            compared.unborn += unborn;
        }
        wrong.extend(
            seen.iter().map(|(method, seen)| format!("{method:?}: not called, the agent says {seen:?}")),
        );
        (compared, wrong)
    }

    /// Returns the calls of the methods with a name, and those that an exception has ended.
    pub(crate) fn calls(&self, class: &str, name: &str) -> (u64, u64) {
        let seen = self.seen();
        let those = seen.iter().filter(|(method, _)| method.class == class && method.name == name);
        those.fold((0, 0), |(calls, thrown), (_, one)| (calls + one.0, thrown + one.2))
    }

    /// Returns how many reported signatures have a prefix.
    pub(crate) fn signatures(&self, beginning: &str) -> usize {
        let methods = self.report.methods.iter();
        methods.filter(|method| method.signature.starts_with(beginning)).count()
    }

    /// Returns the threads with calls that had not ended when the virtual machine did.
    pub(crate) fn unended(&self) -> Vec<Option<String>> {
        let threads = self.report.threads.iter().filter(|thread| !thread.ended && thread.entries > 0);
        threads.map(|thread| thread.name.clone()).collect()
    }
}
