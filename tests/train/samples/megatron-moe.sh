#!/bin/bash
# A job of a mixture of experts as users write them for Megatron-LM.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=32
TP=2
PP=4
SEQ_LENGTH=4096   # tokens
DISTRIBUTED_ARGS=(
    --nproc_per_node ${GPUS_PER_NODE}
    --nnodes $NNODES
    --node_rank $SLURM_NODEID
)
MODEL_ARGS=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length ${SEQ_LENGTH}
    --max-position-embeddings 32768
    --swiglu
    --untie-embeddings-and-output-weights
)
MOE_ARGS="--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 8 --moe-grouped-gemm \
    --moe-token-dispatcher-type alltoall"
torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py "${MODEL_ARGS[@]}" $MOE_ARGS \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size=${PP} --sequence-parallel \
    --num-layers-per-virtual-pipeline-stage 4 --use-distributed-optimizer --overlap-grad-reduce \
    --micro-batch-size 1 --global-batch-size 1024 --bf16 --vocab-size 32000
