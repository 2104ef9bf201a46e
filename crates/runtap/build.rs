//! Links the release binary statically against glibc, tells `runtap version` what was built, compresses the licenses, and
//! has the agent for JVMs built that the binary carries (`build/agent.rs`).
//!
//! Owns: the link arguments of the `runtap` binary, and the compile-time variables `RUNTAP_TARGET` and `RUNTAP_LICENSES`
//! (always set) and `RUNTAP_COMMIT` (set when the sources are a git checkout and git is there; read it with `option_env!`).
//! Refuses to: choose a target, touch other crates, or fail. A machine that cannot link statically gets a dynamic
//! binary and a warning. Why not `-Ctarget-feature=+crt-static`: docs/design/static-binary.md.

#[path = "build/agent.rs"]
mod agent;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use lzma_rust2::{LzmaOptions, LzmaWriter};

/// The list behind `runtap licenses`.
const LICENSES: &str = "licenses.txt";
/// Stand-ins for the shared libraries that the Rust standard library asks for. The linker finds them first and reads
/// them as what they are: scripts that name the archives.
const SCRIPTS: [(&str, &str); 3] = [
    ("libgcc_s.so", "INPUT(-l:libgcc_eh.a -l:libgcc.a)\n"),
    ("libc.so", "GROUP(-l:libc.a -l:libgcc_eh.a -l:libgcc.a)\n"),
    ("libm.so", "INPUT(-l:libm.a)\n"),
];

fn main() {
    agent::build();
    licenses();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=RUNTAP_TARGET={}", variable("TARGET"));
    commit();
    match static_link() {
        Ok(()) => {}
        Err(Dynamic::OnPurpose) => {}
        Err(Dynamic::Missing(what)) => println!("cargo::warning=runtap is linked dynamically: {what}"),
    }
}

fn licenses() {
    println!("cargo::rerun-if-changed={LICENSES}");
    let list = fs::read(LICENSES).unwrap_or_else(|error| panic!("cannot read {LICENSES}: {error}"));
    embed("RUNTAP_LICENSES", Some(&list));
}

/// Sets a compile-time variable to the path of a file with the bytes in the LZMA format. Without bytes the file is empty.
fn embed(name: &str, bytes: Option<&[u8]>) {
    let path = Path::new(&variable("OUT_DIR")).join(name).with_extension("lzma");
    let written = fs::write(&path, bytes.map(compress).unwrap_or_default());
    written.unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    println!("cargo::rustc-env={name}={}", path.display());
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    // Without optimization the best level takes seconds for each megabyte.
    let level = if variable("OPT_LEVEL") == "0" { 0 } else { 9 };
    let encoder =
        LzmaWriter::new_use_header(Vec::new(), &LzmaOptions::with_preset(level), Some(bytes.len() as u64));
    let compressed = encoder.and_then(|mut encoder| {
        encoder.write_all(bytes)?;
        encoder.finish()
    });
    compressed.unwrap_or_else(|error| panic!("cannot compress: {error}"))
}

/// Why the binary is left as rustc would link it.
enum Dynamic {
    /// Not wanted, or already static.
    OnPurpose,
    /// Wanted, but this machine lacks something.
    Missing(String),
}

/// Writes the scripts and hands them to the linker, where that makes a static binary.
fn static_link() -> Result<(), Dynamic> {
    let glibc = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    let already = variable("CARGO_CFG_TARGET_FEATURE").split(',').any(|feature| feature == "crt-static");
    // A development build is linked dozens of times a day, and dynamically that is faster.
    if !glibc || already || variable("PROFILE") != "release" {
        return Err(Dynamic::OnPurpose);
    }
    let linker = linker()?;
    for archive in ["libc.a", "libm.a", "libgcc_eh.a", "libgcc.a", "rcrt1.o"] {
        require(&linker, archive)?;
    }
    let out = PathBuf::from(variable("OUT_DIR"));
    write_scripts(&out).map_err(|e| Dynamic::Missing(format!("{}: {e}", out.display())))?;
    println!("cargo::rustc-link-arg-bins=-L{}", out.display());
    println!("cargo::rustc-link-arg-bins=-static-pie");
    if can_pack_relocations(&linker) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if can_fold(&out) {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
    Ok(())
}

/// Has the linker keep one of several functions with equal code.
const FOLD: &str = "-Wl,--icf=all";

/// Whether the linker has this option: rustc's own (lld) does, GNU ld does not. Links a program to find out, because which
/// linker is used depends on rustc and its flags.
fn can_fold(out: &Path) -> bool {
    let source = out.join("fold.rs");
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg([OsStr::new("linker="), &linker].into_iter().collect::<OsString>());
    }
    rustc.args(["--target", &variable("TARGET"), "-C", &format!("link-arg={FOLD}"), "-o"]);
    rustc.arg(out.join("fold")).arg(&source);
    fs::write(&source, "fn main() {}").is_ok() && rustc.output().is_ok_and(|output| output.status.success())
}

/// Whether the C library's start code applies packed relocations (`DT_RELR`): glibc 2.36 and later do. A program with
/// them that was linked with an older one would crash at its start.
fn can_pack_relocations(linker: &OsString) -> bool {
    let macros =
        Command::new(linker).args(["-E", "-dM", "-include", "features.h", "-xc", "/dev/null"]).output();
    let macros = macros.map(|output| output.stdout).unwrap_or_default();
    let value = |name: &str| -> Option<u32> {
        let text = String::from_utf8_lossy(&macros);
        text.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.trim().parse().ok())
    };
    value("__GLIBC__ ").zip(value("__GLIBC_MINOR__ ")) >= Some((2, 36))
}

/// The compiler driver that will link: the one cargo was told to use, else `cc`, which only knows the host.
fn linker() -> Result<OsString, Dynamic> {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        return Ok(linker);
    }
    if variable("HOST") == variable("TARGET") {
        return Ok("cc".into());
    }
    Err(Dynamic::Missing("no linker is set for a target that is not the host".into()))
}

/// A driver that does not have a file echoes its bare name; one that does prints where it is.
fn require(linker: &OsString, file: &str) -> Result<(), Dynamic> {
    let asked = Command::new(linker).arg(format!("-print-file-name={file}")).output();
    let output = asked.map_err(|e| Dynamic::Missing(format!("{}: {e}", linker.display())))?;
    let path = String::from_utf8_lossy(&output.stdout);
    if Path::new(path.trim()).is_absolute() {
        return Ok(());
    }
    Err(Dynamic::Missing(format!(
        "{} has no {file} (it comes with the C library's development files)",
        linker.display()
    )))
}

fn write_scripts(out: &Path) -> io::Result<()> {
    SCRIPTS.iter().try_for_each(|(name, text)| fs::write(out.join(name), text))
}

/// Sets `RUNTAP_COMMIT` to the abbreviated hash of the commit that is checked out.
fn commit() {
    println!("cargo::rerun-if-env-changed=RUNTAP_COMMIT");
    if let Ok(given) = env::var("RUNTAP_COMMIT") {
        println!("cargo::rustc-env=RUNTAP_COMMIT={given}");
        return;
    }
    // A packaged crate inside another project's checkout must not use that project's commit.
    let ours = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    let Some(hash) = git(&["rev-parse", "--short=12", "HEAD"]).filter(|_| ours) else { return };
    println!("cargo::rustc-env=RUNTAP_COMMIT={hash}");
    // In a worktree HEAD and the refs lie in different folders: let git say where. The log of HEAD grows with every
    // commit and checkout; where logs are switched off, HEAD and the branch's own file have to do.
    let mut watched = vec!["HEAD".to_owned(), "logs/HEAD".to_owned()];
    watched.extend(git(&["symbolic-ref", "--quiet", "HEAD"]));
    for name in watched {
        let path = git(&["rev-parse", "--git-path", &name]).filter(|path| Path::new(path).exists());
        if let Some(path) = path {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A variable that cargo sets for build scripts; absent ones (`CARGO_CFG_TARGET_FEATURE` on some targets) are empty.
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
