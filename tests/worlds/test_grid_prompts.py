"""Roles of phrases, read from prompts in many words."""

from __future__ import annotations

import pytest

from worlds.grid_prompts import Role, read_prompt

CASES: list[tuple[str, dict[Role, str]]] = [
    (
        "Guide the purple disc through the beige corridors to the teal tile. Dark navy blocks are walls and must "
        "never be touched.",
        {"player": "purple circle", "floor": "beige", "goal": "teal square", "wall": "dark navy square"},
    ),
    (
        "Blue = player, yellow = exit, black = wall, white = floor",
        {"player": "blue", "goal": "yellow", "wall": "black", "floor": "white"},
    ),
    (
        "The player (blue ball) must reach the exit (yellow star) while staying on the pale gray cells "
        "and avoiding "
        "the black ones.",
        {"player": "blue circle", "goal": "yellow star", "floor": "pale gray square", "wall": "black"},
    ),
    (
        "Walls: #334455\nFloor: #eeeeee\nPlayer: #ff0000 circle\nGoal: #00ff00 square",
        {"player": "#ff0000 circle", "goal": "#00ff00 square", "floor": "#eeeeee", "wall": "#334455"},
    ),
    (
        "Starting from the orange triangle, travel to the lime diamond. Do not step on the crimson x "
        "marks, they are "
        "hazards. The floor is ivory.",
        {"player": "orange triangle", "goal": "lime diamond", "wall": "crimson x", "floor": "ivory"},
    ),
    (
        "Push the brown crate onto the pink tile. The dark gray blocks are walls, and the cream cells "
        "are floor. The "
        "green ball pushes.",
        {"box": "brown square", "goal": "pink square", "wall": "dark gray square", "floor": "cream square"},
    ),
    (
        "Move the agent, coloured cyan, to the destination coloured gold. Obstacles are maroon. Walk only on the "
        "light gray squares.",
        {"player": "cyan", "goal": "gold", "wall": "maroon", "floor": "light gray square"},
    ),
    (
        "The small violet ball rolls over the pale yellow squares until it rests on the navy square. It must not "
        "leave the pale yellow squares or go through the brown squares.",
        {"player": "violet circle", "floor": "pale yellow square", "goal": "navy square", "wall": "brown square"},
    ),
    (
        "A magenta dot needs to get to the cyan dot. Stay clear of tiles marked with a black cross.",
        {"player": "magenta circle", "goal": "cyan circle", "wall": "black x"},
    ),
    (
        "The pink star is where the white square wants to go; it dies if it touches a red x.",
        {"player": "white square", "wall": "red x"},
    ),
]


@pytest.mark.parametrize(("prompt", "roles"), CASES)
def test_roles_are_read_from_the_words(prompt: str, roles: dict[Role, str]) -> None:
    asked = read_prompt(prompt)
    assert {role: asked.of(role)[0].words for role in roles if asked.of(role)} == roles


def test_a_phrase_that_is_repeated_is_one_phrase() -> None:
    asked = read_prompt(
        "The red circle moves. The red circle stops on the green square. The red ball is the player."
    )
    assert [phrase.words for phrase in asked.of("player")] == ["red circle"]


def test_what_is_avoided_is_called_walls_or_traps() -> None:
    assert read_prompt("Avoid the red lava.").traps
    assert not read_prompt("Avoid the red lava.").walls
    assert read_prompt("The walls are gray.").walls
    assert read_prompt("Push the crate.").pushes


@pytest.mark.parametrize("prompt", ["", "Complete this sliding puzzle.", "Sort the circles by size.", "\n\n..."])
def test_other_prompts_are_not_about_a_grid(prompt: str) -> None:
    assert not read_prompt(prompt).about_grid
