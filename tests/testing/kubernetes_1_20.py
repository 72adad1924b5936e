"""Rewrites rendered manifests into what Kubernetes 1.20 has words for, the newest server that Debian 12 has.

That version has policy/v1beta1, neither podFailurePolicy nor gRPC probes (TCP ones instead), and does not label namespaces with their name.
"""
import re


def for_1_20(text):
    """The documents of `text`, as kustomize writes them, for 1.20."""
    return "---\n".join(_document(document) for document in text.split("---\n") if "\nkind: PodMonitor\n" not in document)


def _document(text):
    kind = re.search(r"^kind: (\w+)$", text, re.MULTILINE).group(1)
    if kind == "PodDisruptionBudget":
        text = text.replace("apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")
    if kind == "Namespace":
        name = re.search(r"^  name: (\S+)$", text, re.MULTILINE).group(1)
        text = text.replace("  labels:\n", f"  labels:\n    kubernetes.io/metadata.name: {name}\n")
    text = re.sub(r"^  podFailurePolicy:\n(?:  [ -].*\n)+?(?=  \w)", "", text, flags=re.MULTILINE)
    return re.sub(r"^( +)grpc:\n( +port: \d+\n)", r"\1tcpSocket:\n\2", text, flags=re.MULTILINE)
# SPDX-License-Identifier: Apache-2.0
