#!/bin/sh
# run.sh BUILD_DIR SECONDS [TARGET...]: each fuzz target for that long, from its seeds.
#
# New inputs go to BUILD_DIR/corpus/TARGET and are used again by the next run; what crashes, to
# BUILD_DIR/artifacts. A target that ran nothing has failed.
set -u
build=$1
seconds=$2
shift 2
here=$(dirname "$0")
if [ $# -eq 0 ]; then
    for source in "$here"/fuzz_*.c; do
        set -- "$@" "$(basename "$source" .c)"
    done
fi
mkdir -p "$build/artifacts"
failed=0
for target in "$@"; do
    program=$build/tests/$target
    seeds=$here/corpus/${target#fuzz_}
    found=$build/corpus/${target#fuzz_}
    log=$build/$target.log
    mkdir -p "$found"
    dictionary=
    [ ! -f "$here/${target#fuzz_}.dict" ] || dictionary=-dict=$here/${target#fuzz_}.dict
    "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/artifacts/$target-" ${dictionary:+"$dictionary"} "$found" "$seeds" \
        >"$log" 2>&1
    rc=$?
    units=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    if [ "$rc" = 0 ] && [ "${units:-0}" -gt 0 ]; then
        printf '%-16s %10d executions, %s seeds: 1 passed, 0 failed\n' "$target" "$units" \
            "$(find "$seeds" -type f | wc -l)"
    else
        tail -n 40 "$log"
        printf '%-16s %10d executions: 0 passed, 1 failed (log: %s)\n' "$target" "${units:-0}" "$log"
        failed=1
    fi
done
exit $failed
