export NCCL_MIN_CHANNELS=32
export NCCL_P2P_NET_CHUNKSIZE=512K
export NCCL_IB_QPS_PER_CONNECTION=4
export NCCL_PXN_DISABLE=1
export NCCL_TOPO_FILE=/opt/microsoft/ndv5/topo.xml
export NCCL_IGNORE_CPU_AFFINITY=1
mpirun -np 16 --map-by ppr:8:node -hostfile ./hostfile -mca coll_hcoll_enable 0 -x LD_LIBRARY_PATH \
  -x CUDA_DEVICE_ORDER=PCI_BUS_ID -x UCX_TLS=rc -x UCX_NET_DEVICES=mlx5_ib0:1 -x NCCL_SOCKET_IFNAME=eth0 -x NCCL_DEBUG=WARN \
  -x NCCL_MIN_CHANNELS -x NCCL_P2P_NET_CHUNKSIZE -x NCCL_IB_QPS_PER_CONNECTION -x NCCL_PXN_DISABLE \
  -x NCCL_TOPO_FILE -x NCCL_IGNORE_CPU_AFFINITY \
  /opt/nccl-tests/build/all_reduce_perf -b 4 -e 8G -g 1 -c 0 -f 2 -R 1
