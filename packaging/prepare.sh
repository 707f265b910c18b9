# Sourced by packaging/run and packaging/test: brings this machine to where watchfloor runs from this checkout. Asks nothing.
#
# Each step looks first and does only what is missing, so a second run takes seconds:
#   1. Debian/Ubuntu packages (apt, when root or password-free sudo)   2. a virtual environment   3. pinned wheels, by hash   4. the package

# Where nothing compiled is kept, each process compiles all that it imports: a supervisor's start takes 4 s of a processor instead of 1.5.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "watchfloor: $*" >&2; }
die() { say "$@"; exit 1; }

# --- 1. system packages; alternatives are written a|b: the first that this distribution knows ---
python_packages=(ca-certificates python3 python3-venv)
qt_packages=(
  'libglib2.0-0t64|libglib2.0-0' libbrotli1 libgl1 libegl1 libxkbcommon0 libdbus-1-3 libfontconfig1 libfreetype6 libx11-6   # offscreen
  libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxcb-shape0 libxcb-xkb1 libxkbcommon-x11-0 libxcb-render-util0 libxcb-image0
  libxcb-randr0 libx11-xcb1 libwayland-client0 libwayland-cursor0 libwayland-egl1                                            # X11, Wayland
)
sandbox_packages=(bubblewrap iproute2 procps util-linux)

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Prints the packages of "$@" that are not installed; of alternatives the one to install.
missing_packages() {
  local wanted name found
  for wanted in "$@"; do
    found=
    for name in ${wanted//|/ }; do
      if installed "$name"; then found=installed; break; fi
    done
    [ -n "$found" ] || printf '%s\n' "$wanted"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Runs a command whose words matter only when it fails.
quietly() {
  local words status=0
  words=$("$@" 2>&1) || status=$?
  [ $status = 0 ] || printf '%s\n' "$words" >&2
  return $status
}

can_install() { command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }

system_packages() {
  command -v dpkg-query >/dev/null || { say "this is not Debian or Ubuntu: Python 3.11, Qt's libraries, bubblewrap and iproute2 must be there already"; return 0; }
  local missing names=() options=() wanted name
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if ! can_install; then
    say "missing and not installable without root or password-free sudo:" ${missing//|/ or }
    say "install them, or go on without: what needs them will say so"
    return 0
  fi
  say "installing system packages:" $missing
  if [ -z "${WATCHFLOOR_APT_READ:-}" ]; then
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q || die "apt could not read its package lists"
    export WATCHFLOOR_APT_READ=1   # once for all that this run installs
  fi
  for wanted in $missing; do
    for name in ${wanted//|/ }; do
      if apt-cache show "$name" >/dev/null 2>&1; then names+=("$name"); break; fi
    done
  done
  # dpkg waits for the disk after each file, for the case of a power cut; what has no init is a container or chroot, and is made anew then.
  [ -d /run/systemd/system ] || options=(-o Dpkg::Options::=--force-unsafe-io)
  quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${options[@]}" "${names[@]}" ||
    die "apt could not install: ${names[*]}"
}

# Agents run as a user of their own when started by root; on every Debian / has mode 755, in some chroots it has 700 and no user can start anything.
root_folder() {
  local mode
  mode=$(stat -c %a /)
  [ "$(id -u)" = 0 ] && [ $((0$mode & 1)) = 0 ] || return 0
  say "no other user can pass / (mode $mode): setting it to 755, as Debian has it"
  chmod 755 /
}

# --- 2. Python and the virtual environment ---
usable_python() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11; do
    if command -v "$name" >/dev/null && usable_python "$name"; then printf '%s' "$name"; return 0; fi
  done
  return 1
}

python_there() {
  find_python >/dev/null && return 0
  system_packages "${python_packages[@]}"
  find_python >/dev/null && return 0
  system_packages python3.11 python3.11-venv   # Ubuntu 22.04: python3 is 3.10
  find_python >/dev/null || die "Python 3.11 or newer with venv is needed and could not be installed"
}

# .venv is ours when we marked it; one that a developer made is left alone and another folder is used.
choose_venv() {
  venv=$PWD/.venv
  if [ -d "$venv" ] && [ ! -e "$venv/.watchfloor" ]; then venv=$PWD/.venv-packaged; fi
}

# --- 3. and 4. pinned wheels and the package ---
# ready SET [OPTION...]: the virtual environment holds requirements/SET.txt and the package, as the stamp says. Options are pip's.
ready() {
  local set=$1 python stamp
  shift
  choose_venv
  exec 8>"$PWD/.watchfloor-setup.lock"
  flock 8
  stamp=$(cat "requirements/$set.txt" requirements/build.txt pyproject.toml | sha256sum | cut -d' ' -f1)-$PWD
  if [ ! -x "$venv/bin/python" ] || ! usable_python "$venv/bin/python"; then
    python_there
    python=$(find_python)
    say "making the virtual environment $venv with $($python --version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    : >"$venv/.watchfloor"
  fi
  if ! grep -qxF "$set $stamp" "$venv/.watchfloor"; then
    say "installing pinned packages ($set)"
    pip_install "$@" --require-hashes -r requirements/build.txt
    pip_install "$@" --require-hashes -r "requirements/$set.txt"
    pip_install --no-deps --no-build-isolation --no-index --editable .
    printf '%s\n' "$set $stamp" >>"$venv/.watchfloor"
  fi
  flock -u 8
  exec 8>&-
  PATH=$venv/bin:$PATH
  export PATH
}

pip_install() {
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 5 "$@" || die "pip could not install: $*"
}
