//! Parses `/proc/PID/mountinfo`: the mounts of a process. Reads no files. Source: `proc(5)`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use runtap_model::order;

/// A mount, as seen by a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// The `major:minor` device number of the file system.
    device: Vec<u8>,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    /// The mount point.
    point: PathBuf,
}

/// Parses a `mountinfo` file, in its order. Malformed lines are skipped.
pub(super) fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|b| *b == b'\n').filter_map(parse_line).collect()
}

/// Parses `36 35 98:0 /part /where rw,noatime master:1 - ext3 /dev/root rw`.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|b| *b == b' ').skip(2);
    let device = fields.next()?.to_owned();
    let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
    Some(Mount { device, root, point })
}

/// Decodes spaces, tabs, line breaks and backslashes, which are escaped as `\040` and the like.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *first == b'\\').and_then(|code| str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            bytes.push(byte);
            rest = after.get(3..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns the paths where `directory`, a path in the mounts `own` without symbolic links, may be visible in the mounts `target`,
/// likeliest first. The caller must check the paths: another mount may hide a path, and overlaid file systems have one device.
pub(super) fn visible_paths(own: &[Mount], target: &[Mount], directory: &Path) -> Vec<PathBuf> {
    // Of two mounts at one path, the later one is visible.
    let mount = own
        .iter()
        .filter(|mount| directory.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count());
    let Some(mount) = mount else { return Vec::new() };
    let Ok(below) = directory.strip_prefix(&mount.point) else { return Vec::new() };
    let inside = mount.root.join(below);
    let same_device = target.iter().rev().filter(|other| other.device == mount.device);
    let mut found: Vec<PathBuf> = same_device
        .filter_map(|other| Some(join(&other.point, inside.strip_prefix(&other.root).ok()?)))
        .collect();
    // Prefer a path that is equal on both sides.
    order::sort_by_key(&mut found, |path| path != directory);
    found
}

/// Joins two paths without a trailing slash.
fn join(base: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { base.to_owned() } else { base.join(below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &[u8] = b"21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
        22 21 0:5 / /tmp rw - tmpfs tmpfs rw\n\
        30 21 8:2 / /srv/a\\040b rw - ext4 /dev/sda2 rw\n";

    fn paths_in(theirs: &[u8], folder: &str) -> Vec<PathBuf> {
        visible_paths(&parse(OURS), &parse(theirs), Path::new(folder))
    }

    #[test]
    fn escapes_and_broken_lines() {
        let mounts = parse(b"1 2 0:3 /a\\134b /x\\040y\\011z\\9 rw - t s rw\nbroken\n\n1 2 0:3 /only\n");
        let expected = Mount { device: b"0:3".to_vec(), root: "/a\\b".into(), point: "/x y\tz\\9".into() };
        assert_eq!(mounts, [expected]);
    }

    #[test]
    fn a_volume_is_found_where_it_is_mounted() {
        // A directory of the root file system, and the whole of another disk.
        let theirs = b"90 80 0:44 / / rw - overlay overlay rw\n\
            91 90 8:1 /var/dumps /out rw - ext4 /dev/sda1 rw\n\
            92 90 8:2 / /disk rw - ext4 /dev/sda2 rw\n";
        assert_eq!(paths_in(theirs, "/var/dumps/today"), [Path::new("/out/today")]);
        assert_eq!(paths_in(theirs, "/var/dumps"), [Path::new("/out")]);
        assert_eq!(paths_in(theirs, "/var/dumps2"), [] as [&Path; 0]);
        assert_eq!(paths_in(theirs, "/srv/a b/c"), [Path::new("/disk/c")]);
        assert_eq!(paths_in(theirs, "/tmp/x"), [] as [&Path; 0], "another tmpfs");
    }

    #[test]
    fn an_equal_path_comes_first_then_the_latest_mount() {
        let theirs = b"21 1 8:1 / / rw - ext4 d rw\n\
            22 21 8:1 /var /mnt/var rw - ext4 d rw\n\
            23 21 8:1 /var/x /mnt/x rw - ext4 d rw\n";
        let expected = ["/var/x/y", "/mnt/x/y", "/mnt/var/x/y"];
        assert_eq!(paths_in(theirs, "/var/x/y"), expected.map(Path::new));
    }
}
