#!/bin/bash
# Makes the files for --tls where there is no certificate service: an authority, one certificate for all roles, a token.
#
#   deploy/dev/make_tls.sh FOLDER [DAYS]         DAYS: validity of the certificates (365)
#
# An authority that is already in the folder (ca.crt, ca.key) is kept; the certificate and the token are always new. Roles
# need ca.crt, tls.crt, tls.key and token. Keep ca.key private: it signs certificates.
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
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -sha256 -subj "/CN=datacom" -keyout tls.key -out tls.csr 2>/dev/null
openssl x509 -req -sha256 -days "$days" -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out tls.crt 2>/dev/null \
  -extfile <(printf '%s\n' 'subjectAltName=DNS:datacom' 'extendedKeyUsage=serverAuth,clientAuth' 'basicConstraints=CA:FALSE')
rm -f tls.csr
openssl rand -hex 32 >token
