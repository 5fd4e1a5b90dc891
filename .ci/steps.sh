# Shared by .ci/run and .ci/full: timed and counted steps, test runs, builds. To be sourced in the top directory.
# CI builds treat warnings as errors; builds by users do not.
# shellcheck shell=bash disable=SC2046
set -u
export DEBIAN_FRONTEND=noninteractive SLUICE_REQUIRE_VM=1 SLUICE_REQUIRE_HTTP=1 PYTHONUNBUFFERED=1
export SLUICE_PATIENCE=3 # multiplies the time limits of tests, which share the processors with a guest and sanitizers
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
MESON_TESTTHREADS=$(($(nproc) * 2)) # most tests wait more than they compute
export MESON_TESTTHREADS
state=''  # the directory made by start_steps
debian='' # the root directory of another Debian in which shell() runs commands; empty: this machine
beside=() # the process groups of parallel steps

# Extracts the commands of the README, so that the CI tests them. For root, sudo may not be installed.
readme() { sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' | sed -n "$1p"; }
packages() { eval "echo $(readme "$1" | sed 's/.*apt-get install -y \([^&]*\)&&.*/\1/')"; } # eval, because the list calls apt-cache
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Steps keep their counts in files, since some run in separate processes: counts ("passed failed skipped"), faults (names of
# failed steps), again (tests to be repeated) and the output of each parallel step.
start_steps() {
    state=$(mktemp -d)
    trap end_steps EXIT
    trap 'exit 1' INT TERM HUP
    touch "$state/counts" "$state/faults" "$state/again"
}

end_steps() { # kills the process groups of parallel steps
    local group
    for group in ${beside+"${beside[@]}"}; do kill -- "-$group" 2>/dev/null; done
    rm -rf "$state"
}

count() { echo "$*" >>"$state/counts"; } # PASSED FAILED SKIPPED

measure_cpu() { # sets `cpu`: CPU seconds of all processes that this shell has waited for
    local file=$state/times-$BASHPID
    times >"$file" # called without a subshell, because a subshell would report only its own times
    cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$file")
}

step() { # NAME COMMAND...: runs, times and counts one step
    local name=$1 begin=$SECONDS cpu used # a step of `tests` counts its tests instead
    measure_cpu
    used=$cpu
    shift
    printf '\n==== %s\n' "$name"
    if "$@" </dev/null; then
        [[ $1 = tests* ]] || count 1 0 0
    else
        [[ $1 = tests* ]] || count 0 1 0
        echo "$name" >>"$state/faults"
    fi
    measure_cpu
    printf '==== %s: %d s, %d s of CPU\n' "$name" $((SECONDS - begin)) $((cpu - used))
}

step_parallel() { # NAME COMMAND...: runs a step in parallel with the following ones, until `join`
    set -m # gives the step its own process group
    (
        set +m
        trap - EXIT
        step "$@"
    ) >"$state/beside-${#beside[@]}" 2>&1 &
    set +m
    beside+=($!)
}

join() { # waits for the parallel steps and prints their output
    local number
    for number in "${!beside[@]}"; do
        wait "${beside[number]}"
        cat "$state/beside-$number"
    done
    beside=()
}

finish() { # the last line is "N passed, N failed, N skipped"
    local totals
    printf '\n%d s in all\n' $SECONDS
    sed 's/^/failed: /' "$state/faults"
    totals=$(awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped", p, f, s }' "$state/counts")
    echo "$totals"
    [[ $totals = *' 0 failed,'* ]] && [ ! -s "$state/faults" ]
}

again() { # COMMAND...: tries up to five times, for errors of package mirrors
    local attempt
    for attempt in 1 2 3 4 5; do
        "$@" && return 0
        sleep $((attempt * 5))
    done
    return 1
}

shell() { # LINE: runs a line of shell in the source directory, here or in $debian, at most until $SECONDS reaches $deadline if set
    local left=$((${deadline-0} - SECONDS))
    if [ -n "$debian" ]; then
        enter "cd /sluice || exit; $1"
    elif [ -n "${deadline-}" ]; then
        timeout --foreground -k 60 $((left > 10 ? left : 10)) bash -c "$1"
    else
        bash -c "$1"
    fi
}

results() { # BUILD LOG: "passed failed skipped" of a run of meson, then a line for each test that failed
    python3 - "${debian:+$debian/sluice/}$1/meson-logs/$2.json" <<'PYTHON'
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

# tests_again repeats alone up to eight tests that failed in a parallel run: a fault of the code makes them fail there, too.
tests_of() { # BUILD LOG LINE: runs a line of shell that ends in meson test of that build, counted by test and not as one step
    local build=$1 log=$2 found status good skip name failing=()
    rm -f "${debian:+$debian/sluice/}$build/meson-logs/$log.json"
    shell "$3"
    status=$?
    found=$(results "$build" "$log") || return 1
    mapfile -t failing < <(tail -n +2 <<<"$found")
    if [ $status = 0 ] || [ -z "${failing[0]-}" ] || [ ${#failing[@]} -gt 8 ] || [ $SECONDS -ge "${deadline-999999}" ]; then
        count $(head -1 <<<"$found") # no test failed: the failure is one of the test runner
        return $status
    fi
    read -r good _ skip <<<"$(head -1 <<<"$found")"
    count "$good" 0 "$skip"
    for name in "${failing[@]}"; do printf '%s\t%s\n' "$build" "$name" >>"$state/again"; done
}

tests() { # BUILD ARGUMENTS...: meson test; its log is named by the arguments, since two may run in one build at once
    local build=$1 log
    shift
    log=run$(tr -cd a-z <<<"$*")
    tests_of "$build" "$log" "meson test -C $build --no-rebuild --print-errorlogs --logbase $log -t 3 $*"
}

tests_again() { # repeats alone the tests that failed in a parallel run
    local build names=() status=0
    mv "$state/again" "$state/now" && touch "$state/again"
    # shellcheck disable=SC2013
    for build in $(cut -f 1 "$state/now" | sort -u); do
        mapfile -t names < <(awk -F '\t' -v build="$build" '$1 == build { print $2 }' "$state/now")
        printf 'repeated alone: %s: %s\n' "$build" "$(printf '"%s" ' "${names[@]}")"
        shell "meson test -C $build --no-rebuild --print-errorlogs --logbase again -t 3 --num-processes 1 $(printf '%q ' "${names[@]}")" ||
            status=1
        count $(results "$build" again | head -1)
    done
    return $status
}

build() { # NAME MESON_ARGUMENTS...: everything (or $targets), in the folder build-NAME; CC and the flags from the environment
    local folder=build-$1 said
    shift
    said=$(meson setup "$folder" -Dwerror=true "$@") || { echo "$said"; return 1; }
    ninja --quiet -C "$folder" ${targets-}
}

build_release() { build release --buildtype=release; }
build_debug() { build debug --buildtype=debug; }
build_lto() { targets=sluice build lto -Db_lto=true; } # only sluice, since each test would also be optimized as a whole
build_clang() { CC=clang build clang; }
build_fuzz() { # SECONDS for each target
    CC=clang targets=fuzz-targets build fuzz -Dfuzz=true -Dfuzz_seconds="$1" -Db_sanitize=address,undefined -Db_lundef=false
}

build_plain() ( # the flags of a Debian package
    eval "$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --export=sh)"
    build plain --buildtype=plain
)

# Installs another Debian release into a directory, with its own Python, compiler and libraries.
make_debian() { # SUITE FOLDER: with a clone of the current commit in its /sluice
    rm -rf "$2" && again as_root debootstrap --variant=minbase --include=ca-certificates "$1" "$2" >"$2.log" 2>&1 ||
        { tail -20 "$2.log"; return 1; }
    printf 'deb http://deb.debian.org/debian %s main\n' "$1" "$1-updates" >"$2/etc/apt/sources.list"
    printf 'deb http://security.debian.org/debian-security %s main\n' "$1-security" >>"$2/etc/apt/sources.list"
    printf 'Acquire::Retries "5";\n' >"$2/etc/apt/apt.conf.d/80-retries"
    # Copies the DNS configuration, CA certificates and pip configuration of this machine.
    cp -L /etc/resolv.conf /etc/hosts "$2/etc/" && cp -L /etc/ssl/certs/ca-certificates.crt "$2/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$2/etc/"
    git clone -q --no-hardlinks . "$2/sluice"
}

enter() { # LINE: runs a line of shell in $debian; its mounts and processes end with it
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
