"""How an executor runs a model: arguments, micro-batches, passes, gradients, states, files."""
