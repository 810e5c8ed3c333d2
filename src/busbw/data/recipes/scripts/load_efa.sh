
# The plug-in and libfabric of the EFA software go before every other.
if [[ ! -d /opt/amazon/ofi-nccl/lib ]]; then
    printf 'error: there is no plug-in in /opt/amazon/ofi-nccl/lib\nhint: as root, on each node: bash install-efa.sh\n' >&2
    return 1
fi
export LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
