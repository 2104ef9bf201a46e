//! The checks with this process as the target, which sees all files at their own paths.

use std::path::{Path, PathBuf};

use runtap_diag_proto::{DumpFlags, DumpForm, PerfMapType, StartupProfiler, Uuid};
use tempfile::TempDir;

use super::*;

fn this() -> Target {
    Target::of(std::process::id()).unwrap()
}

fn info(version: &str) -> ProcessInfo {
    ProcessInfo {
        process_id: 1,
        runtime_cookie: Uuid::nil(),
        command_line: String::new(),
        os: "Linux".into(),
        arch: "x64".into(),
        entry_assembly: None,
        runtime_version: Some(version.into()),
        portable_rid: None,
    }
}

fn unseen() -> std::io::Error {
    std::io::ErrorKind::PermissionDenied.into()
}

fn folder_with(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn hook(path: impl AsRef<Path>, version: u16) -> Result<(), String> {
    let request = Request::ApplyStartupHook { path: path.as_ref().to_str().unwrap().into() };
    let info = info(&format!("{version}.0.1"));
    check(Ok(&this()), &request, Some(&info)).map_err(|objection| objection.to_string())
}

#[test]
fn a_hook_must_exist_and_be_valid() {
    let good = hook::tests::hook(8);
    let (folder, path) = folder_with("hook.dll", &good);
    assert_eq!(hook(&path, 8), Ok(()));
    assert_eq!(hook(&path, 10), Ok(()));
    let shown = path.display();
    assert_eq!(hook(&path, 7), Err(format!("{shown} was built for .NET 8, but the target runs .NET 7")));
    let request = Request::ApplyStartupHook { path: path.to_str().unwrap().into() };
    assert!(check(Ok(&this()), &request, None).is_ok(), "the version is unknown");

    assert_eq!(hook("hook.dll", 8), Err("the path must be absolute: \"hook.dll\"".into()));
    assert_eq!(hook("NoSuchAssembly", 8), Err("the path must be absolute: \"NoSuchAssembly\"".into()));
    let two = format!("{shown}:{shown}");
    assert_eq!(hook(&two, 8), Err(format!("{two:?} contains a colon, which separates startup hooks")));
    let missing = folder.path().join("none.dll");
    let why = hook(&missing, 8).unwrap_err();
    assert!(
        why.starts_with(&format!(
            "startup hook {} does not exist in the target's file system",
            missing.display()
        )),
        "{why}"
    );
    let why = hook(folder.path(), 8).unwrap_err();
    assert_eq!(why, format!("{} is not a file", folder.path().display()));
    let (_folder, text) = folder_with("hook.dll", b"no assembly");
    let why = hook(&text, 8).unwrap_err();
    assert!(why.ends_with("is not a .NET assembly: not a PE file"), "{why}");
    let (_folder, other) = folder_with("hook.dll", &hook::tests::without_class());
    assert!(hook(&other, 8).unwrap_err().ends_with("has no class StartupHook outside of namespaces"));
    let (_folder, other) = folder_with("hook.dll", &hook::tests::without_method());
    assert!(hook(&other, 8).unwrap_err().ends_with("has no static void Initialize() without parameters"));
}

#[test]
fn a_file_too_large_for_a_hook_is_not_read() {
    let (_folder, path) = folder_with("hook.dll", b"");
    std::fs::File::options().write(true).open(&path).unwrap().set_len(MAX_ASSEMBLY + 1).unwrap();
    assert!(hook(&path, 8).unwrap_err().contains("is too large for a startup hook (67108865 bytes)"));
}

#[test]
fn unverifiable_requests_are_rejected_only_if_they_could_crash_the_target() {
    let class_id = Uuid::nil();
    let allowed =
        |request: &Request, version: &str| check(Err(unseen()), request, Some(&info(version))).is_ok();
    assert!(!allowed(&Request::ApplyStartupHook { path: "/x".into() }, "10.0.0"));
    for (version, expected) in [("8.0.33", false), ("9.0.1", false), ("10.0.0-rc.1", true), ("", true)] {
        assert_eq!(allowed(&Request::EnablePerfMap(PerfMapType::All), version), expected, "{version}");
    }
    let dump = |path: &str| Request::GenerateCoreDump {
        form: DumpForm::GenerateCoreDump3,
        dump: CoreDump::new(path, DumpType::MINI),
    };
    assert!(allowed(&dump("/x"), "8.0.0"));
    assert!(!allowed(&dump("x"), "8.0.0"));
    assert!(allowed(&Request::StartupProfiler(StartupProfiler { class_id, path: "/x".into() }), "8.0.0"));
}

#[test]
fn the_directory_of_a_dump_must_exist_for_the_target() {
    let (folder, file) = folder_with("file", b"");
    let dump = |path: &Path| {
        let dump = CoreDump::new(path.to_str().unwrap(), DumpType::FULL).with_flags(DumpFlags::LOGGING);
        let request = Request::GenerateCoreDump { form: DumpForm::GenerateCoreDump, dump };
        check(Ok(&this()), &request, None).map_err(|objection| objection.to_string())
    };
    assert_eq!(dump(&folder.path().join("x.dmp")), Ok(()));
    assert_eq!(dump(Path::new("/nope-%p/x.dmp")), Ok(()), "the runtime fills in the pid");
    let missing = dump(&folder.path().join("none/x.dmp")).unwrap_err();
    assert!(
        missing.starts_with("directory ")
            && missing.contains("none does not exist in the target's file system"),
        "{missing}"
    );
    assert_eq!(dump(&file.join("x.dmp")), Err(format!("{} is not a directory", file.display())));
}

#[test]
fn a_process_without_a_runtime_is_neither_starting_nor_running() {
    assert!(!this().is_starting());
    assert!(this().check_createdump().is_ok());
    assert!(check(Ok(&this()), &Request::EnablePerfMap(PerfMapType::All), Some(&info("8.0.1"))).is_ok());
}

#[test]
fn harmless_requests_are_not_checked() {
    for request in [
        Request::ResumeRuntime,
        Request::DisablePerfMap,
        Request::SetEnvironmentVariable { name: "A".into(), value: None },
    ] {
        assert!(!concerns(&request));
        assert!(check(Err(unseen()), &request, None).is_ok());
    }
}

#[test]
fn versions() {
    for (text, expected) in [("8.0.33", Some(8)), ("10.0.0-rc.1", Some(10)), ("9", Some(9)), ("", None)] {
        assert_eq!(major(&info(text)), expected, "{text}");
    }
}
