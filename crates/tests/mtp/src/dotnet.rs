//! Search for the `dotnet` host that runs managed modules.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An error that occurs when no `dotnet` host is found. Holds the paths that were searched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no dotnet host found; searched {}", list(.0))]
pub struct NoDotnet(pub Vec<PathBuf>);

fn list(places: &[PathBuf]) -> String {
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    places.join(", ")
}

/// Finds the `dotnet` host, in the order that `dotnet`, application hosts and installers agree on: `DOTNET_HOST_PATH`,
/// `DOTNET_ROOT_<ARCH>`, `DOTNET_ROOT`, `PATH`, the registered install location, and the default directories.
///
/// # Errors
/// Returns an error if no host is found.
pub fn find_dotnet() -> Result<PathBuf, NoDotnet> {
    find(|name| env::var_os(name), Path::new("/"))
}

fn find(variable: impl Fn(&str) -> Option<OsString>, root: &Path) -> Result<PathBuf, NoDotnet> {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let file = if cfg!(windows) { "dotnet.exe" } else { "dotnet" };
    let architecture = architecture();
    let mut places: Vec<PathBuf> = given("DOTNET_HOST_PATH").into_iter().collect();
    let roots = [format!("DOTNET_ROOT_{architecture}"), "DOTNET_ROOT".to_owned()];
    places.extend(roots.iter().filter_map(|name| given(name)).map(|root| root.join(file)));
    if let Some(path) = variable("PATH") {
        places.extend(
            env::split_paths(&path).filter(|place| place.is_absolute()).map(|place| place.join(file)),
        );
    }
    for name in [format!("install_location_{}", architecture.to_lowercase()), "install_location".to_owned()] {
        let location = fs::read_to_string(root.join("etc/dotnet").join(name)).unwrap_or_default();
        let line = location.lines().next().map(str::trim).filter(|line| line.starts_with('/'));
        places.extend(line.map(|line| Path::new(line).join(file)));
    }
    let usual =
        ["usr/share/dotnet", "usr/lib/dotnet", "usr/lib64/dotnet", "usr/local/share/dotnet", "opt/dotnet"];
    places.extend(usual.iter().map(|place| root.join(place).join(file)));
    places.extend(given("HOME").map(|home| home.join(".dotnet").join(file)));
    match places.iter().find(|place| is_program(place)) {
        Some(found) => Ok(found.clone()),
        None => Err(NoDotnet(places)),
    }
}

/// Returns the name of the architecture in variables and files of the host.
fn architecture() -> &'static str {
    match env::consts::ARCH {
        "x86_64" => "X64",
        "aarch64" => "ARM64",
        "x86" => "X86",
        other => other,
    }
}

/// Returns the environment variables with which a program uses the runtime of this host. Empty if the host has no
/// runtime beside it.
pub(crate) fn root_variables(dotnet: &Path) -> Vec<(String, PathBuf)> {
    // On the search path of distributions, the host is a link.
    let file = dotnet.canonicalize().unwrap_or_else(|_| dotnet.to_owned());
    let root = file.parent().filter(|root| root.join("host").join("fxr").is_dir());
    let names = ["DOTNET_ROOT".to_owned(), format!("DOTNET_ROOT_{}", architecture())];
    root.into_iter().flat_map(|root| names.clone().map(|name| (name, root.to_owned()))).collect()
}

/// Returns whether the path is an executable file.
pub(crate) fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let executable = |metadata: &fs::Metadata| {
        std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
    };
    #[cfg(not(unix))]
    let executable = |_: &fs::Metadata| {
        path.extension().is_some_and(|it| ["exe", "cmd"].iter().any(|known| it.eq_ignore_ascii_case(known)))
    };
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && executable(&metadata))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn locations_are_searched_in_order() {
        let root = tempfile::tempdir().unwrap();
        let make = |place: &str, mode| {
            let file = root.path().join(place).join("dotnet");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let path = root.path().join("bin");
        let found = || find(|name| (name == "PATH").then(|| path.clone().into_os_string()), root.path());
        let error = found().unwrap_err();
        assert_eq!(error.0[0], path.join("dotnet"));
        let usual = make("usr/lib/dotnet", 0o755);
        assert_eq!(found(), Ok(usual));
        let registered = make("somewhere", 0o755);
        fs::create_dir_all(root.path().join("etc/dotnet")).unwrap();
        let location = format!("{}\n", registered.parent().unwrap().display());
        fs::write(root.path().join("etc/dotnet/install_location"), location).unwrap();
        assert_eq!(found(), Ok(registered));
        make("bin", 0o644);
        assert_ne!(found(), Ok(path.join("dotnet")), "the file is not executable");
        let ours = make("bin", 0o755);
        assert_eq!(found(), Ok(ours));
    }
}
