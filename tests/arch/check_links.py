#!/usr/bin/env python3
"""What the program is linked with, and how (security requirements L3, L6).

libevent gives the loop and nothing more: none of its HTTP, DNS, RPC or TLS parts may be used. Every shared
library is on a list. The program is position independent, with its relocations read-only from the start
and no executable stack.
"""
import os
import re
import subprocess

from arch import Check

LIBRARIES = re.compile(r"^(libevent_core-2\.1|libssl|libcrypto|libyaml-0|libcares|libjansson|libexpat|libz|"
                       r"libm|libc|libcrypt|ld-linux[\w-]*|libgcc_s|"
                       r"libasan|libubsan|liblsan|libresolv|librt|libpthread|libdl)\.so")
FOREIGN = re.compile(r"^(evhttp_|evdns_|evrpc_|evtag_|bufferevent_openssl_|bufferevent_ssl_)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    check = Check()
    program = os.path.join(check.build, "retryd")
    if not os.path.exists(program):
        check.bad(program, "is not built")
        check.done(0)
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", program))
    for library in needed:
        if not LIBRARIES.match(library):
            check.bad("retryd", "links %s" % library)
    names = [line.split()[-1].split("@")[0] for line in output("nm", program).splitlines() if line.strip()]
    for name in names:
        if FOREIGN.match(name):
            check.bad("retryd", "uses %s" % name)

    dynamic = output("readelf", "-dW", program)
    segments = output("readelf", "-lW", program)
    if not re.search(r"Type:\s+DYN", output("readelf", "-hW", program)):
        check.bad("retryd", "is not position independent")
    if not re.search(r"FLAGS_1.*\bNOW\b|\(BIND_NOW\)", dynamic):
        check.bad("retryd", "binds late (-z now)")
    if "GNU_RELRO" not in segments:
        check.bad("retryd", "has no read-only relocations (-z relro)")
    if not re.search(r"GNU_STACK\s+\S+\s+\S+\s+\S+\s+\S+\s+\S+\s+RW\s", segments):
        check.bad("retryd", "has an executable stack")
    check.done(len(needed))


main()
