#!/usr/bin/env bash
# Checks the house rules that a compiler does not see. One line per violation: RULE: FILE[:LINE]: what is wrong.
#
#   layering_test.sh ROOT         checks the tree under ROOT; exit 0 = clean, 1 = violations
#   layering_test.sh --self-test  plants one violation of each kind in a small tree and expects it to be found
#
# Rules
#   mpi      MPI_… only in comm/ and the tests
#   hdf5     H5… only in io/ and its tests
#   torch    LibTorch only in src/model, ranks/api, ranks/worker, the public API and their tests
#   include  a layer includes only itself and what stands to its left, so that folders never include in a circle:
#            core ← routing, codec ← table ← comm, io ← ranks/server ← ranks/api ← ranks/worker ← ranks/cli
#            core ← model ← ranks/api; the public headers include only each other
#   pragma   every header has #pragma once
#   cmake    every .cpp is listed in a CMakeLists.txt, and every listed one exists
#   words    no unfinished work in what is shipped
# MPI, HDF5 and LibTorch may be *named* in comments: those are cut off before the search.
set -euo pipefail
export LC_ALL=C

# A layer is named by its folder (src/ left out), and what it may include. `include` are the public headers, of which
# table_options.hpp and error.hpp (values and errors that every layer shares) may be included from anywhere.
declare -A allowed=(
  [include]="public include"
  [core]="public core"
  [routing]="public core routing"
  [codec]="public core codec"
  [table]="public core routing codec table"
  [model]="public core model"
  [comm]="public core routing codec table comm"
  [io]="public core routing codec table io"
  [ranks/server]="public core routing codec table comm io ranks/server"
  [ranks/api]="public include core routing codec table model comm io ranks/server ranks/api"
  [ranks/worker]="public include core routing codec table model comm io ranks/server ranks/api ranks/worker"
  [ranks/cli]="public include core routing codec table model comm io ranks/server ranks/api ranks/worker ranks/cli"
)
# Folders that no layer may include.
readonly outside="tests examples benchmarks fuzz scaling"

# layer_of PATH: the layer of a file, or of what an #include names; nothing for what is no part of the house.
layer_of() {
  local path=${1#src/}
  case $path in
    include/* | hyperframes/*)
      case ${path##*/} in
        table_options.hpp | error.hpp) [[ $1 == include/* ]] && echo include || echo public ;;
        *) echo include ;;
      esac
      ;;
    ranks/*/*)
      path=${path#ranks/}
      echo "ranks/${path%%/*}"
      ;;
    ranks/*) echo ranks ;;
    */*) echo "${path%%/*}" ;;
  esac
}

# The project's own files, relative to the root. Build trees, runs and hidden tool folders are not the project's.
list_files() {
  find . \( -name .git -o -name .cache -o -path './build*' -o -path ./runs -o -path ./demo \) -prune -o -type f -print |
    sed 's|^\./||' | sort
}

# search PATTERN FILE…: "file:line:text" of code that matches; comments do not count.
search() {
  local pattern=$1
  shift
  (($# > 0)) || return 0
  awk -v pattern="$pattern" '
    FNR == 1 { block = 0 }
    {
      code = $0
      if (block) {
        if (!match(code, /\*\//)) next
        code = substr(code, RSTART + 2)
        block = 0
      }
      while (match(code, /\/\*/)) {
        head = substr(code, 1, RSTART - 1)
        rest = substr(code, RSTART + 2)
        if (match(rest, /\*\//)) { code = head " " substr(rest, RSTART + 2) }
        else { code = head; block = 1 }
      }
      sub(/\/\/.*/, "", code)
      if ((" " code) ~ pattern) print FILENAME ":" FNR ": " code
    }' "$@"
}

check_tree() {
  cd -- "$1"
  local files=() sources=() headers=() lists=() file line layer target pattern
  mapfile -t files < <(list_files)
  for file in "${files[@]}"; do
    case $file in
      *.hpp | *.h) headers+=("$file") ;;
      *.cpp | *.cc | *.c | *.cu) sources+=("$file") ;;
      *CMakeLists.txt | *.cmake) lists+=("$file") ;;
    esac
  done
  if ((${#sources[@]} == 0)); then
    echo "tree: $1 holds no sources"
    return 0
  fi
  local code=("${headers[@]}" "${sources[@]}")

  # ------------------------------------------------------------------------------------------------ libraries
  local no_mpi=() no_hdf5=() no_torch=()
  for file in "${code[@]}"; do
    case $file in comm/* | tests/*) ;; *) no_mpi+=("$file") ;; esac
    case $file in io/* | tests/io/*) ;; *) no_hdf5+=("$file") ;; esac
    case $file in
      src/model/* | ranks/api/* | ranks/worker/* | include/hyperframes/* | tests/model/* | tests/ranks/*) ;;
      *) no_torch+=("$file") ;;
    esac
  done
  search '[^A-Za-z0-9_](MPIX?_[A-Za-z]|PMPI_)|#[ \t]*include[ \t]*[<"]mpi' "${no_mpi[@]}" | sed 's/^/mpi: /'
  search '[^A-Za-z0-9_]H5([A-Z][A-Za-z]?[A-Za-z_]|::|_)|#[ \t]*include[ \t]*[<"](hdf5|H5)' "${no_hdf5[@]}" |
    sed 's/^/hdf5: /'
  search '[^A-Za-z0-9_](torch|at|c10)::|#[ \t]*include[ \t]*[<"](torch|ATen|c10)/' "${no_torch[@]}" |
    sed 's/^/torch: /'

  # ------------------------------------------------------------------------------------------------- includes
  for file in "${code[@]}"; do
    case $file in src/* | include/* | comm/* | io/* | ranks/*) layer=$(layer_of "$file") ;; *) continue ;; esac
    if [[ -z ${allowed[$layer]:-} ]]; then
      echo "include: $file: ${file%/*} is not a layer"
      continue
    fi
    while IFS= read -r line; do
      target=${line#*:}
      line=${line%%:*}
      case $target in
        ../* | */../*) echo "include: $file:$line: \"$target\" leaves its folder; write it from the root of the layers" ;;
        */*)
          target=$(layer_of "$target")
          if [[ " $outside " == *" $target "* ]]; then
            echo "include: $file:$line: the layer $layer may not include $target/"
          elif [[ -n ${allowed[$target]:-} && " ${allowed[$layer]} " != *" $target "* ]]; then
            echo "include: $file:$line: the layer $layer may not include $target"
          fi
          ;;
      esac
    done < <(sed -n 's/^[ \t]*#[ \t]*include[ \t]*[<"]\([^>"]*\)[>"].*/\1/;t found;d;:found;=;p' "$file" | paste -d: - -)
  done

  # -------------------------------------------------------------------------------------------------- headers
  for file in "${headers[@]}"; do
    grep -q '^#pragma once' "$file" || echo "pragma: $file: no #pragma once"
  done

  # ---------------------------------------------------------------------------------------------------- CMake
  # A name may hold a loop variable, as in fuzz_${format}.cpp: it stands for every file that fits, and one must.
  local -A listed=()
  local folder path matches match
  for file in "${lists[@]}"; do
    folder=$(dirname -- "$file")
    while IFS=: read -r line path; do
      # shellcheck disable=SC2016  # the dollars are CMake's
      case $path in
        *'${CMAKE_CURRENT_BINARY_DIR}'* | *'${CMAKE_BINARY_DIR}'* | *'${PROJECT_BINARY_DIR}'*) continue ;;
        '${CMAKE_SOURCE_DIR}/'* | '${PROJECT_SOURCE_DIR}/'*) path=${path#*\}/} ;;
        '${CMAKE_CURRENT_SOURCE_DIR}/'* | '${CMAKE_CURRENT_LIST_DIR}/'*) path=$folder/${path#*\}/} ;;
        *) path=$folder/$path ;;
      esac
      path=$(sed 's|^\./||; s|/\./|/|g; :up; s|[^/]*/\.\./||; t up' <<<"$path")
      pattern=$(sed 's/\${[^}]*}/*/g' <<<"$path")
      matches=()
      # shellcheck disable=SC2053  # the right side is a pattern
      for match in "${sources[@]}"; do
        [[ $match == $pattern ]] && matches+=("$match")
      done
      if ((${#matches[@]} == 0)); then
        echo "cmake: $file:$line: $path does not exist"
      fi
      for match in "${matches[@]}"; do listed[$match]=yes; done
    done < <(sed 's/#.*//' "$file" | grep -noE '[A-Za-z0-9_./${}-]+\.(cpp|cc|c|cu)([^A-Za-z0-9_.]|$)' |
      sed 's/[^A-Za-z0-9_.}]$//' || true)
  done
  for file in "${sources[@]}"; do
    [[ -n ${listed[$file]:-} ]] || echo "cmake: $file: no CMakeLists.txt lists it"
  done

  # ---------------------------------------------------------------------------------------------------- words
  # Spelt in halves, so that this file passes its own check.
  pattern='TO''DO|FIX''ME|X''XX'
  grep -nwIE "$pattern" -- "${files[@]}" | sed 's/^/words: /' || true
}

# ---------------------------------------------------------------------------------------------------- self-test

# A small tree that obeys every rule, with what looks like a violation and is none.
plant_clean_tree() {
  local root=$1
  mkdir -p "$root"/{src/{core,routing,codec,table,model},comm,io,ranks/{server,api,worker,cli},include/hyperframes}
  mkdir -p "$root"/{tests/{io,model},build/x}
  local header
  for header in src/core/a.hpp src/routing/a.hpp src/codec/a.hpp src/table/a.hpp comm/a.hpp io/a.hpp src/model/a.hpp \
    ranks/{server,api,worker,cli}/a.hpp include/hyperframes/{a,error}.hpp; do
    printf '// MPI_Send and H5Fopen and torch::Tensor are only named here.\n#pragma once\n' >"$root/$header"
  done
  printf '#include "routing/a.hpp"\n#include "codec/a.hpp"\n#include "core/a.hpp"\n#include <vector>\n' \
    >"$root/src/table/a.cpp"
  printf '#include <mpi.h>\n#include "table/a.hpp"\nint f() { return MPI_Init(nullptr, nullptr); }\n' >"$root/comm/a.cpp"
  printf '#include <hdf5.h>\n#include "a.hpp"\nhid_t f() { return H5Fopen("x.h5", 0, 0); }\n' >"$root/io/a.cpp"
  printf '/* MPI_Send\n H5Fopen */\nconst char* dataset = "HDF5";  // torch::Tensor\nint HF_MPI_x, OMPI_x, torches;\n' \
    >"$root/ranks/server/a.cpp"
  printf '#include <torch/torch.h>\n#include "hyperframes/a.hpp"\n#include "model/a.hpp"\n' >"$root/ranks/api/a.cpp"
  printf '#include "ranks/worker/a.hpp"\n#include "ranks/api/a.hpp"\n' >"$root/ranks/cli/main.cpp"
  printf '#include "hyperframes/error.hpp"\n' >>"$root/src/core/a.hpp"
  printf '#include <hdf5.h>\n#include <mpi.h>\n' >"$root/tests/io/a_test.cpp"
  printf 'int x;\n' | tee "$root/tests/model/fuzz_a.cpp" >"$root/tests/model/fuzz_b.cpp"
  printf 'MPI_Send H5Fopen\n' >"$root/build/x/generated.cpp"
  printf 'mktemp -d /tmp/x.XXXXXX; a_to_do=1\n' >"$root/run.sh"
  cat >"$root/CMakeLists.txt" <<'TEXT'
# gone.cpp is only named in a comment
add_library(a src/table/a.cpp comm/a.cpp ${CMAKE_SOURCE_DIR}/io/a.cpp ranks/server/a.cpp)
target_sources(a PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated.cpp)
add_executable(b ranks/cli/main.cpp
  ranks/api/a.cpp)
TEXT
  printf 'add_executable(t io/a_test.cpp)\nforeach(name a b)\n  add_executable(f ../tests/model/fuzz_${name}.cpp)\nendforeach()\n' \
    >"$root/tests/CMakeLists.txt"
}

self_test() {
  local scratch failures=0 cases=0 found
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/layering.XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$scratch'" EXIT

  # expect RULE TEXT: the tree has exactly one violation; it is of that rule and its line holds the text. An empty rule
  # stands for none. The tree is planted anew afterwards.
  expect() {
    cases=$((cases + 1))
    found=$(check_tree "$scratch/tree")
    if [[ -z $1 && -z $found ]] || [[ -n $1 && $found == "$1: "*"$2"* && $found != *$'\n'* ]]; then
      echo "ok: ${1:-clean tree} ${2:-}"
    else
      failures=$((failures + 1))
      printf 'FAILED: expected one violation of "%s" naming "%s", found:\n%s\n' "$1" "$2" "$found"
    fi
    replant
  }
  replant() {
    rm -rf "$scratch/tree"
    plant_clean_tree "$scratch/tree"
  }
  add() { printf '%s\n' "$2" >>"$scratch/tree/$1"; }

  replant
  expect "" ""
  add ranks/server/a.cpp 'int g() { return MPI_Barrier(MPI_COMM_WORLD); }'
  expect mpi ranks/server/a.cpp:5
  add src/core/a.hpp '#include <mpi.h>'
  expect mpi src/core/a.hpp:4
  add ranks/server/a.cpp 'int g() { return MPIX_Comm_revoke(0); }'
  expect mpi ranks/server/a.cpp:5
  add ranks/server/a.cpp '/* one */ int g() { return MPI_Barrier(0); }'
  expect mpi ranks/server/a.cpp:5
  add ranks/server/a.cpp 'int g() { return H5Fclose(0); }'
  expect hdf5 ranks/server/a.cpp:5
  add comm/a.hpp '#include <hdf5.h>'
  expect hdf5 comm/a.hpp:3
  add tests/model/fuzz_a.cpp 'auto g = H5P_DEFAULT;'
  expect hdf5 tests/model/fuzz_a.cpp:2
  add ranks/server/a.hpp '#include <torch/torch.h>'
  expect torch ranks/server/a.hpp:3
  add src/table/a.cpp 'torch::Tensor* t;'
  expect torch src/table/a.cpp:5
  add src/codec/a.hpp '#include <c10/util/Half.h>'
  expect torch src/codec/a.hpp:3
  local from to
  for from in core:routing core:codec routing:codec codec:routing routing:table codec:table table:comm table:io comm:io \
    io:comm comm:model io:model table:model model:routing model:comm comm:ranks/server io:ranks/server \
    ranks/server:model ranks/server:ranks/api ranks/api:ranks/worker ranks/worker:ranks/cli core:ranks/cli; do
    to=${from#*:} from=${from%:*}
    local folder=src/$from
    case $from in comm | io | ranks/*) folder=$from ;; esac
    add "$folder/a.hpp" "#include \"$to/a.hpp\""
    expect include "the layer $from may not include $to"
  done
  add src/model/a.hpp '#include <hyperframes/a.hpp>'
  expect include 'the layer model may not include include'
  add ranks/server/a.hpp '#include "hyperframes/a.hpp"'
  expect include 'the layer ranks/server may not include include'
  add include/hyperframes/a.hpp '#include "core/a.hpp"'
  expect include 'the layer include may not include core'
  add ranks/b.hpp '#pragma once'
  expect include 'ranks is not a layer'
  add src/core/a.hpp '#include "tests/helper.hpp"'
  expect include 'may not include tests/'
  add src/core/a.hpp '#  include "../table/a.hpp"'
  expect include 'leaves its folder'
  mkdir -p "$scratch/tree/src/misc" && add src/misc/a.hpp '#pragma once'
  expect include 'src/misc is not a layer'
  add src/core/b.hpp 'int x;  // #pragma once'
  expect pragma src/core/b.hpp
  add src/core/b.cpp 'int x;'
  expect cmake 'src/core/b.cpp: no CMakeLists.txt lists it'
  add tests/model/bench_a.cpp 'int x;'
  expect cmake 'tests/model/bench_a.cpp: no CMakeLists.txt lists it'
  add CMakeLists.txt 'target_sources(a PRIVATE src/core/gone.cpp)'
  expect cmake 'CMakeLists.txt:6: src/core/gone.cpp does not exist'
  add tests/CMakeLists.txt 'add_executable(g io/seed_${name}.cpp)'
  expect cmake 'tests/io/seed_${name}.cpp does not exist'
  local word
  for word in TO''DO FIX''ME X''XX; do
    add run.sh "# $word: finish"
    expect words "run.sh:2"
  done
  rm -rf "$scratch/tree" && mkdir -p "$scratch/tree/src"
  expect tree 'holds no sources'

  echo "self-test: $((cases - failures)) of $cases as expected"
  ((failures == 0))
}

case ${1:-} in
  --self-test) self_test ;;
  "" | -*)
    echo "usage: $0 ROOT | --self-test" >&2
    exit 2
    ;;
  *)
    violations=$(check_tree "$1")
    if [[ -n $violations ]]; then
      printf '%s\n' "$violations"
      echo "$(wc -l <<<"$violations") violations"
      exit 1
    fi
    echo "no violations"
    ;;
esac
