# What .ci/run and .ci/full share: steps that are timed and counted, test runs, builds. To be sourced in the top folder.
# Builds of the CI treat warnings as errors; those of users do not.
# shellcheck shell=bash disable=SC2046
set -u
export DEBIAN_FRONTEND=noninteractive SLUICE_REQUIRE_VM=1 SLUICE_REQUIRE_HTTP=1 PYTHONUNBUFFERED=1
export SLUICE_PATIENCE=3 # what must come may take its time beside a guest, and under sanitizers
MESON_TESTTHREADS=$(($(nproc) + 1)) # most tests wait more than they work
export MESON_TESTTHREADS
passed=0 failed=0 skipped=0 faults=() start=$SECONDS
debian='' # the root folder of another Debian in which shell() runs commands; empty: this machine

# The README's commands, so that they are what is tested. As root there may be no sudo.
readme() { sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' | sed -n "$1p"; }
packages() { readme "$1" | sed 's/.*apt-get install -y \([^&]*\)&&.*/\1/'; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

step() { # NAME COMMAND...: runs, times and counts one step
    local name=$1 begin=$SECONDS # a step of `tests` counts its tests instead
    shift
    printf '\n==== %s\n' "$name"
    if "$@" </dev/null; then
        [[ $1 = tests* ]] || passed=$((passed + 1))
    else
        [[ $1 = tests* ]] || failed=$((failed + 1))
        faults+=("$name")
    fi
    printf '==== %s: %d s\n' "$name" $((SECONDS - begin))
}

finish() { # the last line is "N passed, N failed, N skipped"
    printf '\n%d s in all\n' $((SECONDS - start))
    for fault in ${faults+"${faults[@]}"}; do echo "failed: $fault"; done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ] && [ ${#faults[@]} = 0 ]
}

again() { # COMMAND...: up to five times, for mirrors that stumble
    local attempt
    for attempt in 1 2 3 4 5; do
        "$@" && return 0
        sleep $((attempt * 5))
    done
    return 1
}

shell() { # LINE: runs a line of shell in the source folder, here or in $debian
    if [ -n "$debian" ]; then
        enter "cd /sluice || exit; $1"
    else
        bash -c "$1"
    fi
}

results() { # BUILD: "passed failed skipped" of meson's last run, then a line for each test that failed
    python3 - "${debian:+$debian/sluice/}$1/meson-logs/testlog.json" <<'PYTHON'
import json
import sys
found, failed = {}, []
for line in open(sys.argv[1], encoding='utf-8'):
    test = json.loads(line)
    found[test['result']] = found.get(test['result'], 0) + 1
    if test['result'] not in ('OK', 'EXPECTEDFAIL', 'SKIP'):
        failed.append(test['name'].split(' / ', 1)[-1])
print(found.get('OK', 0) + found.get('EXPECTEDFAIL', 0), len(failed), found.get('SKIP', 0))
print(*failed, sep='\n')
PYTHON
}

count() { passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); }

# A few tests that fail in the crowd are asked once more, alone, and named: what is broken fails again, and what
# only a busy machine disturbs is seen as that.
tests_of() { # BUILD LINE: runs a line of shell that ends in meson test of that build, counted by test and not as one step
    local build=$1 first good skip status failing=()
    rm -f "${debian:+$debian/sluice/}$build/meson-logs/testlog.json"
    shell "$2" && { count $(results "$build" | sed -n 1p); return 0; }
    first=$(results "$build") || return 1
    mapfile -t failing < <(tail -n +2 <<<"$first")
    if [ ${#failing[@]} = 0 ] || [ ${#failing[@]} -gt 8 ]; then # none: the runner itself failed
        count $(head -1 <<<"$first")
        return 1
    fi
    read -r good _ skip <<<"$(head -1 <<<"$first")"
    count "$good" 0 "$skip"
    echo "asked once more, alone: ${failing[*]}"
    shell "meson test -C $build --no-rebuild --print-errorlogs --num-processes 1 -t 3 ${failing[*]@Q}" # names may have blanks
    status=$?
    count $(results "$build" | sed -n 1p)
    return $status
}

tests() { # BUILD ARGUMENTS...: meson test
    local build=$1
    shift
    tests_of "$build" "meson test -C $build --no-rebuild --print-errorlogs $*"
}

build() { # NAME MESON_ARGUMENTS...: everything (or $targets), in the folder build-NAME; CC and the flags from the environment
    local folder=build-$1 said
    shift
    said=$(meson setup "$folder" -Dwerror=true "$@") || { echo "$said"; return 1; }
    ninja -C "$folder" ${targets-}
}

build_release() { build release --buildtype=release; }
build_debug() { build debug --buildtype=debug; }
build_lto() { targets=sluice build lto -Db_lto=true; } # each test would be optimised as a whole, too
build_clang() { CC=clang build clang; }

build_plain() ( # the flags of a Debian package
    eval "$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --export=sh)"
    build plain --buildtype=plain
)

# Another Debian, in a folder: as it is after its installation, with its own Python, compiler and libraries.
make_debian() { # SUITE FOLDER: and a clone of what is committed here, in its /sluice
    rm -rf "$2" && again as_root debootstrap --variant=minbase --include=ca-certificates "$1" "$2" >"$2.log" 2>&1 ||
        { tail -20 "$2.log"; return 1; }
    printf 'deb http://deb.debian.org/debian %s main\n' "$1" "$1-updates" >"$2/etc/apt/sources.list"
    printf 'deb http://security.debian.org/debian-security %s main\n' "$1-security" >>"$2/etc/apt/sources.list"
    printf 'Acquire::Retries "5";\n' >"$2/etc/apt/apt.conf.d/80-retries"
    # What this machine needs to reach its network.
    cp -L /etc/resolv.conf /etc/hosts "$2/etc/" && cp -L /etc/ssl/certs/ca-certificates.crt "$2/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$2/etc/"
    git clone -q --no-hardlinks . "$2/sluice"
}

enter() { # LINE: runs a line of shell in $debian; its mounts and its processes end with it
    local name kept=()
    for name in http_proxy https_proxy no_proxy PIP_INDEX_URL ${!SLUICE_@} ${!MESON_@}; do
        [ -z "${!name-}" ] || kept+=("$name=${!name}")
    done
    # shellcheck disable=SC2016
    as_root unshare --mount --pid --fork --kill-child env -i "${kept[@]}" HOME=/root \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec '
            mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys"
            exec chroot "$0" /bin/bash -c "$1"' "$debian" "$1"
}
