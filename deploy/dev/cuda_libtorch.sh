#!/bin/sh
# Installs PyPI's LibTorch with CUDA, and the parts of the CUDA toolkit that its CMake package asks for, into FOLDER (6 GB), unless
# they are there. Prints the CMake options that select them, on one line. Needs python3 with pip, but no GPU and no root.
#   deploy/dev/cuda_libtorch.sh FOLDER
# `./datacom build cuda` calls it.
set -eu
[ $# -eq 1 ] || { echo "usage: cuda_libtorch.sh FOLDER" >&2; exit 2; }
# pyproject.toml names LibTorch's version. LibTorch requires this toolkit, whose assembler refuses the code of newer nvvm and crt.
torch=$(sed -n 's/^cuda = \["\(torch==[0-9.]*\)"\].*/\1/p' "$(dirname "$0")/../../pyproject.toml")
[ -n "$torch" ] || { echo "cuda_libtorch.sh: pyproject.toml has no line: cuda = [\"torch==VERSION\"]" >&2; exit 1; }
packages="$torch cuda-toolkit[nvcc]==13.0.2 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88"

mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ "$(cat "$folder/installed" 2>/dev/null)" != "$packages" ]; then
  echo "installing $packages into $folder" >&2
  # shellcheck disable=SC2086  # one word per package
  python3 -m pip install --quiet --upgrade --target "$folder/site" $packages >&2
  # The wheels have libcudart.so.13, but not the name libcudart.so that CMake looks for.
  for library in "$folder"/site/nvidia/cu13/lib/*.so.*; do
    ln -sf "${library##*/}" "${library%%.so.*}.so"
  done
  echo "$packages" >"$folder/installed"
fi
cuda=$folder/site/nvidia/cu13
# No source of datacom is CUDA code: standard and architecture only keep LibTorch's package from looking for a GPU and from asking for a
# standard that CMake 3.25 does not know for this compiler.
echo "-DDATACOM_LIBTORCH=$folder/site/torch -DCMAKE_CUDA_COMPILER=$cuda/bin/nvcc -DCUDAToolkit_ROOT=$cuda" \
  "-DCUDA_TOOLKIT_ROOT_DIR=$cuda -DCMAKE_CUDA_STANDARD=17 -DTORCH_CUDA_ARCH_LIST=8.0"
# SPDX-License-Identifier: Apache-2.0
