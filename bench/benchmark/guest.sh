#!/bin/bash
# Runs inside the guest, as root: sets up network, modules and kernel counters, then runs the benchmark. usage: guest.sh COMMAND...
export SLUICE_PATIENCE=10 PYTHONDONTWRITEBYTECODE=1
ip link set lo up
ulimit -n 65536
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
for module in aesni_intel ghash_clmulni_intel; do modprobe "$module"; done
modprobe tls || { echo 'no tls module'; exit 1; }
"$@"
sync
