# Runs a fuzz target in a root of its own, and fails if it changes anything there but below the directories that it is given.
# Called as: unshare --mount [--user --map-root-user] sh confined.sh MOUNT_POINT CHECKOUT WRITABLE... -- PROGRAM...
# Only MOUNT_POINT has to exist outside of the namespace: what is mounted there vanishes with it.
set -eu
root=$1 checkout=$2
shift 2

mount --make-rprivate /
mount -t tmpfs -o mode=755 confined "$root"

# Read-only where the kernel permits that: without privileges, files of the system belong to somebody else anyway.
show() {
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1" 2>/dev/null || :
}
for entry in /bin /lib /lib32 /lib64 /libx32 /sbin; do
    if [ -L "$entry" ]; then cp -P "$entry" "$root$entry"; elif [ -d "$entry" ]; then show "$entry"; fi
done
for entry in /etc /proc /usr; do show "$entry"; done
mkdir -m 1777 "$root/tmp"
mkdir "$root/dev"
for device in null urandom zero; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -p "$root$checkout"
for entry in fuzz target/fuzz; do show "$checkout/$entry"; done
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    shift
done
shift

# Under the names that the targets use: a write that follows a link out of its directory meets one of them.
beyond_the_system() { [ "$(stat -c %d "$root$1")" = "$(stat -c %d "$root")" ]; }
for place in / /tmp "$(dirname "$checkout")" "$checkout"; do
    beyond_the_system "$place" || continue
    for name in a b x outside secret createdump dotnet-diagnostic-1-900-socket hsperfdata_x/1; do
        mkdir -p "$(dirname "$root$place/$name")"
        echo planted >"$root$place/$name"
    done
done

# Directories change their times with every temporary directory in them; files do not.
listing() {
    find "$root" -xdev -type d -printf '%P %y %m\n' -o -printf '%P %y %m %s %T@ %l\n' | LC_ALL=C sort
}
before=$(listing)
status=0
# shellcheck disable=SC2016
chroot "$root" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$checkout" "$@" || status=$?
# One that crashed leaves its temporary directory.
[ "$status" = 0 ] || exit "$status"
after=$(listing)
if [ "$before" != "$after" ]; then
    echo "files outside of its directories were changed (before, after):"
    printf '%s\n' "$before" >"$root/before"
    printf '%s\n' "$after" >"$root/after"
    diff "$root/before" "$root/after" || :
    exit 99
fi
