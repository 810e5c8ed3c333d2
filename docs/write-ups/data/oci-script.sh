if[ $shape == \"BM.GPU.B4.8\" || $shape == \"BM.GPU.GM4.8\" ]
   var_NCCL_IB_HCA= "=mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7,mlx5_8,mlx5_14,mlx5_15,mlx5_16,mlx5_17,mlx5_9,mlx5_10,mlx5_11,mlx5_12"
mpirun --mca pml ucx \ 
   --bind-to numa \ 
   -mca coll_hcoll_enable=0 \ 
   -x NCCL_IB_HCA= "${var_NCCL_IB_HCA}"  \ 
   --np $np --hostfile $hostfile  -N 8 /home/opc/nccl-tests/build/all_reduce_perf  -b1G -e10G -i$((1024*1024*1024*9)) -n $iterations
