"""Values of a recipe for NeMo 2, as users override them."""

from nemo.collections import llm

recipe = llm.mixtral_8x22b.pretrain_recipe(name="mine", num_nodes=16, num_gpus_per_node=8)
recipe.trainer.strategy.tensor_model_parallel_size = 2
recipe.trainer.strategy.pipeline_model_parallel_size = 4
recipe.trainer.strategy.expert_model_parallel_size = 8
recipe.trainer.strategy.sequence_parallel = True
recipe.data.micro_batch_size = 1
recipe.data.global_batch_size = 256
recipe.data.seq_length = 4096
