#!/bin/sh
# Machines as they come: minimal roots of Debian's releases, in which README's first command, the Debian packages and the wheel are
# installed, used and removed, as a user would. Needs root, as chroot does; takes minutes.
#   scripts/fresh.sh FOLDER PACKAGES [release...]    FOLDER keeps the roots, outside the repository; PACKAGES has the .deb files
#                                                    that scripts/package.sh made and the wheel; releases: bookworm trixie
# shellcheck disable=SC2016 # what stands in single quotes is for the shell inside
set -eu
cd "$(dirname "$0")/.."
. ./scripts/install.sh

mkdir -p "${1:?a folder for the roots}"
roots=$(cd "$1" && pwd)
packages=$(cd "${2:?the folder of the packages}" && pwd)
shift 2
root=$roots/machine

# A machine has /proc, from which the loader knows where a program lies; it is mounted as long as the command runs.
inside() {
    run_quietly unshare --mount sh -euc 'mount -t proc proc "$1/proc"
        exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PIP_CERT=/etc/certificates-of-host.crt sh -euc "$2"' inside "$root" "$1"
}

# The root as debootstrap left it, with this machine's certificates, and the tree as git has it. Debian's package of certificates,
# which python3-venv needs, writes anew what lies in the usual place.
machine() {
    [ -e "$roots/$1/etc/debian_version" ] || run_quietly debootstrap --variant=minbase "$1" "$roots/$1"
    rm -rf --one-file-system "$root"
    cp -a "$roots/$1" "$root"
    mkdir -p "$root/kiln" "$root/packages"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/certificates-of-host.crt"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    git archive HEAD | tar -x -C "$root/kiln"
}

need_packages debootstrap
[ $# -gt 0 ] || set -- bookworm trixie
for release; do
    say "$release: README's first command"
    machine "$release"
    inside 'cd /kiln && ./quickstart.sh 2>&1 | tee /tmp/said && grep -q "predicted 10,912 rows: R2 0.83787" /tmp/said'
    if [ "$release" = bookworm ]; then # the packages need the libraries of the release that they were built on
        say "$release: the Debian packages, installed, used, removed"
        machine "$release"
        cp "$packages"/*.deb "$root/packages"
        inside 'apt-get update -q
            apt-get install -q -y --no-install-recommends /packages/*.deb gcc libc6-dev pkg-config openmpi-bin
            cd /tmp
            kiln linreg /kiln/data/flights.csv.gz --target arr_delay -o flights.kiln
            kiln evaluate flights.kiln /kiln/data/flights_test.csv.gz >said && grep -q "R2 *0.83787" said
            mpirun --allow-run-as-root --oversubscribe -n 2 kiln linreg /kiln/data/flights.csv.gz --target arr_delay --mpi -o two.kiln
            cc /kiln/examples/00_first.c $(pkg-config --cflags --libs kiln) -o first
            ./first
            python3 -c "import kiln, scipy.sparse as s; print(kiln.pagerank(s.eye(3, k=1).tocsr()).scores)"
            apt-get purge -q -y kiln libkiln0 libkiln-dev python3-kiln kiln-mpi
            ! find /usr -path /usr/share/doc -prune -o -name "*kiln*" -print | grep .'
    fi
    say "$release: the wheel, from pip install to the first fit"
    machine "$release"
    cp "$packages"/kiln_ml-*manylinux*x86_64.whl "$root/packages"
    inside 'apt-get update -q && apt-get install -q -y --no-install-recommends python3-venv'
    begin=$(date +%s)
    inside 'python3 -m venv /tmp/env && /tmp/env/bin/pip install -q "$(echo /packages/*.whl)[sklearn]"
        cd /kiln && /tmp/env/bin/python -c "
import kiln
flights = kiln.read(\"data/flights.csv.gz\", target=\"arr_delay\")
assert kiln.Ridge().fit(flights.X, flights.y).score(flights.X, flights.y) > 0.83"
        /tmp/env/bin/kiln doctor'
    seconds=$(($(date +%s) - begin))
    say "$release: $seconds s"
done
rm -rf --one-file-system "$root"
