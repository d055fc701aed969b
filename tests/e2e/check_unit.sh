#!/bin/sh
# check_unit.sh UNIT RETRYD: systemd's own view of the unit, and the program's part of Type=notify
# (security requirements L1, L2).
set -u
unit=$1
program=$2
limit=15 # exposure in tenths: security requirement L1 asks for 2.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

report() {
    if [ "$2" = 0 ]; then
        printf '%s: 1 passed, 0 failed\n' "$1"
    else
        printf '%s: 0 passed, 1 failed\n' "$1"
        failed=1
    fi
}

# `verify` looks for the programs the unit names: in a root of our own, where retryd is installed.
root=$work/root
mkdir -p "$root/usr/bin" "$root/etc/systemd/system" "$root/usr/lib/systemd/system" "$root/etc/retryd"
cp "$program" "$root/usr/bin/retryd"
cp "$unit" "$root/etc/systemd/system/"
for other in sysinit.target basic.target network-online.target network.target multi-user.target shutdown.target \
    system.slice -.slice -.mount tmp.mount; do
    case "$other" in
    *.mount) printf '[Mount]\nWhat=none\nWhere=/%s\n' "$(printf '%s' "${other%.mount}" | tr -d -)" ;;
    *) printf '[Unit]\n' ;;
    esac >"$root/usr/lib/systemd/system/$other"
done
systemd-analyze verify --man=no --root="$root" "$(basename "$unit")" >"$work/verify" 2>&1
rc=$?
cat "$work/verify"
[ "$rc" = 0 ] && [ ! -s "$work/verify" ]
report verify $?

systemd-analyze security --offline=true --no-pager --threshold=$limit "$unit" >"$work/security" 2>&1
rc=$?
tail -n 1 "$work/security"
[ "$rc" = 0 ] || grep -v '^✓' "$work/security"
report security "$rc"

# READY=1 when it serves, STOPPING=1 when it stops; nothing before it can serve.
/usr/bin/python3 - "$program" "$work" <<'PYTHON'
import os, socket, subprocess, sys
program, work = sys.argv[1:]
path = os.path.join(work, "notify")
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(path)
listener.settimeout(20)
ready = os.path.join(work, "ready")
config = os.path.join(work, "retryd.yaml")
with open(config, "w") as f:
    f.write("listen: 127.0.0.1:0\n")
process = subprocess.Popen([program, "run", "-c", config, "--ready-file", ready],
                           env={"NOTIFY_SOCKET": path, "STATE_DIRECTORY": os.path.join(work, "state"),
                                "PATH": os.environ["PATH"]}, stdout=subprocess.DEVNULL)
try:
    said = listener.recv(4096).decode().splitlines()
    assert "READY=1" in said, said
    with open(ready) as f:
        port = int(f.read().rsplit(":", 1)[1])
    socket.create_connection(("127.0.0.1", port)).close()
    process.terminate()
    said = listener.recv(4096).decode().splitlines()
    assert "STOPPING=1" in said, said
    assert process.wait(20) == 0
finally:
    process.kill()
PYTHON
report notify $?
exit $failed
