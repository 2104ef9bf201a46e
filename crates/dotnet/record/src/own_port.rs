//! The port of a command that is started: a socket in a folder of its own, to which only we can write. Runtimes dial its name for
//! as long as they live, and obey whoever listens there, so no other user may ever have it.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runtap_diag::diagnostic_ports::LONGEST_ADDRESS;
use runtap_diag::ports::Port;
use runtap_transport::{Exposure, Folder};
use rustix::process::geteuid;

use crate::Error;

/// What the name of the folder begins with; then come digits that nobody can foresee.
const FOLDER: &str = "runtap-";
const DIGITS: usize = 16;
const SOCKET: &str = "port";
/// As long as the name of a folder is.
const EXAMPLE: &str = "runtap-0123456789abcdef";

/// The folder of a port of ours. Removed when it is dropped, unless the socket is still in it.
#[derive(Debug)]
pub(crate) struct PortDirectory(PathBuf);

impl PortDirectory {
    /// The folder of a port that is called as ours are. Whose it is, is another question.
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
        // One that is not empty belongs to a guard, or to whoever resumes what is left.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Root's commands run programs as other users too (`su`, `setpriv`, the entry point of a container), who would wait for
/// ever at a port that they may not dial. The port of any other user is theirs alone.
pub(crate) fn lets_everybody_in() -> bool {
    geteuid().is_root()
}

/// Listens in a new folder, in the first place that will do. The port has to go before the folder.
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
    let folder = Folder::open(place).and_then(|place| place.make_private(FOLDER, lets_everybody_in()));
    let directory = PortDirectory(folder.map_err(failed)?.path().to_owned());
    let path = directory.0.join(SOCKET);
    let port = if lets_everybody_in() { Port::bind_for_all_users(path)? } else { Port::bind(path)? };
    Ok((directory, port))
}

/// Where folders of ours can be: in the runtime folder, which nobody cleans and which is not shared, else in a temporary
/// one, unless its name is too long or has a meaning in the variable.
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
        // Whoever is to reach the port: a folder that is private comes last.
        places.sort_by_key(|folder| !is_reached_by_all(folder));
    }
    let fits = |place: &PathBuf| {
        let path = place.join(EXAMPLE).join(SOCKET);
        let text = path.as_os_str().as_encoded_bytes();
        text.len() <= LONGEST_ADDRESS && !text.iter().any(|byte| matches!(byte, b';' | b','))
    };
    places.into_iter().filter_map(|place| std::path::absolute(place).ok()).filter(fits).collect()
}

/// Whether every user gets to what lies in a folder, as far as its mode and those of the folders above it tell.
fn is_reached_by_all(folder: &Path) -> bool {
    let may_pass =
        |folder: &Path| fs::metadata(folder).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    fs::canonicalize(folder).is_ok_and(|folder| folder.ancestors().all(may_pass))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_name_that_a_runtime_can_read() {
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
    async fn a_port_has_a_folder_that_goes_with_it() {
        let place = tempfile::tempdir().unwrap();
        let (directory, port) = make_in(place.path()).unwrap();
        let (folder, path) = (directory.0.clone(), port.path().to_owned());
        assert_eq!(folder.as_os_str().len(), place.path().join(EXAMPLE).as_os_str().len());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        let everybody = lets_everybody_in();
        assert_eq!(mode(&folder), if everybody { 0o711 } else { 0o700 });
        assert_eq!(mode(&path), if everybody { 0o666 } else { 0o600 });
        assert_eq!(port.exposure(), Exposure::Private);
        // A guard has it.
        port.leave();
        drop(directory);
        assert!(path.exists());
        // And ends.
        fs::remove_file(&path).unwrap();
        drop(PortDirectory::of(&path).unwrap());
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn no_port_is_made_where_others_take_names() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let told = make_in(place.path()).unwrap_err().to_string();
        assert!(told.contains("other users can exchange"), "{told}");
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
        // Whether others get to the temporary folder of this test is not known.
        let above = is_reached_by_all(outer.path().parent().unwrap());
        assert_eq!([modes(0o755, 0o711), modes(0o755, 0o750), modes(0o700, 0o755)], [above, false, false]);
        assert!(!is_reached_by_all(&inner.join("none")));
    }

    #[test]
    fn ports_of_ours_are_known_by_their_names() {
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
