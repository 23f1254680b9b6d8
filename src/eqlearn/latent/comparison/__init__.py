"""Which law stands behind encoders that may bend their latents: structures, their comparison, the gauge."""
