"""VLM roles: planner, verifier, router, assessor; reply parsing; the embedded oracle."""
