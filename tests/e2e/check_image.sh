#!/bin/sh
# Builds docker/Dockerfile without any daemon or image registry (buildah, chroot isolation, a base image made
# with mmdebstrap from this machine's apt sources) and looks at what came out. Needs root.
set -u
cd "$(dirname "$0")/../.." || exit 1
base=localhost/retryd-test-base:$$
image=localhost/retryd-test:$$
work=$(mktemp -d)
failed=0

build() {
    buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"
}

# shellcheck disable=SC2317 # called by the trap
finish() {
    build rm --all >/dev/null 2>&1
    build rmi --all --force >/dev/null 2>&1
    rm -rf "$work"
}
trap finish EXIT

report() {
    if [ "$2" = 0 ]; then
        printf '%s: 1 passed, 0 failed\n' "$1"
    else
        printf '%s: 0 passed, 1 failed\n' "$1"
        failed=1
    fi
}

# The machine's own sources and apt settings, so that the base works where the machine does.
make_base() {
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    set --
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
        if [ -s "$file" ]; then set -- "$@" "$file"; fi
    done
    for file in /etc/apt/apt.conf.d/*; do
        # Hooks of the machine's own packages do not concern the base.
        if grep -q '^Acquire' "$file" 2>/dev/null; then set -- "$@" "--aptopt=$file"; fi
    done
    mmdebstrap --quiet --variant=minbase --include=ca-certificates "$suite" "$work/base.tar" "$@" &&
        container=$(build from scratch) &&
        build add --quiet "$container" "$work/base.tar" / >/dev/null &&
        build commit --quiet "$container" "$base" &&
        build rm "$container" >/dev/null &&
        rm -f "$work/base.tar"
}

in_image() {
    build run --isolation chroot "$container" -- "$@"
}

make_base
report base $?
[ "$failed" = 0 ] || exit 1
build bud --isolation chroot --quiet --build-arg "BASE=$base" -f docker/Dockerfile -t "$image" .
report image $?
[ "$failed" = 0 ] || exit 1
container=$(build from --pull=never "$image")

in_image /usr/bin/retryd version
report version $?
in_image /usr/bin/retryd check -c /etc/retryd/retryd.yaml
report check $?
[ "$(in_image id -u)" = 8199 ]
report not-root $?
# What root sees in there; each look prints a word at its end, so that one that could not look has failed.
as_root() {
    build run --isolation chroot --user root "$container" -- sh -c "$1; echo looked"
}
[ "$(as_root 'find / -xdev -perm /6000 -type f')" = looked ]
report no-setuid $?
[ "$(as_root 'ls -d /src /usr/bin/gcc /usr/bin/cmake 2>/dev/null')" = looked ]
report no-compiler $?
[ "$(as_root 'grep -rlE "BEGIN .*PRIVATE KEY" /etc/retryd /var/lib/retryd /usr/bin/retryd')" = looked ]
report no-key $?
# shellcheck disable=SC2016 # for the shell in there
in_image retryd exec -- sh -c 'test -s "$SSL_CERT_FILE"'
report exec $?
exit $failed
