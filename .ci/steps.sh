# Shared by .ci/run and .ci/full: timed and counted steps, test runs, builds. To be sourced in the top directory.
# CI builds treat warnings as errors; other builds do not.
# shellcheck shell=bash disable=SC2046
set -u
export DEBIAN_FRONTEND=noninteractive SLUICE_REQUIRE_VM=1 SLUICE_REQUIRE_HTTP=1 PYTHONUNBUFFERED=1
export SLUICE_PATIENCE=3 # multiplies the time limits of tests, since a guest and sanitizers share the processors with them
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
MESON_TESTTHREADS=$(($(nproc) * 2)) # most tests wait longer than they use a processor
export MESON_TESTTHREADS
state=''  # the directory made by start_steps
debian='' # the root directory of another Debian in which shell() runs commands; empty: this machine
parallel=() # the process groups of parallel steps

# Prints command N of README.md: CI runs the documented commands.
readme_command() { sed -n '/^```sh$/,/^```$/p' README.md | grep -v '^```' | sed -n "$1p"; }
# Prints the packages of command N of README.md; eval, because the list contains a call of apt-cache.
packages() { eval "echo $(readme_command "$1" | sed 's/.*apt-get install -y \([^&]*\)&&.*/\1/')"; }
# Runs a command as root; sudo is not required for root.
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Results are in files, because parallel steps are separate processes: counts ("passed failed skipped"), failed_steps (names),
# failed_tests (to be repeated), and the output of each parallel step.
start_steps() {
    state=$(mktemp -d)
    trap end_steps EXIT
    trap 'exit 1' INT TERM HUP
    touch "$state/counts" "$state/failed_steps" "$state/failed_tests"
}

end_steps() { # kills the process groups of parallel steps
    local group
    for group in ${parallel+"${parallel[@]}"}; do kill -- "-$group" 2>/dev/null; done
    rm -rf "$state"
}

count() { echo "$*" >>"$state/counts"; } # PASSED FAILED SKIPPED

measure_cpu() { # sets `cpu`: CPU seconds of all processes that this shell has waited for
    local file=$state/times-$BASHPID
    times >"$file" # not $(times): a subshell reports only its own times
    cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$file")
}

step() { # NAME COMMAND...: runs, times and counts one step; functions tests* count their tests instead
    local name=$1 begin=$SECONDS cpu used
    measure_cpu
    used=$cpu
    shift
    printf '\n==== %s\n' "$name"
    if "$@" </dev/null; then
        [[ $1 = tests* ]] || count 1 0 0
    else
        [[ $1 = tests* ]] || count 0 1 0
        echo "$name" >>"$state/failed_steps"
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
    ) >"$state/parallel-${#parallel[@]}" 2>&1 &
    set +m
    parallel+=($!)
}

join() { # waits for the parallel steps and prints their output
    local number
    for number in "${!parallel[@]}"; do
        wait "${parallel[number]}"
        cat "$state/parallel-$number"
    done
    parallel=()
}

finish() { # the last line is "N passed, N failed, N skipped"
    local totals
    printf '\n%d s in all\n' $SECONDS
    sed 's/^/failed: /' "$state/failed_steps"
    totals=$(awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped", p, f, s }' "$state/counts")
    echo "$totals"
    [[ $totals = *' 0 failed,'* ]] && [ ! -s "$state/failed_steps" ]
}

retry() { # COMMAND...: at most five times; package mirrors have temporary errors
    local attempt
    for attempt in 1 2 3 4 5; do
        "$@" && return 0
        sleep $((attempt * 5))
    done
    return 1
}

shell() { # LINE: runs a shell command in the source directory, here or in $debian; ends it when $SECONDS reaches $deadline, if set
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

skips() { # BUILD LOG: the tests that did not run, with the reasons that they printed
    python3 - "${debian:+$debian/sluice/}$1/meson-logs/$2.json" <<'PYTHON'
import json
import re
import sys
for line in open(sys.argv[1], encoding='utf-8'):
    test = json.loads(line)
    reasons = re.findall(r'^(?:skipped: |SKIPPED ).*', test.get('stdout', ''), re.M)
    if test['result'] == 'SKIP' and not reasons:
        reasons = ['skipped']
    for reason in dict.fromkeys(reasons):
        print(f'{test["name"].split(" / ", 1)[-1]}: {reason}')
PYTHON
}

# The options of `meson test` for a build: the programs of build-arm64 run in an emulator.
setup_of() { [ "$1" != build-arm64 ] || echo --setup emulated; }

# If at most eight tests failed in a parallel run, tests_repeat_failed repeats them one at a time: a test that fails because of the
# load of the machine passes there, a test that fails because of the code does not.
tests_of() { # BUILD LOG LINE: runs a shell command that ends with `meson test` of that build; counts its tests
    local build=$1 log=$2 found status passed skipped name failed=()
    rm -f "${debian:+$debian/sluice/}$build/meson-logs/$log.json"
    shell "$3"
    status=$?
    found=$(results "$build" "$log") || return 1
    skips "$build" "$log"
    mapfile -t failed < <(tail -n +2 <<<"$found")
    if [ $status = 0 ] || [ -z "${failed[0]-}" ] || [ ${#failed[@]} -gt 8 ] || [ $SECONDS -ge "${deadline-999999}" ]; then
        count $(head -1 <<<"$found") # without a failed test, the test runner failed
        return $status
    fi
    read -r passed _ skipped <<<"$(head -1 <<<"$found")"
    count "$passed" 0 "$skipped"
    for name in "${failed[@]}"; do printf '%s\t%s\n' "$build" "$name" >>"$state/failed_tests"; done
}

tests() { # BUILD ARGUMENTS...: meson test. The arguments name the log, since two runs may use one build at the same time.
    local build=$1 log
    shift
    log=run$(tr -cd a-z <<<"$*")
    tests_of "$build" "$log" "meson test -C $build --no-rebuild --print-errorlogs --logbase $log -t 3 $*"
}

tests_repeat_failed() { # one at a time
    local build names=() status=0
    mv "$state/failed_tests" "$state/repeated_tests" && touch "$state/failed_tests"
    # shellcheck disable=SC2013
    for build in $(cut -f 1 "$state/repeated_tests" | sort -u); do
        mapfile -t names < <(awk -F '\t' -v build="$build" '$1 == build { print $2 }' "$state/repeated_tests")
        printf 'repeated one at a time: %s: %s\n' "$build" "$(printf '"%s" ' "${names[@]}")"
        shell "meson test -C $build --no-rebuild --print-errorlogs --logbase repeated $(setup_of "$build") -t 3 --num-processes 1 $(printf '%q ' "${names[@]}")" ||
            status=1
        count $(results "$build" repeated | head -1)
    done
    return $status
}

build() { # NAME MESON_ARGUMENTS...: builds all targets (or $targets) in build-NAME, with CC and flags of the environment
    local folder=build-$1 output
    shift
    output=$(meson setup "$folder" -Dwerror=true "$@") || { echo "$output"; return 1; }
    ninja --quiet -C "$folder" ${targets-}
}

build_release() { build release --buildtype=release; }
build_debug() { build debug --buildtype=debug; }
build_lto() { targets=sluice build lto -Db_lto=true; } # without tests: each executable takes long to link
build_clang() { CC=clang build clang; }
build_fuzz() { # SECONDS for each target
    CC=clang targets=fuzz-targets build fuzz -Dfuzz=true -Dfuzz_seconds="$1" -Db_sanitize=address,undefined -Db_lundef=false
}

build_small() { # sluice must build without its optional features
    build small --buildtype=debug -Dio_uring=disabled -Dktls=disabled -Dipsec_mb=disabled -Dotlp_gzip=disabled -Dseccomp=disabled -Dimport=disabled -Dtop=disabled -Dmodules=static
}

# -O1 and -g1 take half the time of the defaults, and reports still name lines; at -O1 gcc warns falsely of truncations.
build_sanitized() {
    build sanitize -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dc_args='-g1 -Wno-format-truncation' &&
        retry python3 tests/packages.py build -- path && mkdir -p build/go && ln -sfn ../build/venv ../build/go build-sanitize
}

build_plain() ( # the flags of a Debian package
    eval "$(DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --export=sh)"
    build plain --buildtype=plain
)

# Installs another Debian release into a directory, with its own Python, compiler and libraries.
make_debian() { # SUITE FOLDER: its /sluice is a clone of the current commit
    rm -rf "$2" && retry as_root debootstrap --variant=minbase --include=ca-certificates "$1" "$2" >"$2.log" 2>&1 ||
        { tail -20 "$2.log"; return 1; }
    printf 'deb http://deb.debian.org/debian %s main\n' "$1" "$1-updates" >"$2/etc/apt/sources.list"
    printf 'deb http://security.debian.org/debian-security %s main\n' "$1-security" >>"$2/etc/apt/sources.list"
    printf 'Acquire::Retries "5";\n' >"$2/etc/apt/apt.conf.d/80-retries"
    # Copies the DNS configuration, CA certificates and pip configuration of this machine.
    cp -L /etc/resolv.conf /etc/hosts "$2/etc/" && cp -L /etc/ssl/certs/ca-certificates.crt "$2/etc/ssl/certs/"
    [ ! -e /etc/pip.conf ] || cp -L /etc/pip.conf "$2/etc/"
    git clone -q --no-hardlinks . "$2/sluice"
}

enter() { # LINE: runs a shell command in $debian, in new mount and process namespaces that end with it
    local name environment=()
    for name in http_proxy https_proxy no_proxy PIP_INDEX_URL ${!SLUICE_@} ${!MESON_@} ASAN_OPTIONS UBSAN_OPTIONS; do
        [ -z "${!name-}" ] || environment+=("$name=${!name}")
    done
    # shellcheck disable=SC2016
    as_root unshare --mount --pid --fork --kill-child env -i "${environment[@]}" HOME=/root \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec '
            mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys"
            exec chroot "$0" /bin/bash -c "$1"' "$debian" "$1"
}
