"""Pictures and video: uploads, canvas, mezzanine, measures, stitching. Knows pixels, not worlds or models."""
