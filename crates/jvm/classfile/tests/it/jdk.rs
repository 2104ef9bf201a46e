//! The JDKs of this machine: they run the programs of `tests/java`, and provide their own classes.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;

use runtap_testkit::{Jdk, Skip};

/// A class of a module: `java.base/java/lang/Object.class`.
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) trait Programs {
    /// Runs one of the programs of `tests/java`.
    fn program(&self, name: &str, options: &[&str], arguments: &[&str]) -> Result<Output, Skip>;

    /// Returns the classes of some modules, or of all.
    fn classes(&self, modules: &[&str]) -> Result<Vec<Found>, Skip>;
}

impl Programs for Jdk {
    fn program(&self, name: &str, options: &[&str], arguments: &[&str]) -> Result<Output, Skip> {
        let mut java = self.java();
        java.args(options).arg("-cp").arg(programs()?).arg(name).args(arguments);
        Ok(java.output().expect("java starts"))
    }

    fn classes(&self, modules: &[&str]) -> Result<Vec<Found>, Skip> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("classes");
        let mut arguments = vec![file.to_str().unwrap()];
        arguments.extend(modules);
        let ran = self.program("Classes", &[], &arguments)?;
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let bytes = fs::read(file).unwrap();
        let mut rest = bytes.as_slice();
        let mut found = Vec::new();
        while let Some((length, tail)) = rest.split_first_chunk::<2>() {
            let (path, tail) = tail.split_at(u16::from_be_bytes(*length).into());
            let (length, tail) = tail.split_first_chunk::<4>().unwrap();
            let (bytes, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
            found.push(Found { path: String::from_utf8(path.to_vec()).unwrap(), bytes: bytes.to_vec() });
            rest = tail;
        }
        assert!(!found.is_empty());
        Ok(found)
    }
}

/// Returns the folder of the compiled programs of `tests/java`, which are compiled once per run, for the oldest tested JDK.
pub(crate) fn programs() -> Result<&'static Path, Skip> {
    static FOLDER: OnceLock<Result<tempfile::TempDir, Skip>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let jdk = Jdk::with_compiler()?;
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
        let sources = fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
        let sources = sources.filter(|path| path.extension().is_some_and(|extension| extension == "java"));
        jdk.compile(sources, folder.path());
        Ok(folder)
    });
    folder.as_ref().map(tempfile::TempDir::path).map_err(Clone::clone)
}
