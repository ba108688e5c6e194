#!/usr/bin/env bash
# Sets the project up: packages, build, demo, tests. Every verb does the earlier steps itself and skips what is done.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
readonly root

usage() {
  cat <<'TEXT'
usage: ./setup.sh VERB [options]

  deps              install what is missing (Debian 13, and Debian 12 with packages of Debian 13; elsewhere: a list)
  deps-ci           the same and what only .ci/run needs: clang, clang-format, libFuzzer's runtime
  build             deps, then the preset `release` into build/release
  demo [options]    build, then write, convert and train on synthetic clicks with 4 MPI ranks
      --dir DIR       where the data and the run go (default: demo, under the current directory)
      --fresh         start over; otherwise steps whose output is there are skipped
  test [options]    build, then ctest; options are passed on to ctest, for instance: test -L unit
  help              this text

environment:
  SETUP_CMAKE_ARGS  more arguments for `cmake --preset release`, separated by blanks
  SETUP_JOBS        compile jobs (default: one per core, at most one per 2 GB of free memory)
  CMAKE_PREFIX_PATH where CMake looks for libraries that apt did not install
TEXT
}

say() { printf 'setup: %s\n' "$*"; }
fail() { # fail CODE MESSAGE…
  local code=$1
  shift
  printf 'setup: %s\n' "$@" >&2
  exit "$code"
}

# timed NAME COMMAND…: runs the command and prints what it took. Not in a condition, so that `set -e` stays in force.
timed() {
  local name=$1 start=$SECONDS
  shift
  "$@"
  say "$name: done in $((SECONDS - start)) s"
}

# ------------------------------------------------------------------------------------------------------- packages

# A tool counts as present when it is on PATH, wherever it came from: "package command".
readonly tools=("g++ g++" "cmake cmake" "ninja-build ninja" "pkg-config pkg-config" "git git" "python3 python3")
readonly libraries=(openmpi-bin libopenmpi-dev libucx-dev libtorch-dev libopenblas0-pthread libhdf5-dev libcli11-dev
  libgtest-dev libgmock-dev libyaml-cpp-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libxxhash-dev libbenchmark-dev
  zlib1g-dev libisal-dev ca-certificates)
# Older ones (Debian 12's own) do not do: Open MPI 4 has no ULFM, LibTorch 1.13 lacks types that the codecs use.
readonly -A least_version=([openmpi-bin]=5 [libopenmpi-dev]=5 [libtorch-dev]=2.1 [libhdf5-dev]=1.14)

readonly apt_source=/etc/apt/sources.list.d/hyperframes-trixie.sources
readonly apt_preferences=/etc/apt/preferences.d/hyperframes-trixie
readonly keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# missing_packages PACKAGE…: those that are not installed, or too old; one a line.
missing_packages() {
  local -A installed=()
  local package status version
  while IFS=$'\t' read -r package status version; do
    [[ $status == installed ]] && installed[$package]=$version
  done < <(dpkg-query -W -f '${Package}\t${db:Status-Status}\t${Version}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    version=${installed[$package]:-}
    if [[ -z $version ]]; then
      echo "$package"
    elif [[ -n ${least_version[$package]:-} ]] &&
      ! dpkg --compare-versions "${version#*:}" ge "${least_version[$package]}"; then
      echo "$package"
    fi
  done
}

missing_tools() {
  local tool
  for tool in "${tools[@]}"; do
    command -v "${tool#* }" >/dev/null || echo "${tool% *}"
  done
}

as_root() {
  if ((EUID == 0)); then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

can_be_root() { ((EUID == 0)) || command -v sudo >/dev/null; }

# apt_quietly ARGUMENT…: apt-get with its many lines in a log, which is shown when it fails.
apt_quietly() {
  local log
  log=$(mktemp "${TMPDIR:-/tmp}/hyperframes-apt.XXXXXX")
  if ! as_root apt-get -q -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    say "apt-get $1 failed; everything it said is in $log" >&2
    return 1
  fi
  rm -f "$log"
}

# site_of RELEASE: the address of the main component of that release among apt's sources; nothing when there is none.
site_of() {
  # shellcheck disable=SC2016  # the dollars are apt-get's
  apt-get indextargets --format '$(SITE)|$(CODENAME)|$(RELEASE)|$(COMPONENT)' |
    awk -F'|' -v release="$1" '($2 == release || $3 == release) && $4 == "main" && site == "" { site = $1 }
                               END { print site }'
}

# On Debian 12: Debian 13 from the mirror that this machine already uses, at a priority that upgrades nothing by itself.
add_trixie() {
  [[ -z $(site_of trixie) ]] || return 0
  local site=$1
  [[ -f $keyring ]] || fail 2 "$keyring is missing: install debian-archive-keyring"
  say "adding Debian 13 from $site with priority 100 ($apt_source)"
  printf '%s\n' "Types: deb" "URIs: $site" "Suites: trixie" "Components: main" "Signed-By: $keyring" |
    as_root tee "$apt_source" >/dev/null
  printf '%s\n' "Package: *" "Pin: release n=trixie" "Pin-Priority: 100" | as_root tee "$apt_preferences" >/dev/null
  apt_quietly update
}

# True when what apt would install by itself is new enough for the packages given.
apt_offers() {
  local package candidate
  for package in "$@"; do
    candidate=$(apt-cache policy "$package" | sed -n 's/^  Candidate: //p')
    [[ -n $candidate && $candidate != "(none)" ]] || return 1
    [[ -z ${least_version[$package]:-} ]] ||
      dpkg --compare-versions "${candidate#*:}" ge "${least_version[$package]}" || return 1
  done
}

# apt_install PACKAGE…: from the machine's own release where it is new enough, on Debian 12 from Debian 13.
apt_install() {
  local packages=("$@") from=() bookworm
  say "to install: ${packages[*]}"
  apt_quietly update || say "going on with the package lists that are there" >&2
  # The release is read off apt's sources and not off /etc/os-release, which packages of Debian 13 bring along.
  bookworm=$(site_of bookworm)
  if [[ -n $bookworm ]]; then
    add_trixie "$bookworm"
    from=(-t trixie)
    # Debian 13's libc6 pushes Debian 12's gdb out, so a gdb that is there is replaced in the same step.
    if dpkg-query -W -f '${db:Status-Status}' gdb 2>/dev/null | grep -qx installed; then
      packages+=(gdb)
    fi
  elif ! apt_offers "${packages[@]}"; then
    return 1
  fi
  apt_quietly install -y --no-install-recommends -o Dpkg::Options::=--force-confold "${from[@]}" "${packages[@]}"
}

# Asks CMake itself what it finds, so that modules, Spack and CMAKE_PREFIX_PATH count. Prints what it does not find.
probe_libraries() {
  local dir
  dir=$(mktemp -d "${TMPDIR:-/tmp}/hyperframes-probe.XXXXXX")
  cat >"$dir/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.23)
project(probe LANGUAGES C CXX)
function(report found text)
  if(NOT found)
    file(APPEND ${CMAKE_BINARY_DIR}/missing "${text}\n")
  endif()
endfunction()
find_package(MPI QUIET COMPONENTS CXX)
report("${MPI_CXX_FOUND}" "an MPI library with mpicxx (Open MPI 5 or newer)")
find_package(HDF5 QUIET COMPONENTS C)
report("${HDF5_FOUND}" "HDF5 1.14 or newer (C library; set HDF5_ROOT)")
find_package(Torch QUIET)
report("${Torch_FOUND}" "LibTorch 2.1 or newer (TorchConfig.cmake)")
find_package(ZLIB QUIET)
report("${ZLIB_FOUND}" "zlib")
foreach(package yaml-cpp fmt spdlog nlohmann_json CLI11 benchmark)
  find_package(${package} QUIET)
  report("${${package}_FOUND}" "${package} (${package}Config.cmake)")
endforeach()
find_package(GTest QUIET)
report("${GTest_FOUND}" "GoogleTest with GoogleMock")
find_package(PkgConfig QUIET)
report("${PKG_CONFIG_FOUND}" "pkg-config")
if(PKG_CONFIG_FOUND)
  foreach(module libxxhash libisal)
    pkg_check_modules(${module} QUIET ${module})
    report("${${module}_FOUND}" "${module} (${module}.pc)")
  endforeach()
endif()
TEXT
  if ! cmake -S "$dir" -B "$dir/build" -G Ninja >"$dir/log" 2>&1 </dev/null; then
    echo "a C and C++ compiler that CMake can use: $(grep -m 1 -A 3 'CMake Error' "$dir/log" | tr -s '\n ' ' ')"
  fi
  [[ ! -f $dir/build/missing ]] || cat "$dir/build/missing"
  rm -rf "$dir"
}

# No apt, or not one that helps: what is there may still do. Prints a list and ends with 2 when something is missing.
check_without_apt() {
  local why=$1 missing=() line
  while IFS= read -r line; do missing+=("$line"); done < <(missing_tools)
  command -v mpirun >/dev/null || missing+=("mpirun (Open MPI 5 or newer)")
  if ((${#missing[@]} == 0)); then
    while IFS= read -r line; do missing+=("$line"); done < <(probe_libraries)
  elif ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
    missing+=("then the libraries, which only CMake can look for: run this again")
  fi
  if ((${#missing[@]} == 0)); then
    say "$why, but CMake finds everything"
    return 0
  fi
  {
    say "$why, and this is missing:"
    printf '  - %s\n' "${missing[@]}"
    cat <<'TEXT'
Install these with your package manager, load them as modules, or make them with Spack (spack.yaml):
  spack env activate . && spack install
Where CMake does not find a library by itself, give the folders it was installed to:
  export CMAKE_PREFIX_PATH=/path/to/libtorch:/path/to/hdf5:…
A LibTorch out of a PyTorch wheel:
  export CMAKE_PREFIX_PATH=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
On Debian 13 the packages are:
TEXT
    printf '%s ' "${tools[@]% *}" "${libraries[@]}" | fold -s -w 110 | sed 's/^/  /'
    echo
  } >&2
  exit 2
}

deps() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    check_without_apt "there is no apt on this machine"
    return 0
  fi
  local missing
  mapfile -t missing < <(missing_tools; missing_packages "${libraries[@]}")
  if ((${#missing[@]} == 0)); then
    say "nothing is missing"
    return 0
  fi
  if ! can_be_root; then
    check_without_apt "apt needs root and there is no sudo"
    return 0
  fi
  apt_install "${missing[@]}" || check_without_apt "apt could not install: ${missing[*]}"
}

# True on a Debian 12 with packages of Debian 13.
is_mixed() { [[ -n $(site_of bookworm) && -n $(site_of trixie) ]]; }

deps_ci() {
  deps
  local missing=() from=() major
  command -v clang++ >/dev/null || missing+=(clang)
  command -v clang-format >/dev/null || missing+=(clang-format)
  if ((${#missing[@]} > 0)); then
    say "to install: ${missing[*]}"
    apt_quietly update || say "going on with the package lists that are there" >&2
    # clang has to be as new as the C++ library it compiles against, so the release of g++ decides.
    if is_mixed && (($(g++ -dumpversion | cut -d. -f1) > 12)); then
      from=(-t trixie)
    fi
    apt_quietly install -y --no-install-recommends "${from[@]}" "${missing[@]}"
  fi
  if ! compgen -G "$(clang++ -print-resource-dir)/lib/*/libclang_rt.fuzzer*" >/dev/null; then
    major=$(clang++ -dumpversion | cut -d. -f1)
    say "to install: libclang-rt-$major-dev"
    apt_quietly update || say "going on with the package lists that are there" >&2
    # It needs the 32-bit twin of the libc6 that is installed.
    if is_mixed; then from=(-t trixie); fi
    apt_quietly install -y --no-install-recommends "${from[@]}" "libclang-rt-$major-dev"
  fi
}

# ---------------------------------------------------------------------------------------------------------- build

# Cores that this process may use: affinity and the cgroup's share.
cores() {
  local count quota period
  count=$(nproc)
  if [[ -r /sys/fs/cgroup/cpu.max ]] && read -r quota period </sys/fs/cgroup/cpu.max && [[ $quota != max ]]; then
    quota=$(((quota + period - 1) / period))
    ((quota < count)) && count=$quota
  fi
  echo $((count > 0 ? count : 1))
}

# A file with LibTorch's headers takes up to 2 GB to compile.
compile_jobs() {
  local jobs free_mib
  if [[ -n ${SETUP_JOBS:-} ]]; then
    echo "$SETUP_JOBS"
    return 0
  fi
  jobs=$(cores)
  free_mib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null || echo $((jobs * 2097152)))
  free_mib=$((${free_mib:-2097152} / 1024))
  if [[ -r /sys/fs/cgroup/memory.max ]] && [[ $(</sys/fs/cgroup/memory.max) != max ]]; then
    local limit_mib=$((($(</sys/fs/cgroup/memory.max) - $(</sys/fs/cgroup/memory.current)) / 1048576))
    ((limit_mib < free_mib)) && free_mib=$limit_mib
  fi
  ((free_mib / 2000 < jobs)) && jobs=$((free_mib / 2000))
  echo $((jobs > 0 ? jobs : 1))
}

build() {
  cd -- "$root"
  local extra=()
  read -r -a extra <<<"${SETUP_CMAKE_ARGS:-}"
  cmake --preset release "${extra[@]}"
  cmake --build --preset release -j "$(compile_jobs)"
}

# ----------------------------------------------------------------------------------------------------------- demo

# json_number FILE PATH: the value at a path such as validation.auc, without needing a JSON tool.
json_number() {
  awk -v want="$2" '
    { text = text $0 " " }
    END {
      while (match(text, /^[ \t\r]*("([^"\\]|\\.)*"|[][{},:]|[^][{},: \t\r"]+)/)) {
        token = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
        sub(/^[ \t\r]+/, "", token)
        if (token == "{" || token == "[") { depth++; name[depth] = key; key = "" }
        else if (token == "}" || token == "]") { depth--; key = "" }
        else if (token == ":") { key = substr(last, 2, length(last) - 2) }
        else if (token == ",") { key = "" }
        else if (key != "") {
          path = ""
          for (i = 2; i <= depth; i++) path = path name[i] "."
          if (path key == want) { print token; exit }
        }
        last = token
      }
    }' "$1"
}

# step STAMP DONE-MARK COMMAND…: runs the command unless the same one, by the same program, left its output there.
# The stamp is written after the command has succeeded, so a step that was cut off is done again.
step() {
  local stamp=$1 output=$2 key
  shift 2
  key="$program_sum $*"
  if [[ -f $stamp && -e $output && $(<"$stamp") == "$key" ]]; then
    say "skipped, done before: ${*##*/release/bin/}"
    return 0
  fi
  rm -f "$stamp"
  say "running: ${*##*/release/bin/}"
  local start=$SECONDS
  "$@" </dev/null
  [[ -e $output ]] || fail 1 "the step succeeded without writing $output"
  printf '%s' "$key" >"$stamp"
  say "… $((SECONDS - start)) s"
}

demo_dir=demo demo_fresh=no
parse_demo_options() {
  while (($# > 0)); do
    case $1 in
      --dir)
        (($# > 1)) || fail 2 "--dir needs a folder"
        demo_dir=$2
        shift
        ;;
      --dir=*) demo_dir=${1#*=} ;;
      --fresh) demo_fresh=yes ;;
      *) fail 2 "demo does not know $1" "see ./setup.sh help" ;;
    esac
    shift
  done
  [[ -n $demo_dir ]] || fail 2 "--dir needs a folder"
}

demo() {
  local dir=$demo_dir
  local program=$root/build/release/bin/hyperframes config=$root/configs/demo.yaml program_sum launcher
  # The config counts too: a step is done again when it changed.
  program_sum=$(cat "$program" "$config" | cksum)
  if [[ $demo_fresh == yes ]]; then
    rm -rf "$dir/data" "$dir/run"
    rm -f "$dir"/.done.*
  fi
  mkdir -p "$dir"
  dir=$(cd -- "$dir" && pwd)

  launcher=("${MPIRUN:-mpirun}" -np 4)
  ((EUID == 0)) && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  (($(cores) < 4)) && launcher+=(--map-by :OVERSUBSCRIBE --bind-to none)
  # All ranks are here: Open MPI need not look for network interfaces.
  export OMPI_MCA_btl=${OMPI_MCA_btl:-self,sm}

  step "$dir/.done.synth" "$dir/data/truth.json" \
    "$program" synth --output "$dir/data" --rows 400000 --validation-rows 50000 --seed 1
  step "$dir/.done.convert" "$dir/data/packed/validation.h5" \
    "$program" convert "$config" --data_dir "$dir/data" --output "$dir/data/packed" \
    --set data.format=criteo --set data.train=train.tsv --set data.validation=validation.tsv
  step "$dir/.done.train" "$dir/run/summary.json" \
    "${launcher[@]}" "$program" train "$config" --data_dir "$dir/data/packed" --workdir "$dir/run"

  local auc bayes
  auc=$(json_number "$dir/run/summary.json" auc)
  bayes=$(json_number "$dir/data/truth.json" validation.auc)
  [[ $auc =~ ^[0-9.eE+-]+$ && $bayes =~ ^[0-9.eE+-]+$ ]] ||
    fail 1 "no AUC in $dir/run/summary.json ($auc) or $dir/data/truth.json ($bayes)"
  awk -v auc="$auc" -v bayes="$bayes" 'BEGIN {
    gap = bayes - auc
    printf "\nvalidation AUC        %.4f\nbest possible (Bayes) %.4f\ngap                   %.4f\n", auc, bayes, gap
    if (!(gap <= 0.01)) { print "the gap is larger than 0.01"; exit 1 }
  }' || fail 1 "the demo did not reach the AUC it should; the run is in $dir/run"
}

# ----------------------------------------------------------------------------------------------------------- test

run_tests() {
  cd -- "$root"
  ((EUID == 0)) && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  ctest --preset release -j "$(cores)" --output-on-failure "$@"
}

main() {
  local verb=${1:-}
  (($# == 0)) || shift
  case $verb in
    deps | deps-ci | build)
      (($# == 0)) || fail 2 "$verb takes no options: $*" "see ./setup.sh help"
      ;;
  esac
  case $verb in
    deps) timed deps deps ;;
    deps-ci) timed deps-ci deps_ci ;;
    build)
      timed deps deps
      timed build build
      ;;
    demo)
      parse_demo_options "$@"
      timed deps deps
      (timed build build)
      timed demo demo
      ;;
    test)
      timed deps deps
      timed build build
      timed test run_tests "$@"
      ;;
    help | --help | -h) usage ;;
    *)
      [[ -z $verb ]] || printf 'setup: unknown verb: %s\n' "$verb" >&2
      usage >&2
      exit 2
      ;;
  esac
}

main "$@"
