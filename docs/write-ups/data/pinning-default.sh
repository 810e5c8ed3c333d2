mpirun -np 16 --map-by ppr:8:node -hostfile ./hostfile -mca coll_hcoll_enable 0 -x LD_LIBRARY_PATH \
  -x CUDA_DEVICE_ORDER=PCI_BUS_ID -x UCX_TLS=rc -x UCX_NET_DEVICES=mlx5_ib0:1 -x NCCL_SOCKET_IFNAME=eth0 -x NCCL_DEBUG=WARN \
  /opt/nccl-tests/build/all_reduce_perf -b 4 -e 8G -g 1 -c 0 -f 2 -R 1
