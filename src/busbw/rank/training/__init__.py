"""A small transformer with experts that one process a GPU trains, over PyTorch: begin with `program`.

`communication` has the groups and times every collective, `products` the matrix products in each data type,
`transformer` the model, `updating` the gradients and the optimizer, `steps` the loop and what is written. PyTorch is
the extra `[train]`.
"""
