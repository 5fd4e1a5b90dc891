#!/bin/bash
# Runs inside the guest, as root: prepares the network and the modules, runs one test file, leaves its exit status
# in OUT/status. usage: guest.sh OUT PYTHON SLUICE TEST_FILE [PYTEST_ARGUMENTS...]
out=$1 python=$2 test=$4
export SLUICE=$3 SLUICE_PATIENCE=10 SLUICE_IN_GUEST=1 PYTHONDONTWRITEBYTECODE=1 OUT=$out
shift 4
uname -r
ip link set lo up
ulimit -n 65536
for module in aesni_intel ghash_clmulni_intel; do modprobe "$module"; done
case $test in
*without_module*) echo /bin/false >/proc/sys/kernel/modprobe ;;
*) modprobe tls || { echo 'no tls module'; echo 1 >"$out/status"; exit 1; } ;;
esac
cd "$(dirname "$test")" || exit 1
"$python" -m pytest -p no:cacheprovider --basetemp=/dev/shm/tests -rA --durations=10 -v "$test" "$@"
echo $? >"$out/status"
dmesg 2>/dev/null | grep -E 'BUG|Oops|WARNING|general protection' && echo 1 >"$out/status"
sync
exit 0
