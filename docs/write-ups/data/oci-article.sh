mpirun --mca pml ucx \
   --bind-to numa \
   -x NCCL_IB_SL=0 \
   -x NCCL_IB_TC=41 \
   -x UCX_TLS=tcp \
   -mca coll_hcoll_enable=0 \
   -x NCCL_IB_GID_INDEX=3 \
   -x NCCL_IB_HCA="=mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_14,mlx5_15,mlx5_16,mlx5_17,mlx5_9,mlx5_10,mlx5_11,mlx5_12" \
   --np 512 --hostfile hosts -N 8 /home/opc/nccl-tests/build/all_reduce_perf -b1G -e10G -i$((1024*1024*1024*9)) -n 20
