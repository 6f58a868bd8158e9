"""VLM roles: planner, verifier, router, assessor, selector; reply parsing; the embedded oracle."""
