#!/bin/bash
set -euo pipefail
export NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES=0,1,2,3
TORCH=${TORCH:-2.6.0}
pip install "torch==$TORCH" trl==0.17.0 'transformers>=4.51,<4.52'
if [ "${GPU:-}" = "h100" ]; then
    pip install flash-attn==2.7.4.post1 --no-build-isolation
fi
accelerate launch --num_processes 4 --mixed_precision bf16 train.py --learning_rate 1e-5 \
    --gradient_checkpointing true
