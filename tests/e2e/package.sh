#!/bin/sh
# Installs a build into a temporary prefix and builds a program outside the project with it: by find_package, and by
# pkg-config. Prints what it checks; exit 0 when all of it holds.
#   tests/e2e/package.sh [BUILD_FOLDER]
set -eu

source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build_dir=${1:-$source_dir/out/test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "package: FAILED: $1"
  exit 1
}

# A sanitized archive asks its users to link the sanitizer too.
sanitize=$(sed -n 's/^HOLDFAST_SANITIZE:[A-Z]*=//p' "$build_dir/CMakeCache.txt")
flags=${sanitize:+-fsanitize=$sanitize}
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build_dir/CMakeCache.txt")

if [ ! -f "$build_dir/lib/libholdfast.a" ]; then
  cmake --build "$build_dir" >"$work/log" 2>&1 || { cat "$work/log"; fail "the project does not build"; }
fi
if ! cmake --install "$build_dir" --prefix "$work/prefix" >"$work/log" 2>&1; then
  cat "$work/log"
  fail "cmake --install"
fi
echo "package: installed $(find "$work/prefix" -type f | wc -l) files"

for header in "$source_dir"/include/holdfast/*.hpp; do
  [ -f "$work/prefix/include/holdfast/$(basename "$header")" ] || fail "$(basename "$header") is not installed"
done

check_program() {
  said=$("$1") || fail "$2: the program exits $?"
  [ "$said" = "$version completed 42" ] || fail "$2: the program says: $said"
  echo "package: $2: $said"
}

export LDFLAGS="$flags"
cmake -S "$source_dir/tests/e2e/package" -B "$work/outside" -DCMAKE_PREFIX_PATH="$work/prefix" \
  >"$work/log" 2>&1 || { cat "$work/log"; fail "find_package does not configure"; }
cmake --build "$work/outside" >"$work/log" 2>&1 || { cat "$work/log"; fail "find_package does not build"; }
check_program "$work/outside/outside" "find_package"

pc=$(dirname "$(find "$work/prefix" -name holdfast.pc)")
[ "$(PKG_CONFIG_PATH=$pc pkg-config --modversion holdfast)" = "$version" ] || fail "pkg-config: the version is not $version"
cflags=$(PKG_CONFIG_PATH=$pc pkg-config --cflags holdfast)
libs=$(PKG_CONFIG_PATH=$pc pkg-config --libs holdfast)
# shellcheck disable=SC2086
${CXX:-c++} -std=c++20 $flags $cflags "$source_dir/tests/e2e/package/main.cpp" -o "$work/by_pkg_config" $libs ||
  fail "pkg-config does not build"
check_program "$work/by_pkg_config" "pkg-config"

if [ -x "$work/prefix/bin/holdfast" ]; then
  "$work/prefix/bin/holdfast" --version | grep -q "$version" || fail "the installed binary does not say its version"
  for text in share/man/man1/holdfast.1 share/doc/holdfast/configuration.md share/bash-completion/completions/holdfast share/zsh/site-functions/_holdfast; do
    [ -s "$work/prefix/$text" ] || fail "$text is not installed"
  done
  echo "package: the installed binary runs"
  zsh -f "$source_dir/tests/e2e/completion.zsh" "$work/prefix/share/zsh/site-functions" || fail "completion in zsh"
  echo "package: zsh completes"
fi
echo "package: ok"
