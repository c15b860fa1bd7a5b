#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# test-archive.sh BUILD: what `archive` packs is root's, whoever packs it, and leaves the folders that a guest has as
# they are.
failed=0
check() {
	if [ "$1" = 0 ]; then echo "ok '$2'"; else echo "NOT OK '$2'"; failed=1; fi
}
has() {
	grep -qx "$1" "$dir/names"
	check $? "it has $1"
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(umask 077 && "$(dirname "$0")/archive" "$dir/guest.tar" "$1")
check $? "it is packed"
tar --numeric-owner -tvf "$dir/guest.tar" >"$dir/list"
tar -tf "$dir/guest.tar" >"$dir/names"

has usr/local/lib/libcuda.so.1
has usr/local/lib/libnvidia-ml.so.1
has usr/src/cotenant-0.1.0/dkms.conf
has usr/src/cotenant-0.1.0/device.c
has usr/src/cotenant-0.1.0/transport.h
has etc/modprobe.d/cotenant.conf
! grep -v '^-rw-r--r-- 0/0 ' "$dir/list"
check $? "all are files of root's that everybody can read"

mkdir -p "$dir/guest/usr"
chmod 750 "$dir/guest/usr"
tar -C "$dir/guest" -xf "$dir/guest.tar"
[ "$(stat -c %a "$dir/guest/usr")" = 750 ]
check $? "a folder of the guest's keeps its permissions"
exit $failed
