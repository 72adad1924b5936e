#!/bin/bash
# usage: make_root.sh TARGET BIN FOLDER : fills FOLDER/root with the root file system of an image (replay, actor, learner, learner-cuda,
# tools, run): programs of BIN and the libraries next to them in usr/bin, and every library they load where the loader looks for it; no shell.
# Programs that BIN does not have (rclone) are those of the system.
# Libraries of the source tree (MuJoCo in build/mujoco) go to the system's folder.
# usr/share/doc has the licences of all of them, by package.
# FOLDER/writable has the folders that a run writes to. They are separate because the images' user must own them and copying into an image
# changes the owner.
set -euo pipefail
target="${1:?usage: make_root.sh TARGET BIN FOLDER}" bin="${2:?a folder of programs}" folder="${3:?a folder to fill}"
root="$folder/root"
source="$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)"
case "$target" in
  replay) programs=(datacom-replay) writable=(data) ;;
  actor) programs=(datacom-actor) writable=() ;;
  learner) programs=(datacom-learner) writable=(run/datacom) ;;
  learner-cuda) programs=(datacom-learner libdatacom_torch.so) writable=(run/datacom) ;;
  tools) programs=(datacom datacom-tools) writable=(run/datacom) ;;
  run) programs=(datacom datacom-tools datacom-replay datacom-learner datacom-actor rclone) writable=(run/datacom) ;;
  *) echo "make_root.sh: unknown target \"$target\"; use replay, actor, learner, learner-cuda, tools or run" >&2; exit 2 ;;
esac

# Copies the licences of packages; fails when one is not installed.
add_licences() {
  local package
  for package in "$@"; do
    install -D -m 644 "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/copyright"
  done
}
# The package of a library. Packages name it under /lib or under /usr/lib; the loader finds it under both.
package_of() {
  local found
  found="$(dpkg-query --search "$1" "/usr$1" "${1#/usr}" 2>/dev/null || true)"
  echo "${found%%:*}"
}

mkdir -p "$root/usr/bin" "$root/usr/share/doc"
install -D -m 644 "$source/LICENSE" "$root/usr/share/doc/datacom/copyright"
add_licences libboost-dev libcli11-dev libeigen3-dev libfmt-dev libspdlog-dev nlohmann-json3-dev  # compiled in
for program in "${programs[@]}"; do
  file="$bin/$program"
  [[ -e "$file" ]] || file="$(command -v "$program")" || { echo "make_root.sh: $program is not installed" >&2; exit 1; }
  install -m 755 "$file" "$root/usr/bin/$program"
  strip --strip-debug "$root/usr/bin/$program"  # most of a program is line numbers for debuggers; names of functions stay
  # Lines are "name => path (address)", or "path (address)" for the loader. The GPU's driver brings libcuda.
  libraries="$(ldd "$file" | grep -v -e linux-vdso -e 'libcuda\.so\.1 => not found')"
  if grep 'not found' <<<"$libraries" >&2; then
    echo "make_root.sh: $program needs the libraries above, which are not installed" >&2
    exit 1
  fi
  for library in $(grep -oE '/[^ ]+' <<<"$libraries"); do
    case "$library" in
      /opt/site/*) ;;
      "$source"/*)
        install -D -m 755 "$library" "$root/usr/lib/x86_64-linux-gnu/${library##*/}"
        cp -rT "${library%/lib/*}/licenses" "$root/usr/share/doc/mujoco"
        ;;
      *)
        install -D -m 755 "$library" "$root$library"
        package="$(package_of "$library")"
        [[ -z "$package" ]] || add_licences "$package"  # CUDA's libraries belong to no package; CUDA's folder has its licence
        ;;
    esac
  done
done
for path in "${writable[@]}"; do
  mkdir -p "$folder/writable/$path"
done
if [[ "$target" == run ]]; then  # rclone speaks TLS with buckets
  install -D -m 644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  add_licences ca-certificates rclone
fi
if [[ "$target" == tools || "$target" == run ]]; then
  mkdir -p "$root/usr/share/datacom"
  cp -r "$source/deploy/experiments" "$source/deploy/sweeps" "$source/deploy/kubernetes" "$source/deploy/slurm" "$root/usr/share/datacom/"
  install -D -m 644 /usr/share/javascript/chart.js/chart.min.js "$root/usr/share/javascript/chart.js/chart.min.js"  # reports embed it
  for font in DejaVuSans.ttf DejaVuSans-Bold.ttf; do  # pictures are labelled with them
    install -D -m 644 "/usr/share/fonts/truetype/dejavu/$font" "$root/usr/share/fonts/truetype/dejavu/$font"
  done
  add_licences libjs-chart.js fonts-dejavu-core
fi
if [[ "$target" == learner-cuda ]]; then  # copied whole: ldd does not list the libraries that CUDA loads by name at run time
  (cd / && find opt/site/torch/lib opt/site/nvidia opt/site/*.dist-info \( -path '*/lib/*' -o -ipath '*licen[cs]e*' \) -type f -print0 |
    xargs -0 cp --parents -t "$root")
fi
# SPDX-License-Identifier: Apache-2.0
