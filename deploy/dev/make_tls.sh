#!/bin/bash
# Makes the files for --tls where there is no certificate service: an authority, one certificate for all roles, a token, and a
# certificate with which Prometheus can read /metrics and nothing else.
#
#   deploy/dev/make_tls.sh FOLDER [DAYS]         DAYS: validity of the certificates (365)
#
# An authority that is already in the folder (ca.crt, ca.key) is kept; the certificates and the token are always new. Roles
# need ca.crt, tls.crt, tls.key and token; Prometheus needs ca.crt, prometheus.crt and prometheus.key. Keep ca.key private:
# it signs certificates.
set -euo pipefail
folder="${1:?usage: make_tls.sh FOLDER [DAYS]}"
days="${2:-365}"
fail() { echo "make_tls.sh: $*" >&2; exit 2; }
[[ "$days" =~ ^[1-9][0-9]*$ ]] || fail "\"$days\" is no number of days"
command -v openssl >/dev/null || fail "openssl is not installed (Debian: openssl)"
# Runs a command that says nothing unless it fails.
quiet() { local said; said="$("$@" 2>&1)" || fail "$said"; }
mkdir -p "$folder"
umask 077
cd "$folder"
if [[ ! -f ca.key ]]; then
  quiet openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -days "$days" -subj "/CN=datacom authority" \
    -keyout ca.key -out ca.crt
fi
# certify NAME COMMON_NAME EXTENSION... : NAME.key and NAME.crt
certify() {
  local name="$1" common_name="$2"
  shift 2
  quiet openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -subj "/CN=$common_name" -keyout "$name.key" \
    -out "$name.csr"
  quiet openssl x509 -req -sha256 -days "$days" -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$name.crt" \
    -extfile <(printf '%s\n' "$@" 'basicConstraints=CA:FALSE')
  rm -f "$name.csr"
}
certify tls datacom 'subjectAltName=DNS:datacom' 'extendedKeyUsage=serverAuth,clientAuth'
certify prometheus prometheus 'extendedKeyUsage=clientAuth'
chmod 644 ./*.crt
openssl rand -hex 32 >token
# SPDX-License-Identifier: Apache-2.0
