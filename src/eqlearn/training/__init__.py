"""How equations are trained: schedules as data, one gradient loop for any model, the paper's presets."""
