#!/bin/sh
# Brings the programs that the tests compare benchpin with: Debian packages, where this user may install them (root and apt), and
# says what is missing where not. Tests whose peer is missing fail when CI is set and are skipped, saying so, elsewhere.
set -u

packages="python3-numpy b3sum git qemu-user-static openssl zstd jq python3-yaml python3-h5py hdf5-tools python3-pil python3-pandas bzip2 xz-utils libhdf5-dev pkg-config docker-registry npm mpich libmpich-dev openmpi-bin libopenmpi-dev iproute2"
[ "${BENCHPIN_LONG:-}" = 1 ] && packages="$packages python3-torch chromium"

# duckdb brings DuckDB from the npm registry; its version is pinned because the tests read its answers.
duckdb() {
	[ "${BENCHPIN_LONG:-}" = 1 ] || return 0
	[ -d build/peers/node_modules/@duckdb/node-api ] && return 0
	command -v npm >/dev/null || return 0
	mkdir -p build/peers
	npm install --silent --no-audit --no-fund --prefix build/peers @duckdb/node-api@1.4.4-r.1 >&2 ||
		echo "deps: npm could not install DuckDB; the tests that ask it will say so" >&2
}

# linkeddata brings what reads exported documents: a JSON-LD processor and the validator of RO-Crates, a few seconds' worth.
linkeddata() {
	[ -d build/peers/node_modules/jsonld ] && [ -d build/peers/node_modules/ro-crate ] && return 0
	command -v npm >/dev/null || return 0
	mkdir -p build/peers
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix build/peers jsonld@9.0.0 ro-crate@3.7.2 >&2 ||
		echo "deps: npm could not install jsonld and ro-crate; the tests that ask them will say so" >&2
}

# versitygw builds the Versity S3 gateway, a server that checks signatures; it takes minutes, so only the slow suite asks it.
versitygw() {
	[ "${BENCHPIN_LONG:-}" = 1 ] || return 0
	[ -x build/peers/bin/versitygw ] && return 0
	mkdir -p build/peers/bin
	echo "deps: building the Versity S3 gateway" >&2
	GOBIN="$PWD/build/peers/bin" GOFLAGS= go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 ||
		echo "deps: versitygw cannot be built; the tests that ask it will say so" >&2
}

# registries builds the programs that archives are tried with: distribution v3 (the command is called registry) and oras, some two minutes on two
# cores where no module was built before, and for the slow suite cosign, which takes tens of minutes.
registries() {
	modules="registry=github.com/distribution/distribution/v3/cmd/registry@v3.1.2 oras=oras.land/oras/cmd/oras@v1.3.6"
	[ "${BENCHPIN_LONG:-}" = 1 ] && modules="$modules cosign=github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3"
	for module in $modules; do
		[ -x "build/peers/bin/${module%%=*}" ] && continue
		mkdir -p build/peers/bin
		echo "deps: building ${module#*=}" >&2
		GOBIN="$PWD/build/peers/bin" GOFLAGS= go install "${module#*=}" ||
			echo "deps: ${module#*=} cannot be built; the tests that ask it will say so" >&2
	done
}

# A package counts as there when the file that the tests use is there, however it was installed.
present() {
	case $1 in
	python3-numpy) /usr/bin/python3 -c 'import numpy' 2>/dev/null || python3 -c 'import numpy' 2>/dev/null ;;
	python3-torch) /usr/bin/python3 -c 'import torch' 2>/dev/null ;;
	b3sum | git | jq | openssl | zstd | docker-registry) command -v "$1" >/dev/null ;;
	qemu-user-static) command -v qemu-aarch64-static >/dev/null ;;
	python3-h5py) /usr/bin/python3 -c 'import h5py' 2>/dev/null ;;
	python3-pil) /usr/bin/python3 -c 'import PIL' 2>/dev/null ;;
	python3-pandas) /usr/bin/python3 -c 'import pandas' 2>/dev/null ;;
	bzip2) command -v bzip2 >/dev/null ;;
	xz-utils) command -v xz >/dev/null ;;
	hdf5-tools) command -v h5dump >/dev/null ;;
	libhdf5-dev) pkg-config --exists hdf5 2>/dev/null ;;
	pkg-config) command -v pkg-config >/dev/null ;;
	mpich) command -v mpirun.mpich >/dev/null ;;
	libmpich-dev) pkg-config --exists mpich 2>/dev/null ;;
	openmpi-bin) command -v mpirun.openmpi >/dev/null ;;
	libopenmpi-dev) pkg-config --exists ompi-c 2>/dev/null ;;
	iproute2) command -v ip >/dev/null ;;
	npm) command -v npm >/dev/null ;;
	chromium) command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ;;
	python3-yaml) /usr/bin/python3 -c "import yaml" 2>/dev/null || python3 -c "import yaml" 2>/dev/null ;;
	esac
}

missing=""
for p in $packages; do
	present "$p" || missing="$missing $p"
done
[ -z "$missing" ] && { duckdb; linkeddata; versitygw; registries; exit 0; }

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "deps: installing$missing" >&2
	apt-get update -qq >&2
	# shellcheck disable=SC2086 # the list is split on purpose
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null || {
		echo "deps: apt-get could not install$missing" >&2
		exit 1
	}
	duckdb
	linkeddata
	versitygw
	registries
	exit 0
fi
echo "deps: missing:$missing" >&2
echo "deps: install them (Debian, Ubuntu: sudo apt-get install$missing); without them the tests that compare with these programs are skipped" >&2
exit 0
