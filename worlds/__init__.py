"""Procedural video tasks with exact answers: state, rules, renderer, reader, oracle plan."""
