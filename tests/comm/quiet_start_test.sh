#!/usr/bin/env bash
# A plain mpirun, and the bare program, print nothing of their own on a machine whose addresses do not reach each other.
#   quiet_start_test.sh MPIEXEC PROGRAM ARGS…      exit 77: this machine does not let us make such a network
# The network is a namespace with a loopback and one interface that leads nowhere. With btl=self,sm,tcp, a choice that the
# program must respect, Open MPI complains there: that shows that silence is the program's doing.
set -uo pipefail
mpiexec=$1
shift
for name in $(compgen -e OMPI_MCA_); do unset "$name"; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

network='ip link set lo up && ip link add d0 type veth peer name d1 && ip link set d0 up && ip link set d1 up &&
  ip -6 addr add fd00::9/64 dev d0 nodad'
if ! reason=$(unshare -n sh -c "$network" 2>&1); then
  echo "skipped: no network namespace: $reason"
  exit 77
fi
# run COMMAND…: its exit status; what it says on stderr is in $said
run() {
  said=$(timeout 60 unshare -n sh -c "$network; exec \"\$@\"" sh "$@" 2>&1 >/dev/null)
}
ranks=("$mpiexec" -np 2 --map-by :OVERSUBSCRIBE --bind-to none)

OMPI_MCA_btl=self,sm,tcp run "${ranks[@]}" "$@" || exit 1
if [[ $said != *"Unable to find reachable pairing"* ]]; then
  echo "skipped: Open MPI does not complain in such a network here: \"$said\""
  exit 77
fi
failed=0
for what in ranks single; do
  if [[ $what == ranks ]]; then run "${ranks[@]}" "$@"; else run "$@"; fi
  status=$?
  if ((status != 0)) || [[ -n $said ]]; then
    printf 'FAILED: %s: exit %d, said: %s\n' "$what" "$status" "$said"
    failed=1
  fi
done
((failed == 0)) && echo "quiet"
exit "$failed"
