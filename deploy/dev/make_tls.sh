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
mkdir -p "$folder"
umask 077
cd "$folder"
if [[ ! -f ca.key ]]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -days "$days" -subj "/CN=datacom authority" \
    -keyout ca.key -out ca.crt 2>/dev/null
fi
# certify NAME COMMON_NAME EXTENSION... : NAME.key and NAME.crt
certify() {
  local name="$1" common_name="$2"
  shift 2
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -subj "/CN=$common_name" -keyout "$name.key" \
    -out "$name.csr" 2>/dev/null
  openssl x509 -req -sha256 -days "$days" -in "$name.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$name.crt" 2>/dev/null \
    -extfile <(printf '%s\n' "$@" 'basicConstraints=CA:FALSE')
  rm -f "$name.csr"
}
certify tls datacom 'subjectAltName=DNS:datacom' 'extendedKeyUsage=serverAuth,clientAuth'
certify prometheus prometheus 'extendedKeyUsage=clientAuth'
chmod 644 ./*.crt
openssl rand -hex 32 >token
# SPDX-License-Identifier: Apache-2.0
