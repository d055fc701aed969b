#!/bin/sh
# llhttp.sh BUILD_DIR SECONDS: what fuzz_llhttp finds in that time, read a second time by the llhttp inside Node.
#
# The target holds one release of llhttp against our parser, Node another. Inputs are those of run.sh.
set -u
build=$1
seconds=$2
here=$(dirname "$0")
found=$build/corpus/llhttp
log=$build/llhttp_oracle.log
mkdir -p "$found" "$build/artifacts"
fuzz() {
    LLHTTP_RECORDS=1 "$build/tests/fuzz_llhttp" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$build/artifacts/fuzz_llhttp-" -dict="$here/head.dict" \
        "$found" "$here/corpus/llhttp" "$here/corpus/head" 2>"$log"
    echo $? >"$build/llhttp_oracle.rc"
}
rm -f "$build/llhttp_oracle.rc"
fuzz | node "$here/llhttp_oracle.js"
rc=$?
if [ "$rc" = 0 ] && [ "$(cat "$build/llhttp_oracle.rc")" = 0 ]; then
    echo "llhttp_oracle: 1 passed, 0 failed"
else
    tail -n 40 "$log"
    echo "llhttp_oracle: 0 passed, 1 failed (log: $log)"
    exit 1
fi
