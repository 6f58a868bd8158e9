"""Scripts that measure: baselines at matched compute, speed, memory."""
