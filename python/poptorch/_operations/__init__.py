"""Operations of models: blocks, control flow, hints, losses, half precision."""
