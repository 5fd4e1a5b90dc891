#!/bin/bash
# Runs inside the guest, as root: all parts of the tests in one boot, in the order in which the script loads kernel modules.
# usage: guest.sh OUT PYTHON SLUICE [PARTS [PYTEST_ARGUMENTS...]]    PARTS: one or more names, such as "proof|http_tls"
# Each part has a separate network namespace (with its /proc/net/tls_stat and buffer sizes) and a separate tmpfs: parts can run
# in parallel. A part writes OUT/PART.log and OUT/PART.status; OUT/status is written last.
out=$1 python=$2 selected="|${4:-module|cipher|limits|proof|peers|sample}|"
# The files of the part "http": those whose responses depend most on the place of the encryption, kernel or user space.
http=$(printf 'http_%s|' static precompressed compress autoindex protocol tls clients logs)
selected=${selected//|http|/|$http}
parallel_max=3
export SLUICE=$3 SLUICE_PATIENCE=10 SLUICE_IN_GUEST=1 PYTHONDONTWRITEBYTECODE=1 OUT=$out
shift $(($# > 4 ? 4 : $#))
cd "$(dirname "$0")" || exit 1

part() { # NAME FILES...: runs pytest with these files, if PARTS contains the name
    local name=$1
    shift
    [[ $selected = *"|$name|"* ]] || return 0
    # shellcheck disable=SC2016
    TMPDIR=/dev/shm unshare --net --mount sh -c 'ip link set lo up && mount -t tmpfs none /dev/shm && exec "$@"' - \
        "$python" -m pytest --basetemp=/dev/shm/tests -v -rA --durations=15 --tb=short "$@" "${pytest_arguments[@]}" \
        >"$out/$name.log" 2>&1 </dev/null
    echo $? >"$out/$name.status"
}

parallel() { # NAME FILES...: runs a part in the background, when fewer than parallel_max run
    while [ "$(jobs -rp | wc -l)" -ge $parallel_max ]; do wait -n; done
    part "$@" &
}

# The root file system is a 9p mount without a cache: each access reads from the emulator again. A second mount of the same files has
# a cache; /usr and the directories in OUT/folders are mounted from it.
cache_files() {
    local folder modules cached=/run/sluice
    modules=$(readlink -f "/lib/modules/$(uname -r)")
    mkdir -p $cached/{files,out,upper,work} && mount --bind "$out" $cached/out &&
        mount -t 9p -o ro,version=9p2000.L,trans=virtio,access=any,msize=524288,cache=loose sluice-files $cached/files || return
    while read -r folder; do mount --bind "$cached/files$folder" "$folder" || return; done <"$out/folders"
    mount -t overlay -o lowerdir=$cached/files/usr,upperdir=$cached/upper,workdir=$cached/work usr /usr &&
        mkdir -p /usr/lib/modules && mount -t tmpfs modules /usr/lib/modules && ln -s "$modules" /usr/lib/modules/ &&
        mount --bind $cached/out "$out" || return
    cd "$PWD" || return
}

pytest_arguments=("$@")
cache_files || exit 1
uname -r
ulimit -n 65536
modprobe=$(cat /proc/sys/kernel/modprobe)
echo /bin/false >/proc/sys/kernel/modprobe # the kernel can no longer load modules on demand
for module in aesni_intel ghash_clmulni_intel gcm ctr; do modprobe -q "$module"; done
part module test_without_module.py

modprobe tls || exit 1
part cipher test_without_cipher.py
part limits test_system_limits.py

echo "$modprobe" >/proc/sys/kernel/modprobe
shopt -s extglob
parallel peers test_{page_cache,hostile,keys,slow}.py
parallel proof test_!(without_*|system_limits|connection_close|page_cache|hostile|keys|slow).py
parallel connections test_connection_close.py
export SLUICE_TRANSPORTS=ktls
parallel sample @sample.txt
for file in ../http/test_!(connection_close).py; do
    name=${file##*/test_}
    parallel "http_${name%.py}" "$file"
done
wait
# virtme-ng-init logs a warning about the missing systemd to the kernel log.
dmesg | grep -v virtme-ng-init | grep -E 'BUG|Oops|WARNING|general protection' || echo 0 >"$out/status"
sync
exit 0
