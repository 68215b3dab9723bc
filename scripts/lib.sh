# Shared by build, test, demo and bench/run; sourced with the repository as the working folder.
# Everything that is built lies below out/: out/release, out/test, out/tsan, out/fuzz, and
# out/holdfast.

jobs_here=$(nproc)

# Compiler cache: the same source in another folder is the same object.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# configure FOLDER OPTION…: only when it has not been configured with exactly these options.
configure() {
  local folder=$1
  shift
  local stamp="$folder/.options" wanted="$PWD $*"
  if [ -f "$folder/build.ninja" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    return 0
  fi
  mkdir -p "$folder"
  rm -f "$folder/CMakeCache.txt"
  if ! cmake -S . -B "$folder" -G Ninja -DHOLDFAST_WERROR=ON "$@" >"$folder/configure.log" 2>&1 </dev/null; then
    cat "$folder/configure.log" >&2
    return 1
  fi
  printf '%s\n' "$wanted" >"$stamp"
}

# compile FOLDER TARGET…: quiet unless it fails; then the compiler's words. No target: all.
compile() {
  local folder=$1
  shift
  if ! cmake --build "$folder" -j"$jobs_here" ${1:+--target "$@"} >"$folder/build.log" 2>&1 </dev/null; then
    grep -E -A12 'error|FAILED|undefined reference|multiple definition' "$folder/build.log" | head -80 >&2
    echo "building in $folder failed; everything it said: $folder/build.log" >&2
    return 1
  fi
}

# The release binary, as ./build, ./test and ./demo need it.
build_release() {
  configure out/release -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O2 -DHOLDFAST_EXAMPLES=OFF &&
    compile out/release holdfast &&
    ln -sfn release/holdfast out/holdfast
}

# The fuzz targets (tests/fuzz), by clang.
build_fuzz() {
  configure out/fuzz -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" \
    -DHOLDFAST_WERROR=OFF -DHOLDFAST_FUZZ=ON -DHOLDFAST_EXAMPLES=OFF -DHOLDFAST_TESTING=ON \
    -DHOLDFAST_SANITIZE=fuzzer-no-link,address,undefined &&
    compile out/fuzz fuzz
}
