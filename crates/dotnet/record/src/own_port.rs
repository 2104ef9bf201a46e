//! Creates the port for a launched command: a socket in its own directory to which only the current user can write. Runtimes connect
//! to its path for their whole lifetime and obey any listener, so no other user must ever be able to create it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runtap_diag::diagnostic_ports::LONGEST_ADDRESS;
use runtap_diag::ports::Port;
use runtap_model::order;
use runtap_transport::{Exposure, Folder};
use rustix::process::geteuid;

use crate::Error;

/// The prefix of the directory's name, which is followed by unpredictable digits.
const FOLDER: &str = "runtap-";
const DIGITS: usize = 16;
const SOCKET: &str = "port";
/// A name of the directory's length.
const EXAMPLE: &str = "runtap-0123456789abcdef";

/// The directory of a port. Removed on drop, unless the socket is still in it.
#[derive(Debug)]
pub(crate) struct PortDirectory(PathBuf);

impl PortDirectory {
    /// Returns the directory of a port, if its name has this form. Does not check the owner.
    pub(crate) fn of(port: &Path) -> Option<Self> {
        let folder = port.parent()?;
        let digits = folder.file_name().and_then(OsStr::to_str)?.strip_prefix(FOLDER)?;
        let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let ours = is_number && port.file_name() == Some(SOCKET.as_ref());
        ours.then(|| Self(folder.to_owned()))
    }
}

impl Drop for PortDirectory {
    fn drop(&mut self) {
        // A directory that is not empty belongs to a guard, or to a tool that resumes processes.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Whether all users may connect. Root's commands also run programs as other users (`su`, `setpriv`, the entry point of a
/// container), which would otherwise wait forever. The ports of other users are private.
pub(crate) fn accepts_all_users() -> bool {
    geteuid().is_root()
}

/// Listens in a new directory, in the first suitable place. The port must be dropped before the directory.
pub(crate) fn make() -> Result<(PortDirectory, Port), Error> {
    let mut error = Error::NoPlace;
    for place in places() {
        match make_in(&place) {
            Ok(made) => return Ok(made),
            Err(reason) => error = reason,
        }
    }
    Err(error)
}

fn make_in(place: &Path) -> Result<(PortDirectory, Port), Error> {
    let failed = |error: io::Error| Error::Place { place: place.to_owned(), error };
    let folder = Folder::open(place).and_then(|place| place.make_private(FOLDER, accepts_all_users()));
    let directory = PortDirectory(folder.map_err(failed)?.path().to_owned());
    let path = directory.0.join(SOCKET);
    let port = if accepts_all_users() { Port::bind_for_all_users(path)? } else { Port::bind(path)? };
    Ok((directory, port))
}

/// Returns the places for directories: the runtime directory, which is neither cleaned nor shared, then temporary directories.
/// Excludes paths that are too long or contain separators of the variable.
fn places() -> Vec<PathBuf> {
    let root = geteuid().is_root();
    let runtime = if root { Some("/run".into()) } else { env::var_os("XDG_RUNTIME_DIR") };
    let private = |folder: &PathBuf| {
        Folder::open(folder).is_ok_and(|folder| {
            let ours = folder.owner().is_ok_and(|owner| owner == geteuid().as_raw());
            ours && folder.exposure() == Exposure::Private
        })
    };
    let runtime = runtime.map(PathBuf::from).filter(|folder| folder.is_absolute() && private(folder));
    let temporary = [env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/dev/shm")];
    let mut places: Vec<PathBuf> = runtime.into_iter().chain(temporary).collect();
    if root {
        // The port must be reachable by other users, so private directories come last.
        order::sort_by_key(&mut places, |folder| !is_reached_by_all(folder));
    }
    let fits = |place: &PathBuf| {
        let path = place.join(EXAMPLE).join(SOCKET);
        let text = path.as_os_str().as_encoded_bytes();
        text.len() <= LONGEST_ADDRESS && !text.iter().any(|byte| matches!(byte, b';' | b','))
    };
    places.into_iter().filter_map(|place| std::path::absolute(place).ok()).filter(fits).collect()
}

/// Whether every user can access files in a directory, according to its mode and those of its parents.
fn is_reached_by_all(folder: &Path) -> bool {
    let may_pass =
        |folder: &Path| fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    fs::canonicalize(folder).is_ok_and(|folder| folder.ancestors().all(may_pass))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_names_that_a_runtime_can_parse() {
        for place in places() {
            let path = place.join(EXAMPLE).join(SOCKET);
            let text = path.to_str().unwrap();
            assert!(
                path.is_absolute() && text.len() <= LONGEST_ADDRESS && !text.contains([';', ',']),
                "{text}"
            );
        }
        assert!(!places().is_empty());
    }

    #[tokio::test]
    async fn the_folder_of_a_port_is_removed_with_it() {
        let place = tempfile::tempdir().unwrap();
        let (directory, port) = make_in(place.path()).unwrap();
        let (folder, path) = (directory.0.clone(), port.path().to_owned());
        assert_eq!(folder.as_os_str().len(), place.path().join(EXAMPLE).as_os_str().len());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let everybody = accepts_all_users();
        assert_eq!(mode(&folder), if everybody { 0o711 } else { 0o700 });
        assert_eq!(mode(&path), if everybody { 0o666 } else { 0o600 });
        assert_eq!(port.exposure(), Exposure::Private);
        // A guard has the port.
        port.leave();
        drop(directory);
        assert!(path.exists());
        // The guard exits.
        fs::remove_file(&path).unwrap();
        drop(PortDirectory::of(&path).unwrap());
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn no_port_is_created_where_others_can_create_names() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let told = make_in(place.path()).unwrap_err().to_string();
        assert!(told.contains("other users can replace files"), "{told}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        make_in(place.path()).unwrap();
    }

    #[test]
    fn a_private_folder_above_keeps_others_out() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let modes = |of_outer, of_inner| {
            fs::set_permissions(outer.path(), fs::Permissions::from_mode(of_outer)).unwrap();
            fs::set_permissions(&inner, fs::Permissions::from_mode(of_inner)).unwrap();
            is_reached_by_all(&inner)
        };
        // It is unknown whether other users have access to the temporary directory of this test.
        let above = is_reached_by_all(outer.path().parent().unwrap());
        assert_eq!([modes(0o755, 0o711), modes(0o755, 0o750), modes(0o700, 0o755)], [above, false, false]);
        assert!(!is_reached_by_all(&inner.join("none")));
    }

    #[test]
    fn ports_of_launched_commands_are_recognized_by_their_names() {
        assert!(PortDirectory::of(&Path::new("/none").join(EXAMPLE).join(SOCKET)).is_some());
        for other in [
            "/none/port",
            "/tmp/runtap-my/port",
            "/tmp/runtap-0123456789abcde/port",
            "/tmp/runtap-0123456789abcdeg/port",
            "/tmp/runtap-0123456789abcdef/other",
            "/runtap-0123456789abcdef",
            "/",
            "port",
        ] {
            assert!(PortDirectory::of(Path::new(other)).is_none(), "{other}");
        }
    }
}
