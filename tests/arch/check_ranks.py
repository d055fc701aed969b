#!/usr/bin/env python3
"""Who may include whom (doc/architecture.md, "Ranks").

Every #include "..." in src/ is written from src/ and points to the file's own room or to one that the table
allows. Each outside library has its rooms as well: libevent is seen by io/net alone, and so on.
"""
import os
import re

from arch import Check, strip_c

CORE = ["core/base", "core/http", "core/retry", "core/aws", "core/tls", "core/exchange", "core/config"]
IO = ["io/obs", "io/shm", "io/tls", "io/net", "io/sources"]

MAY_INCLUDE = {
    "core/base": [],
    "core/http": ["core/base"],
    "core/retry": ["core/base"],
    "core/aws": ["core/base", "core/http", "core/retry"],
    "core/tls": ["core/base"],
    "core/exchange": ["core/base", "core/http", "core/retry"],
    # exchange for the hold limits, which are options
    "core/config": ["core/base", "core/http", "core/retry", "core/aws", "core/exchange"],
    "io/obs": ["core/base"],
    "io/shm": ["core/base", "core/retry", "io/obs"],
    "io/tls": ["core/base", "io/obs"],
    # http for the answer of a parent proxy to CONNECT
    "io/net": ["core/base", "core/http", "io/obs", "io/tls"],
    "io/sources": ["core/base", "core/config"],
    "proxy": CORE + IO,
    "admin": CORE + IO,
    "daemon": CORE + IO + ["proxy", "admin"],
    "cmd": CORE + IO + ["proxy", "admin", "daemon"],
    "cmd/retryctl": ["core/base", "core/http"],
}

# Header (a prefix of what stands between < and >) -> rooms that may see it.
LIBRARIES = {
    "event": ["io/net"],
    "ares": ["io/net"],
    "openssl/": ["io/tls", "io/net", "proxy", "daemon", "cmd"],
    "yaml.h": ["io/sources"],
    "crypt.h": ["proxy"],
    # cmd: the vector files of `retryd simulate`; retryctl: what the daemon answers
    "jansson.h": ["core/aws", "cmd", "cmd/retryctl"],
    "expat.h": ["core/aws"],
    "zlib.h": ["core/aws"],
}

# All that core/ may take from the C library, by header.
CORE_HEADERS = {"arpa/inet.h", "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h",
                "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
                "stdnoreturn.h", "string.h", "time.h", "jansson.h", "expat.h", "zlib.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


def room_of(path):
    """src/core/base/slice.h -> core/base; src/cmd/main/retryd.c -> cmd; None if in no room."""
    parts = path.split("/")
    for depth in (2, 1):
        room = "/".join(parts[:depth])
        if room in MAY_INCLUDE and len(parts) > depth:
            return room
    return None


def main():
    check = Check()
    includes = 0
    for path in check.files("src"):
        inside = os.path.relpath(path, "src")
        room = room_of(inside)
        if room is None:
            check.bad(path, "lies in no room of the table")
            continue
        text = strip_c(check.read(path), keep_strings=True)
        for match in INCLUDE.finditer(text):
            includes += 1
            where = "%s:%d" % (path, text.count("\n", 0, match.start(1) if match[1] else match.start(2)) + 1)
            own, outside = match.groups()
            if own:
                target = room_of(own)
                if not os.path.exists(os.path.join(check.source, "src", own)):
                    check.bad(where, '"%s" is not written from src/' % own)
                elif target != room and target not in MAY_INCLUDE[room]:
                    check.bad(where, '%s may not include %s ("%s")' % (room, target, own))
                continue
            for prefix, rooms in LIBRARIES.items():
                if outside.startswith(prefix) and room not in rooms:
                    check.bad(where, "%s may not see <%s>" % (room, outside))
            if room.startswith("core/") and outside not in CORE_HEADERS:
                check.bad(where, "core/ may not see <%s>" % outside)
    check.done(includes)


main()
