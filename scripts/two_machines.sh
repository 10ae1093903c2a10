#!/bin/sh
# Runs Kiln in two network namespaces of this machine, which have nothing but a network between them, as two machines have:
#   sudo scripts/two_machines.sh build/kiln logreg /path/to/big.svm
# Needs iproute2, util-linux and Open MPI. Says what one process says, and ends with its exit code.
set -eu
if [ "${1:-}" = --agent ]; then # what mpirun runs in place of ssh: --agent [options] ADDRESS COMMAND...
    shift
    while [ "${1#-}" != "$1" ]; do shift; done
    name=kiln-${1##*.}
    shift
    exec ip netns exec "$name" unshare -u sh -c "hostname $name; $*"
fi
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0"; exit 2; }
self=$(realpath "$0")
kiln=$(realpath "$1")
shift
network=10.77.0
remove() {
    ip netns del kiln-1 2>/dev/null || true
    ip netns del kiln-2 2>/dev/null || true
}
trap remove EXIT
remove
ip netns add kiln-1
ip netns add kiln-2
ip link add kiln-1 netns kiln-1 type veth peer name kiln-2 netns kiln-2
for i in 1 2; do
    ip -n kiln-$i addr add $network.$i/24 dev kiln-$i
    ip -n kiln-$i link set kiln-$i up
    ip -n kiln-$i link set lo up
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=tcp,self
export OMPI_MCA_oob_tcp_if_include=$network.0/24 OMPI_MCA_btl_tcp_if_include=$network.0/24
printf '#!/bin/sh\nexec %s --agent "$@"\n' "$self" >"${TMPDIR:-/tmp}/kiln-agent.$$"
chmod +x "${TMPDIR:-/tmp}/kiln-agent.$$"
export OMPI_MCA_plm_rsh_agent="${TMPDIR:-/tmp}/kiln-agent.$$"
code=0
ip netns exec kiln-1 unshare -u sh -c 'hostname kiln-1; exec "$@"' sh \
    mpirun -H $network.1:1,$network.2:1 "$kiln" "$@" --mpi || code=$?
rm -f "${TMPDIR:-/tmp}/kiln-agent.$$"
exit $code
